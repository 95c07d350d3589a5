//! Tests of files that only tests of the base load, and of the product beside tests.

use super::super::*;
use crate::lane::parse;
use std::collections::BTreeMap;

/// Returns the protected files of a base with one step, without manifests and lanes.
fn kept(step: &str, files: &[(&str, &str)]) -> Vec<String> {
    let lane = parse("verify", "verify.yaml", &serde_json::json!({ "steps": [{ "run": step }] }).to_string()).unwrap();
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec());
    let all = files.keys().map(|path| (*path).to_owned());
    let policy = Policy::freeze(all, &[lane], &[], &[], &mut read).unwrap();
    files.keys().filter(|path| policy.rule(path).is_some()).map(|path| (*path).to_owned()).collect()
}

#[test]
fn a_folder_of_tests_is_theirs_with_what_only_they_load() {
    for (files, wanted) in [
        (
            &[
                ("src/share.js", ""),
                (
                    "unit/share-test.js",
                    "const { near } = require('./lib/near');\nconst { share } = require('../src/share');\n",
                ),
                ("unit/lib/near.js", "const { half } = require('./half');\n"),
                ("unit/lib/half.js", ""),
                ("unit/cases.json", "[]"),
            ][..],
            &["unit/cases.json", "unit/lib/half.js", "unit/lib/near.js", "unit/share-test.js"][..],
        ),
        (
            &[
                ("calc.py", ""),
                ("unit/test_calc.py", "from near import same\nfrom calc import add\n"),
                ("unit/near.py", ""),
            ],
            &["unit/near.py", "unit/test_calc.py"],
        ),
        (
            &[
                ("lib/sum.c", ""),
                ("unit/test_sum.c", "#include \"near.h\"\n#include \"../lib/sum.h\"\n"),
                ("unit/near.h", ""),
                ("lib/sum.h", ""),
            ],
            &["unit/near.h", "unit/test_sum.c"],
        ),
        (
            &[
                ("Cargo.toml", "[package]\nname = 'a'\n[[test]]\nname = 'it'\npath = 'testing/it.rs'\n"),
                ("src/lib.rs", "#[cfg(test)]\nmod near;\npub mod sums;\n"),
                ("src/near.rs", ""),
                ("src/sums.rs", ""),
                ("testing/it.rs", "mod fixtures;\n"),
                ("testing/fixtures.rs", ""),
            ],
            &["src/near.rs", "testing/fixtures.rs", "testing/it.rs"],
        ),
    ] {
        assert_eq!(kept("make all", files), wanted);
    }
}

#[test]
fn the_product_beside_its_tests_is_the_work() {
    for (files, wanted) in [
        (
            &[
                ("web/cart.js", ""),
                ("web/cart.test.js", "require('./cart'); require('../lib/money');\n"),
                ("lib/money.js", ""),
            ][..],
            &["web/cart.test.js"][..],
        ),
        (
            &[
                ("shop/__init__.py", ""),
                ("shop/totals.py", ""),
                ("shop/test_all.py", "from shop.totals import total\nfrom shop.cart import Cart\n"),
                ("shop/cart.py", ""),
            ],
            &["shop/test_all.py"],
        ),
        (
            &[
                ("shop/models.py", ""),
                ("shop/api/client.py", "import shop.models\n"),
                ("shop/api/test_api.py", "from shop.api.client import Client\nfrom shop.models import Cart\n"),
            ],
            &["shop/api/test_api.py"],
        ),
        (
            &[
                ("functions/create.js", ""),
                ("functions/remove.js", ""),
                ("functions/api.test.js", "require('./create'); require('../lib/db');\n"),
                ("lib/db.js", ""),
            ],
            &["functions/api.test.js"],
        ),
        (
            &[
                ("unit/near.js", ""),
                ("unit/share-test.js", "require('./near'); require('../src/share');\n"),
                ("src/share.js", "require('../unit/near');\n"),
            ],
            &["unit/share-test.js"],
        ),
    ] {
        assert_eq!(kept("make all", files), wanted);
    }
}

