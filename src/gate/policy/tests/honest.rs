//! Changes of honest work that give no finding.

use super::{edited, replaced};

/// Manifests, each with a text in it and its replacement. An empty text means the end of the
/// manifest.
const IN_MANIFESTS: &[(&str, &str, &str)] = &[
    (
        "Cargo.toml",
        "serde = '1'",
        "serde = { version = '1.0.200', features = ['derive'] }\nregex = '1'\nown = { path = 'crates/own' }",
    ),
    ("Cargo.toml", "proptest = '1'", "proptest = '1.5'\ninsta = '1'"),
    ("Cargo.toml", "version = '1.0.0'", "version = '1.1.0'\ndescription = 'x'\nlicense = 'MIT'\nrust-version = '1.80'"),
    ("Cargo.toml", "edition = '2021'", "edition = '2024'"),
    ("Cargo.toml", "default = []", "default = ['extra']\nextra = []"),
    ("Cargo.toml", "members = ['crates/x']", "members = ['crates/x', 'crates/y']"),
    ("Cargo.toml", "name = 'api'", "name = 'api'\n[[test]]\nname = 'more'"),
    ("Cargo.toml", "[[bin]]", "[[bin]]\nname = 'b'\npath = 'src/b.rs'\n[[bin]]"),
    ("Cargo.toml", "", "unused_imports = 'warn'\n"),
    ("Cargo.toml", "'deny'", "'forbid'"),
    ("Cargo.toml", "[features]", "[target.'cfg(unix)'.dependencies]\nlibc = '0.2'\n[features]"),
    ("Cargo.toml", "serde = '1'", "# a word\nserde = '1'"),
    ("package.json", "\"^18\"", "\"^19\",\"zod\":\"^3\""),
    ("package.json", "\"^29\"", "\"^30\",\"@types/node\":\"*\""),
    (
        "package.json",
        "\"1.0.0\"",
        "\"1.1.0\",\"description\":\"x\",\"files\":[\"dist\"],\"exports\":{\".\":\"./a.js\"}",
    ),
    ("package.json", "\"build\"", "\"dev\":\"vite\",\"build\""),
    ("package.json", "\"packages/a\"", "\"packages/a\",\"packages/b\""),
    ("pnpm-workspace.yaml", "  - '!packages/old'\n", "  - '!packages/old'\n  - 'apps/*'\ncatalog:\n  react: ^19\n"),
    ("lerna.json", "1.0.0", "1.1.0"),
    ("pyproject.toml", "members = ['packages/*']", "members = ['packages/*', 'apps/*']"),
    ("pyproject.toml", "'requests>=2'", "'requests>=2.31', 'rich'"),
    ("pyproject.toml", "'pytest>=8'", "'pytest>=8.1', 'pytest-cov'"),
    ("pyproject.toml", "name = 'p'", "name = 'p'\nversion = '2'\ndescription = 'x'"),
    ("pyproject.toml", "", "[project.scripts]\np = 'p:main'\n"),
    ("setup.cfg", "  requests", "  requests\n  rich"),
    ("setup.cfg", "name = p", "name = p\nversion = 2"),
    ("go.mod", "v1.0.0", "v1.2.0\n\tgithub.com/c/d v0.1.0 // indirect"),
    ("go.mod", "go 1.22", "go 1.23"),
    ("CMakeLists.txt", "src/main.c", "src/main.c src/more.c"),
    ("CMakeLists.txt", "endif()", "  add_test(NAME more COMMAND app more)\nendif() # of tests"),
    ("CMakeLists.txt", "", "set_tests_properties(sum PROPERTIES TIMEOUT 9 LABELS quick)\n"),
];
/// Files that the work writes.
const FILES: &[&str] = &[
    "src/lib.rs",
    "src/new.rs",
    "src/main.c",
    "bin/tool.sh",
    "app/views.py",
    "pkg/a.go",
    "README.md",
    "docs/guide.md",
    "tests/new.rs",
    "tests/data/new.json",
    "web/src/b.test.tsx",
    "pkg/b_test.go",
    "spec/models/b_spec.rb",
    "app/test_views.py",
    "web/__snapshots__/b.snap",
    ".gitignore",
    ".editorconfig",
    "Cargo.lock",
    "package-lock.json",
    "CHANGELOG.md",
    "LICENSE",
    "src/config.rs",
    "web/index.html",
    "migrations/0001_a.sql",
    "Dockerfile",
    "build.rs",
    "app/settings.toml",
    "scripts/release.sh",
    ".env.example",
];

#[test]
fn honest_work_gives_no_finding() {
    for (path, from, to) in IN_MANIFESTS {
        assert_eq!(replaced(path, from, to), [""; 0], "{path}: {to}");
    }
    let new = [
        (
            "crates/y/Cargo.toml",
            "[package]\nname = 'y'\nbuild = 'b.rs'\n[profile.dev]\nopt-level = 1\n[[test]]\nname = 't'\nharness = false\n",
        ),
        ("packages/b/package.json", r#"{"name":"b","type":"module","scripts":{"test":"node --test"},"jest":{}}"#),
        ("py/new/pyproject.toml", "[project]\nname = 'n'\n[tool.pytest.ini_options]\naddopts = '-q'\n"),
    ];
    for (path, text) in new {
        assert_eq!(edited(path, text), [""; 0], "{path}");
    }
    for path in FILES {
        assert_eq!(edited(path, "new"), [""; 0], "{path}");
    }
}
