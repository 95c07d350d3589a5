//! Everyday changes of small projects that give no finding.

use super::super::*;
use crate::lane::parse;
use std::collections::BTreeMap;

/// A project with its lane and files.
struct Project {
    lane: &'static str,
    base: &'static [(&'static str, &'static str)],
    /// New files, each added alone.
    added: &'static [(&'static str, &'static str)],
}

const PYTHON: Project = Project {
    lane: "steps: [{ run: python3 -m pytest -q }]",
    base: &[
        ("pyproject.toml", "[project]\nname = 'shop'\ndependencies = ['requests', 'rich']\n"),
        ("src/shop/__init__.py", ""),
        ("src/shop/cart.py", "from .utils import total\n"),
        ("src/shop/utils.py", ""),
        ("src/shop/contest.py", ""),
        ("src/shop/api/__init__.py", ""),
        ("src/shop/api/routes.py", ""),
        ("scripts/seed.py", ""),
        ("docs/conf.py", ""),
        ("tests/conftest.py", "import pytest\n"),
        ("tests/test_cart.py", "from shop.cart import total\n"),
        ("tests/data/carts.json", "[]"),
    ],
    added: &[
        ("src/shop/testing.py", "def fake_cart():\n    return []\n"),
        ("src/shop/latest.py", ""),
        ("src/shop/test_mode.py", "IS_ON = False\n"),
        ("src/shop/types.py", ""),
        ("src/shop/json.py", ""),
        ("src/shop/api/utils.py", ""),
        ("src/shop/api/types.py", ""),
        ("src/shop/api/__main__.py", ""),
        ("src/shop/spec/__init__.py", ""),
        ("src/bank/__init__.py", ""),
        ("src/bank/utils.py", ""),
        ("src/bank/cart.py", ""),
        ("scripts/report.py", ""),
        ("tests/README.md", ""),
        ("tests/helpers.py", "def cart():\n    return []\n"),
        ("tests/factories.py", ""),
        ("tests/__init__.py", ""),
        ("tests/data/more.json", "[]"),
        ("tests/unit/__init__.py", ""),
        ("tests/unit/test_bank.py", "import shop\n"),
        ("tests/api/conftest.py", "import pytest\n\n\n@pytest.fixture\ndef client():\n    return object()\n"),
        ("tests/api/test_routes.py", "def test_routes(client):\n    assert client\n"),
        ("docs/testing.md", ""),
        ("examples/contest/main.py", ""),
        ("benchmarks/bench_cart.py", ""),
        ("CHANGELOG.md", ""),
    ],
};

const FLAT_PYTHON: Project = Project {
    lane: "steps: [{ run: python3 -m unittest discover -s tests }, { run: python3 app.py --version }]",
    base: &[
        ("app.py", "import store\n"),
        ("store.py", ""),
        ("tests/test_store.py", "import unittest\nimport store\n"),
        ("tests/support.py", ""),
        ("requirements.txt", "flask\n"),
    ],
    added: &[
        ("testing.py", "def demo():\n    pass\n"),
        ("contest.py", ""),
        ("inspection.py", ""),
        ("store_test_data.py", ""),
        ("models/__init__.py", ""),
        ("models/store.py", ""),
        ("models/types.py", ""),
        ("tests/test_models.py", "import unittest\n"),
        ("tests/fakes.py", ""),
        ("tests/fixtures/store.json", ""),
        ("static/app.js", ""),
        ("templates/test.html", ""),
        ("flask_app.py", ""),
    ],
};

const RUST: Project = Project {
    lane: "steps: [{ run: cargo test }, { run: cargo clippy --all-targets }]",
    base: &[
        ("Cargo.toml", "[package]\nname = 'calc'\nversion = '1.0.0'\n[dev-dependencies]\nproptest = '1'\n"),
        ("src/lib.rs", "pub mod parser;\n"),
        ("src/parser.rs", "#[cfg(test)]\nmod tests;\n"),
        ("src/parser/tests.rs", ""),
        ("tests/api.rs", "mod common;\n"),
        ("tests/common/mod.rs", ""),
    ],
    added: &[
        ("src/spec_parser.rs", ""),
        ("src/testing.rs", "pub fn fake() {}\n"),
        ("src/test_utils.rs", ""),
        ("src/latest.rs", ""),
        ("src/contest/mod.rs", ""),
        ("src/contest/tests.rs", ""),
        ("src/bin/tester.rs", ""),
        ("src/attestation.rs", ""),
        ("tests/parsing.rs", ""),
        ("tests/common/builders.rs", ""),
        ("tests/data/sums.txt", ""),
        ("benches/sums.rs", ""),
        ("examples/test_server.rs", ""),
        ("crates/half/Cargo.toml", "[package]\nname = 'half'\nversion = '0.1.0'\n"),
        ("crates/half/src/lib.rs", ""),
    ],
};

