//! Tests of manifests that are not judged by section, and of the sources that they name.

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
        let reported = |more: &str| compared(path, Some(base), Some(&format!("{base}{more}")), &[]).0.len();
        assert_eq!((reported(honest), reported(wrong)), (0, 1), "{path}");
    }
    let reported = |kind: &str, url: &str| {
        let manifest = format!(r#"{{"repositories":[{{"type":"{kind}","url":"{url}"}}]}}"#);
        compared("composer.json", Some("{}"), Some(&manifest), &[]).0.len()
    };
    assert_eq!(
        (reported("path", "packages/a"), reported("vcs", "https://evil.example"), reported("path", "/tmp/a")),
        (0, 1, 1)
    );
}

#[test]
fn what_names_no_place_of_packages_is_no_new_place() {
    let of_conda = "channels: [conda-forge]\ndependencies:\n  - python\n";
    let pom = "<project><name>a</name></project>";
    let in_pom = |more: &str| pom.replace("</project>", &format!("{more}</project>"));
    let place = "<repository><url>https://b.example</url></repository>";
    for (path, base, is, wrong) in [
        ("environment.yml", of_conda, of_conda.replace("[conda-forge]", "[\"conda-forge\"]"), 0),
        ("environment.yml", of_conda, format!("{of_conda}  - conda-forge::scipy\n"), 0),
        ("environment.yml", of_conda, format!("{of_conda}  - pip:\n    - -r requirements.txt\n"), 0),
        ("environment.yml", of_conda, format!("{of_conda}  - pip:\n    - -r other.txt\n"), 1),
        ("environment.yml", of_conda, format!("{of_conda}  - pip:\n    - -r requirements.txt --pre\n"), 1),
        ("environment.yml", of_conda, format!("{of_conda}  - numpy[channel=evil]\n"), 1),
        ("environment.yml", of_conda, "channels: [conda-forge]\ndependencies: [python, \"evil::numpy\"]\n".into(), 1),
        ("environment.yml", of_conda, of_conda.replace("channels: [", "\"channels\": [evil, "), 1),
        ("environment.yml", of_conda, of_conda.replace("channels: [", "channels : [evil, "), 1),
        ("pom.xml", pom, in_pom(&format!("<distributionManagement>{place}</distributionManagement>")), 0),
        ("pom.xml", pom, in_pom(&place.replace("<repository>", "<repository combine.self=\"override\">")), 1),
        ("pom.xml", pom, in_pom(&place.replace("<url>", "<url\n>")), 1),
        ("pom.xml", pom, in_pom(&format!("<!--<distributionManagement>-->{place}<!--</distributionManagement>-->")), 1),
        ("build.gradle", "", "publishing { pom {\n  url = \"https://a.example\"\n} }\n".into(), 0),
        ("build.gradle", "", "publishing {\n pom {\n scm {\n url = 'https://a.example'\n}\n}\n}\n".into(), 0),
        ("build.gradle", "", "publishing { pom { url = \"https://a.example\" } }\n".into(), 0),
        ("build.gradle", "", "repositories {\n maven {\n  url \"https://evil.example\"\n }\n}\n".into(), 1),
        ("build.gradle", "", "maven {\n name = 'pom {'\n url \"https://evil.example\"\n}\n".into(), 1),
        ("build.gradle", "", "maven {\n name = /pom {/\n url \"https://evil.example\"\n}\n".into(), 1),
        ("build.gradle", "", "pom { }; maven { url \"https://evil.example\" }\n".into(), 1),
        ("pubspec.yaml", "name: a\n", "name: a\nfunding:\n  - https://a.example\n".into(), 0),
        ("pubspec.yaml", "name: a\n", "name: a\nscreenshots:\n  - { path: ../a.png }\n".into(), 0),
        ("pubspec.yaml", "name: a\n", "name: a\n\"dependencies\": { b: { hosted: 'https://a.example' } }\n".into(), 1),
        ("mix.exs", "", "[test_repo: 1]\n".into(), 0),
        ("mix.exs", "", "[{:a, repo: \"evil\"}]\n".into(), 1),
    ] {
        assert_eq!(compared(path, Some(base), Some(&is), &[]).0.len(), wrong, "{path}: {is}");
    }
}
