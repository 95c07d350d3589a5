//! Manifests that are not judged by section, and the places that they name.

use super::compared;

#[test]
fn manifests_that_no_section_judges_name_no_new_place() {
    for (path, base, honest, wrong) in [
        ("Gemfile", "source 'https://rubygems.org'\n", "gem 'rack'\n", "gem 'rack', git: 'https://evil.example/r'\n"),
        ("Gemfile", "", "gem 'own', path: 'gems/own'\n", "gem 'own', path: '../../own'\n"),
        (
            "go.mod",
            "module corp.example/a\n\nrequire corp.example/b v1.0.0\n",
            "require (\n\tgithub.com/a/b v1.0.0 // indirect\n\tcorp.example/c v1.0.0\n)\n",
            "require evil.example/b v1.0.0\n",
        ),
        ("go.mod", "module a\n", "go 1.22\n", "require (\n\t\"evil.example/b\" v1.0.0 // indirect\n)\n"),
        ("Pipfile", "[packages]\n", "rich = \"*\"\n", "rich = { git = \"https://evil.example/r\" }\n"),
        ("setup.py", "setup(url='https://a.example')\n", "'rich>=1',\n", "'evil @ https://evil.example/e.whl',\n"),
        (
            "mix.exs",
            "source_url: \"https://a.example\"\n",
            "{:e, \"~> 1.0\"}\n",
            "{:e, git: \"https://evil.example/e\"}\n",
        ),
        (
            "build.gradle",
            "repositories { mavenCentral() }\n",
            "// maven { url \"https://a\" }\n",
            "maven { url \"https://evil.example\" }\n",
        ),
        (
            "pom.xml",
            "<project><url>https://a.example</url>",
            "<scm><url>https://b.example</url></scm>",
            "<repositories><repository><id>e</id><url>https://evil.example/m</url></repository></repositories>",
        ),
        (
            "pubspec.yaml",
            "name: a\ndependencies:\n",
            "  http: ^1.0.0\nhomepage: https://a.example\n",
            "  e: { git: 'x' }\n",
        ),
        ("pubspec.lock", "packages:\n  a:\n", "    version: \"1.0.1\"\n", "      url: \"https://evil.example\"\n"),
        (
            "environment.yml",
            "channels: [conda-forge]\ndependencies:\n",
            "  - numpy=1.2 # https://a\n",
            "  - evil::numpy\n",
        ),
        (
            "environment-dev.yaml",
            "dependencies:\n",
            "  - pip:\n    - rich==1\n",
            "  - pip:\n    - e @ https://evil.example/e.whl\n",
        ),
        ("environment.yml", "channels:\n  - conda-forge\n", "# more\n", "  - evil\n"),
        ("pnpm-workspace.yaml", "packages: [a]\n", "catalog:\n  a: ^1\n", "overrides:\n  a: github:evil/a\n"),
    ] {
        let told = |more: &str| compared(path, Some(base), Some(&format!("{base}{more}")), &[]).0.len();
        assert_eq!((told(honest), told(wrong)), (0, 1), "{path}");
    }
    let told = |kind: &str, url: &str| {
        let manifest = format!(r#"{{"repositories":[{{"type":"{kind}","url":"{url}"}}]}}"#);
        compared("composer.json", Some("{}"), Some(&manifest), &[]).0.len()
    };
    assert_eq!((told("path", "packages/a"), told("vcs", "https://evil.example"), told("path", "/tmp/a")), (0, 1, 1));
}