const NODE: Project = Project {
    lane: "steps: [{ run: npm test }]",
    base: &[
        (
            "package.json",
            r#"{"name":"shop","scripts":{"test":"node --test","build":"tsc"},"dependencies":{"express":"^4"}}"#,
        ),
        ("src/index.js", "require('./cart');\n"),
        ("src/cart.js", ""),
        ("src/utils.js", ""),
        ("src/views/list.tsx", ""),
        ("lib/legacy/index.js", ""),
        ("test/cart.test.js", "const { total } = require('../src/cart');\n"),
        ("test/helpers/server.js", ""),
    ],
    added: &[
        ("src/latest.js", ""),
        ("src/contest.js", ""),
        ("src/test-mode.js", ""),
        ("src/inspect.js", ""),
        ("src/spec/parser.js", ""),
        ("src/api/index.js", ""),
        ("src/api/utils.js", ""),
        ("src/api/types.d.ts", ""),
        ("src/cart.d.ts", ""),
        ("src/cart/totals.js", ""),
        ("src/cart.css", ""),
        ("src/views/list.css", ""),
        ("src/views/index.ts", ""),
        ("src/views/Latest.tsx", ""),
        ("lib/index.js", ""),
        ("index.js", ""),
        ("bin/shop", "#!/usr/bin/env node\n"),
        ("test/README.md", ""),
        ("test/helpers/clock.js", ""),
        ("test/fixtures/cart.json", "{}"),
        ("test/api.test.js", ""),
        ("src/api/routes.test.js", ""),
        ("packages/half/package.json", r#"{"name":"@shop/half","version":"1.0.0"}"#),
        ("packages/half/index.js", ""),
    ],
};

const GO: Project = Project {
    lane: "steps: [{ run: go test ./... }, { run: go vet ./... }]",
    base: &[
        ("go.mod", "module example.com/area\n\ngo 1.22\n"),
        ("area.go", "package area\n"),
        ("area_test.go", "package area\n"),
        ("testdata/cases.txt", ""),
        ("internal/check/check.go", "package check\n"),
        ("cmd/area/main.go", "package main\n"),
    ],
    added: &[
        ("attestation.go", ""),
        ("latest.go", ""),
        ("testing.go", ""),
        ("test.go", ""),
        ("contest/contest.go", ""),
        ("contest/contest_test.go", ""),
        ("contest/testdata/in.txt", ""),
        ("internal/testutil/testutil.go", ""),
        ("internal/check/spec.go", ""),
        ("cmd/test/main.go", ""),
        ("export_test.go", "package area\n"),
        ("testdata/more.txt", ""),
        ("area/doc.go", ""),
        ("go/README.md", ""),
    ],
};

const JAVA: Project = Project {
    lane: "steps: [{ run: mvn -q verify }]",
    base: &[
        ("pom.xml", "<project/>"),
        ("src/main/java/app/Cart.java", ""),
        ("src/test/java/app/CartTest.java", ""),
        ("src/test/java/app/Carts.java", ""),
        ("src/test/resources/carts.json", ""),
    ],
    added: &[
        ("src/main/java/app/Contest.java", ""),
        ("src/main/java/app/LatestVersion.java", ""),
        ("src/main/java/app/TestMode.java", ""),
        ("src/main/java/app/spec/Parser.java", ""),
        ("src/main/java/app/Attest.java", ""),
        ("src/main/resources/application-test.yml", ""),
        ("src/test/java/app/ContestTest.java", ""),
        ("src/test/java/app/support/Builders.java", ""),
        ("src/test/resources/contests.json", ""),
        ("src/test/resources/README.md", ""),
    ],
};

const C: Project = Project {
    lane: "steps: [{ run: make test }]",
    base: &[
        (
            "Makefile",
            "CFLAGS = -Iinclude -Isrc\nOBJECTS = $(patsubst src/%.c,build/%.o,$(wildcard src/*.c))\nall: build/app\nbuild/app: $(OBJECTS)\n\t$(CC) -o $@ $^\n\
             build/%.o: src/%.c\n\t$(CC) $(CFLAGS) -c -o $@ $<\ntest: all\n\tsh tests/run.sh\nclean:\n\trm -r build\ndocs:\n\tdoxygen\n.PHONY: all test clean\n",
        ),
        ("include/shape.h", ""),
        ("src/shape.c", "#include \"shape.h\"\n"),
        ("src/util.h", ""),
        ("tests/run.sh", "build/app\n"),
        ("tests/shape_test.c", ""),
    ],
    added: &[
        ("include/circle.h", ""),
        ("include/types.h", ""),
        ("include/list.h", ""),
        ("include/testing.h", ""),
        ("include/shape/vector.h", ""),
        ("src/types.h", ""),
        ("src/contest.c", ""),
        ("src/test_mode.c", ""),
        ("src/latest.c", ""),
        ("src/shape_test_data.h", ""),
        ("tests/helpers.h", ""),
        ("tests/circle_test.c", ""),
        ("tests/data/circle.txt", ""),
        ("examples/app.c", ""),
        ("docs/index.md", ""),
        ("tools/gen.py", ""),
    ],
};

const CMAKE: Project = Project {
    lane: "steps: [{ run: cmake -B build }, { run: cmake --build build }, { run: ctest --test-dir build }]",
    base: &[
        (
            "CMakeLists.txt",
            "add_library(shop src/cart.cpp)\ntarget_include_directories(shop PUBLIC include)\nadd_executable(shop_tests test/cart_test.cpp)\nadd_test(NAME shop COMMAND shop_tests)\n",
        ),
        ("include/shop/cart.hpp", ""),
        ("src/cart.cpp", ""),
        ("test/cart_test.cpp", "#include <gtest/gtest.h>\nTEST(Cart, Sum) {}\n"),
    ],
    added: &[
        ("include/shop/map.hpp", ""),
        ("include/shop/version.h", ""),
        ("include/shop/memory", ""),
        ("include/shop.h", ""),
        ("src/latest.cpp", ""),
        ("src/spec_reader.cpp", ""),
        ("src/tests_report.cpp", ""),
        ("test/helpers.hpp", ""),
        ("test/bank_test.cpp", ""),
        ("test/data/cart.txt", ""),
        ("cmake/options.cmake", ""),
    ],
};

fn policy(project: &Project) -> Policy {
    let lane = parse("verify", "verify.yaml", project.lane).unwrap();
    let files: BTreeMap<&str, &str> = project.base.iter().copied().collect();
    let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec());
    let all = files.keys().copied().chain(["lanes/verify.yaml"]).map(ToOwned::to_owned);
    Policy::freeze(all, &[lane], &[], &[], &mut read).unwrap()
}