#[test]
fn the_product_that_nothing_else_loads_is_the_work_beside_a_test() {
    for (files, wanted) in [
        (
            &[
                ("lambdas/ingest/handler.py", "from shared import models\n"),
                ("lambdas/ingest/test_lambda.py", "from shared import models\nimport handler\n"),
                ("shared/models.py", ""),
            ][..],
            &["lambdas/ingest/test_lambda.py"][..],
        ),
        (
            &[
                ("core/util.py", ""),
                ("shop/models.py", ""),
                ("shop/signals.py", ""),
                ("shop/tests.py", "from core import util\nfrom shop import models, signals\n"),
            ],
            &["shop/tests.py"],
        ),
        (
            &[
                ("src/components/Button.vue", ""),
                ("src/components/all.spec.js", "import B from './Button.vue';\nimport { a } from '../utils/a';\n"),
                ("src/utils/a.js", ""),
                ("src/unit/archer.js", ""),
                ("src/unit/all.spec.js", "import './archer';\nimport { a } from '../utils/a';\n"),
            ],
            &["src/components/all.spec.js", "src/unit/all.spec.js"],
        ),
        (
            &[
                ("pkg/a.go", "package a\n"),
                ("pkg/b.go", "package a\n"),
                ("pkg/all_test.go", "package a\n"),
                ("main.go", ""),
            ],
            &["pkg/all_test.go"],
        ),
        (
            &[("src/lib.rs", "mod tests;\nmod sums;\n"), ("src/tests.rs", "use super::*;\n"), ("src/sums.rs", "")],
            &["src/tests.rs"],
        ),
    ] {
        assert_eq!(kept("make all", files), wanted);
    }
}

#[test]
fn what_is_loaded_before_the_tests_is_theirs_unless_it_is_the_product() {
    for (files, wanted) in [
        (
            &[
                ("conftest.py", "from comparing.same import same\nfrom app import create_app\n"),
                ("comparing/same.py", "def same(a, b):\n    assert a == b\n"),
                ("app.py", "import models\n\n\ndef create_app():\n    assert models\n"),
                ("models.py", ""),
            ][..],
            &["conftest.py"][..],
        ),
        (
            &[
                ("conftest.py", "from unit.same import same\nfrom app import app\n"),
                ("unit/same.py", "def same(a, b):\n    assert a == b\n"),
                ("app.py", "from flask import Flask\napp = Flask(__name__)\nassert app\n"),
            ],
            &["conftest.py", "unit/same.py"],
        ),
    ] {
        assert_eq!(kept("npm test", files), wanted);
    }
}

#[test]
fn what_loads_a_framework_of_tests_is_theirs_unless_a_manifest_names_it() {
    for (files, wanted) in [
        (
            &[
                ("pyproject.toml", "[project.entry-points.pytest11]\nslow = 'pytest_slow'\nmore = 'more.hooks'\n"),
                ("pytest_slow.py", "import pytest\n"),
                ("more/hooks.py", "import pytest\n"),
                ("less.py", "import pytest\n"),
                ("test_slow.py", "import pytest_slow\nimport less\nfrom more import hooks\n"),
            ][..],
            &["less.py", "test_slow.py"][..],
        ),
        (
            &[
                ("package.json", "{ \"main\": \"./near.js\" }"),
                ("near.js", "require('vitest');\n"),
                ("src/index.js", "require('vitest');\n"),
                ("src/plugin.js", ""),
                ("vitest.config.js", "import { plugin } from './src/plugin.js';\n"),
                ("test/a.test.js", "require('../src/index.js'); require('../near');\n"),
            ],
            &["test/a.test.js", "vitest.config.js"],
        ),
        (
            &[
                ("package.json", "{ \"scripts\": { \"test\": \"vitest\" } }"),
                (
                    "vitest.config.ts",
                    "import { plugin } from './build/plugin';\nexport default { test: { setupFiles: ['./before.ts'] } };\n",
                ),
                ("before.ts", "import './matchers/near';\nimport { start } from './server/start';\n"),
                ("matchers/near.ts", "import { expect } from 'vitest';\nexpect.extend({});\n"),
                ("server/start.ts", "import './routes';\n"),
                ("server/routes.ts", ""),
                ("build/plugin.ts", "export const plugin = {};\n"),
            ],
            &["before.ts", "build/plugin.ts", "matchers/near.ts", "vitest.config.ts"],
        ),
        (
            &[
                ("src/sum.js", ""),
                ("near/same.js", "const { test } = require('node:test');\n"),
                ("test/sum.test.js", "require('../near/same'); require('../src/sum');\n"),
            ],
            &["near/same.js", "test/sum.test.js"],
        ),
        (
            &[
                (
                    "package.json",
                    r#"{ "jest": { "setupFiles": ["<rootDir>/near/all"], "moduleNameMapper": { "^a$": "<rootDir>/src/a" } } }"#,
                ),
                (".mocharc.yml", "spec: test\nrequire:\n  - ./same/all.js\nwatch-files: [src/a.js]\n"),
                ("near/all.js", ""),
                ("same/all.js", ""),
                ("src/a.js", ""),
            ],
            &[".mocharc.yml", "near/all.js", "same/all.js"],
        ),
    ] {
        assert_eq!(kept("npm test", files), wanted);
    }
}