#[test]
fn ordinary_new_files_are_no_findings() {
    let mut wrong = Vec::new();
    for project in [PYTHON, FLAT_PYTHON, RUST, NODE, GO, JAVA, C, CMAKE] {
        let policy = policy(&project);
        for (path, text) in project.added {
            let change = [PathChange { path: (*path).into(), kind: PathChangeKind::Added }];
            let contents = |_: &str, side| (side == TreeSide::Candidate).then(|| text.as_bytes().to_vec());
            let reported = policy.findings(&change, contents);
            wrong.extend(reported.into_iter().map(|finding| format!("{}: {}: {}", project.lane, path, finding.rule)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Product files of the base are not protected by their names alone.
#[test]
fn the_product_may_change_whatever_its_names_are() {
    let python = [
        ("src/shop/contest.py", ""),
        ("src/shop/fixtures.py", "START = []\n"),
        ("src/shop/factory.py", ""),
        ("src/shop/cart.py", "from .factory import make\nfrom .fixtures import START\nfrom .support import help\n"),
        ("src/shop/support/__init__.py", ""),
        ("src/shop/latest/checker.py", ""),
        ("tests/test_cart.py", "from shop.factory import make\nfrom shop.support import help\n"),
    ];
    let node = [
        ("package.json", r#"{"name":"w","main":"src/index.js","scripts":{"test":"node --test"}}"#),
        ("src/index.js", "require('./latest'); require('./support/mail'); require('./fakes');\n"),
        ("src/latest.js", ""),
        ("src/support/mail.js", ""),
        ("src/fakes.js", ""),
        ("src/spec-parser.js", ""),
        ("src/contest/index.js", ""),
        ("test/a.test.js", "require('../src/latest'); require('../src/support/mail'); require('../src/fakes');\n"),
    ];
    let others = [
        ("attestation.go", ""),
        ("latest/latest.go", ""),
        ("src/spec_parser.rs", ""),
        ("src/main/java/Contest.java", ""),
        ("src/inspector.ts", ""),
        ("protest.rb", ""),
        ("area_test.go", ""),
    ];
    for (lane, base) in [("python3 -m pytest", &python[..]), ("npm test", &node), ("make test", &others)] {
        let files: BTreeMap<&str, &str> = base.iter().copied().collect();
        let lane = parse("verify", "verify.yaml", &format!("steps: [{{ run: {lane} }}]")).unwrap();
        let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec());
        let policy = Policy::freeze(files.keys().map(|path| (*path).to_owned()), &[lane], &[], &[], &mut read).unwrap();
        let is_test = |path: &str| path.starts_with("test") || path == "area_test.go";
        let kept: Vec<&str> = files.keys().copied().filter(|path| policy.rule(path).is_some()).collect();
        let tests: Vec<&str> = files.keys().copied().filter(|path| is_test(path)).collect();
        assert_eq!(kept, tests);
    }
}