#[test]
fn the_runner_that_a_script_of_tests_starts_is_a_check() {
    let package = |test: &str| format!("{{ \"main\": \"src/sum.js\", \"scripts\": {{ \"test\": \"{test}\" }} }}");
    for (step, test, files, wanted) in [
        (
            "npm test",
            "node runner/main.js",
            &[
                ("runner/main.js", "require('../lib/near');\nrequire('../src/sum');\n"),
                ("lib/near.js", ""),
                ("src/sum.js", ""),
            ][..],
            &["runner/main.js"][..],
        ),
        (
            "npm test",
            "node runner/main.js",
            &[("runner/main.js", "const { run } = require('node:test');\n"), ("src/sum.js", "")],
            &["runner/main.js"],
        ),
        (
            "npm test",
            "start-server-and-test 'node server/main.js' http://localhost:1 'cypress run'",
            &[("server/main.js", "require('../src/sum');\n"), ("src/sum.js", "")],
            &[],
        ),
        (
            "npm test",
            "node server && wait-on x && node server/index.js",
            &[("server/index.js", "require('../src/sum');\n"), ("src/sum.js", "")],
            &[],
        ),
        ("npm test", "node src/sum.js --all", &[("src/sum.js", "require('./add');\n"), ("src/add.js", "")], &[]),
        ("npm test", "node app.js", &[("app.js", "require('./src/sum');\n"), ("src/sum.js", "")], &[]),
        (
            "make check",
            "true",
            &[
                (
                    "Makefile",
                    "check:\n\tpython3 qa/all.py\n\tpython3 app.py\n\tpython3 pkg/lint.py\n\tpython3 qa/verify.py\n",
                ),
                ("qa/all.py", "import unittest\nimport app\n"),
                ("qa/verify.py", "assert 1 + 1 == 2\n"),
                ("pkg/lint.py", ""),
                ("app.py", "from pkg import lint\n"),
            ],
            &["Makefile", "qa/all.py", "qa/verify.py"],
        ),
        (
            "make test",
            "true",
            &[
                ("Makefile", "all:\n\tpython3 make/docs.py\n\ntest: all\n\tpython3 qa/go.py\n\tpython3 app/main.py\n"),
                ("qa/go.py", "import calc\nassert calc.add(1, 2) == 3\n"),
                ("make/docs.py", "import calc\nassert calc.add\n"),
                ("app/main.py", "import calc\n\n\ndef main():\n    assert calc.add\n"),
                ("calc.py", ""),
            ],
            &["Makefile", "qa/go.py"],
        ),
    ] {
        let package = package(test);
        let mut files = files.to_vec();
        files.push(("package.json", &package));
        assert_eq!(kept(step, &files), wanted, "{step}: {test}");
    }
}

/// Returns the rule that a new file breaks, if this step runs on these files.
fn added(step: &str, files: &[(&str, &str)], path: &str, text: &str) -> Option<String> {
    let lane = parse("verify", "verify.yaml", &serde_json::json!({ "steps": [{ "run": step }] }).to_string()).unwrap();
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec());
    let all = files.keys().map(|path| (*path).to_owned());
    let policy = Policy::freeze(all, &[lane], &[], &[], &mut read).unwrap();
    let change = [PathChange { path: path.into(), kind: PathChangeKind::Added }];
    let contents = |_: &str, side| (side == TreeSide::Candidate).then(|| text.as_bytes().to_vec());
    policy.findings(&change, contents).pop().map(|finding| finding.rule)
}

#[test]
fn no_module_is_new_that_a_language_finds_before_its_own_or_that_of_a_framework() {
    let perl = [
        ("lib/Sums.pm", "package Sums;\n"),
        ("lib/Test/Builder/Own.pm", ""),
        ("own/a.pm", ""),
        ("t/a.t", "use lib 'own';\nuse Test::More;\n"),
    ];
    let ruby = [("lib/sums.rb", ""), ("lib/logger.rb", ""), ("more/a.rb", ""), ("test/test_sums.rb", "")];
    let lua = [("sums.lua", ""), ("spec/sums_spec.lua", "")];
    for (step, files, path, is_refused) in [
        ("prove -l", &perl[..], "lib/Test/More.pm", true),
        ("prove -l", &perl, "lib/Test2/API.pm", true),
        ("prove -l", &perl, "lib/strict.pm", true),
        ("prove -l", &perl, "own/Carp.pm", true),
        ("prove -I. -Iown t", &perl, "Test/More.pm", true),
        ("prove -l", &perl, "lib/Test/Builder/More.pm", false),
        ("prove -l", &perl, "lib/Test/Sums.pm", false),
        ("prove -l", &perl, "lib/Sums/More.pm", false),
        ("ruby -Ilib -Imore test/test_sums.rb", &ruby, "lib/minitest/autorun.rb", true),
        ("prove -l", &perl, "lib/Test/More.pmc", true),
        ("prove -l", &perl, "lib/Test2/API/Breakage.pmc", true),
        ("prove -l", &perl, "version/version.go", false),
        ("prove -l", &perl, "threads/x.go", false),
        ("ruby -Ilib -Imore test/test_sums.rb", &ruby, "more/optparse.so", true),
        ("ruby -Ilib -Imore test/test_sums.rb", &ruby, "more/set.rb", false),
        ("rspec", &ruby, "lib/rspec/core/runner.rb", true),
        ("rspec", &ruby, "lib/rspec/matchers/sums.rb", false),
        ("rspec", &ruby, "spec/json/a.json", false),
        ("rspec", &ruby, "lib/minitest/data.json", false),
        ("npm test", &[("tools/a.rb", "")], "lib/json/parse.js", false),
        ("npm test", &[("tools/a.rb", "")], "lib/minitest.rb", false),
        ("ruby -Ilib test/test_sums.rb", &ruby, "lib/rspec.rb", true),
        ("ruby -Ilib test/test_sums.rb", &ruby, "lib/logger/sums.rb", false),
        ("ruby -Ilib test/test_sums.rb", &ruby, "lib/sums/set.rb", false),
        ("busted", &lua, "busted/init.lua", true),
        ("busted", &lua, "src/luassert.lua", true),
        ("busted", &lua, "src/say/init.lua", true),
        ("busted", &lua, "src/total.lua", false),
        ("busted", &lua, "src/system/move.lua", false),
        ("busted", &lua, "src/term.lua", false),
        ("lua test.lua", &[("test.lua", ""), ("src/game.lua", "")], "src/say.lua", false),
        ("lua test_a.lua", &[("test_a.lua", "")], "luaunit.lua", true),
        ("prove t", &lua, "lib/Test/More.pm", false),
    ] {
        assert_eq!(added(step, files, path, "").as_deref() == Some(SHADOWED), is_refused, "{step}: {path}");
    }
}
