//! Tests of lock files in every format: honest changes, moved entries, dropped checksums, and new
//! entries from elsewhere.

mod dart;
mod manifests;

use super::*;

/// A lock file and replacements in it: a new entry from the same registry, a moved entry, a dropped
/// checksum, and a foreign entry.
struct Case {
    path: &'static str,
    base: &'static str,
    honest: [&'static str; 2],
    moved: [&'static str; 2],
    dropped: [&'static str; 2],
    foreign: [&'static str; 2],
}

const END: &str = "\u{0}";

const CASES: &[Case] = &[
    Case {
        path: "web/package-lock.json",
        base: r#"{"lockfileVersion":3,"packages":{"":{"name":"app"},"node_modules/left-pad":{"version":"1.3.0","resolved":"https://registry.npmjs.org/left-pad/-/left-pad-1.3.0.tgz","integrity":"sha512-AA=="}}}"#,
        honest: [
            r#""node_modules/left-pad""#,
            r#""node_modules/@s/is-odd":{"version":"3.0.1","resolved":"https://registry.npmjs.org/@s/is-odd/-/is-odd-3.0.1.tgz","integrity":"sha512-BB=="},"node_modules/left-pad""#,
        ],
        moved: ["https://registry.npmjs.org/left", "https://registry.npmjs.org@evil.example/left"],
        dropped: [r#","integrity":"sha512-AA==""#, ""],
        foreign: [
            r#""node_modules/left-pad""#,
            r#""node_modules/evil":{"version":"1.0.0","resolved":"https://evil.example/e.tgz"},"node_modules/left-pad""#,
        ],
    },
    Case {
        path: "npm-shrinkwrap.json",
        base: r#"{"lockfileVersion":1,"dependencies":{"left-pad":{"version":"1.3.0","resolved":"https://registry.npmjs.org/left-pad/-/left-pad-1.3.0.tgz","integrity":"sha1-AA=="}}}"#,
        honest: [r#""1.3.0""#, r#""1.3.1""#],
        moved: ["https://registry.npmjs.org", "http://registry.npmjs.org"],
        dropped: [r#","integrity":"sha1-AA==""#, ""],
        foreign: [r#""1.3.0""#, r#""git+https://evil.example/left-pad.git#0123""#],
    },
    Case {
        path: "pnpm-lock.yaml",
        base: "lockfileVersion: '9.0'\nimporters:\n  .:\n    dependencies:\n      left-pad:\n        specifier: ^1.3.0\n        version: 1.3.0\npackages:\n  left-pad@1.3.0:\n    resolution: {integrity: sha512-AA==}\nsnapshots:\n  left-pad@1.3.0: {}\n",
        honest: [
            "packages:\n",
            "packages:\n  '@s/odd@1.0.0(react@18.0.0)':\n    resolution: {integrity: sha512-BB==}\n",
        ],
        moved: ["{integrity: sha512-AA==}", "{integrity: sha512-AA==, tarball: 'https://evil.example/l.tgz'}"],
        dropped: ["{integrity: sha512-AA==}", "{}"],
        foreign: ["        version: 1.3.0", "        version: evil@1.3.0"],
    },
    Case {
        path: "yarn.lock",
        base: "# yarn lockfile v1\n\nleft-pad@^1.0.0, left-pad@^1.3.0:\n  version \"1.3.0\"\n  resolved \"https://registry.yarnpkg.com/left-pad/-/left-pad-1.3.0.tgz#5b8a\"\n  integrity sha512-AA==\n",
        honest: [
            END,
            "\n\"@s/odd@^3.0.0\":\n  version \"3.0.1\"\n  resolved \"https://registry.npmjs.org/@s/odd/-/odd-3.0.1.tgz#1\"\n  integrity sha512-BB==\n  dependencies:\n    is-number \"^6.0.0\"\n",
        ],
        moved: ["registry.yarnpkg.com", "evil.example"],
        dropped: ["  integrity sha512-AA==\n", ""],
        foreign: [END, "\nevil@1:\n  version \"1.0.0\"\n  resolved \"git+https://evil.example/e.git#1\"\n"],
    },
    Case {
        path: "a/yarn.lock",
        base: "__metadata:\n  version: 8\n\n\"left-pad@npm:^1.3.0\":\n  version: 1.3.0\n  resolution: \"left-pad@npm:1.3.0\"\n  checksum: 10c0/aa\n",
        honest: [
            END,
            "\n\"is-odd@npm:^3.0.0\":\n  version: 3.0.1\n  resolution: \"is-odd@npm:3.0.1\"\n  checksum: 10c0/bb\n",
        ],
        moved: ["npm:1.3.0\"", "npm:1.3.0::__archiveUrl=https%3A%2F%2Fevil.example%2Fl.tgz\""],
        dropped: ["  checksum: 10c0/aa\n", ""],
        foreign: ["\"left-pad@npm:1.3.0\"", "\"evil@npm:1.3.0\""],
    },
    Case {
        path: "Cargo.lock",
        base: "version = 4\n\n[[package]]\nname = \"serde\"\nversion = \"1.0.0\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"aa\"\n",
        honest: [
            END,
            "\n[[package]]\nname = \"half\"\nversion = \"2.0.0\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"bb\"\n",
        ],
        moved: ["rust-lang/crates", "evil/crates"],
        dropped: ["checksum = \"aa\"\n", ""],
        foreign: [
            END,
            "\n[[package]]\nname = \"half\"\nversion = \"2.0.0\"\nsource = \"git+https://evil.example/half#0123\"\n",
        ],
    },
    Case {
        path: "uv.lock",
        base: "version = 1\n\n[[package]]\nname = \"rich\"\nversion = \"13.0.0\"\nsource = { registry = \"https://pypi.org/simple\" }\nsdist = { url = \"https://files.pythonhosted.org/p/rich-13.0.0.tar.gz\", hash = \"sha256:aa\" }\nwheels = [{ url = \"https://files.pythonhosted.org/p/rich-13.0.0-py3-none-any.whl\", hash = \"sha256:ab\" }]\n",
        honest: ["13.0.0", "13.0.1"],
        moved: ["org/p/rich-13.0.0-py3", "org.evil.example/p/rich-13.0.0-py3"],
        dropped: [", hash = \"sha256:ab\"", ""],
        foreign: [
            END,
            "\n[[package]]\nname = \"evil\"\nversion = \"1\"\nsource = { registry = \"https://evil.example/simple\" }\n",
        ],
    },
    Case {
        path: "poetry.lock",
        base: "[[package]]\nname = \"rich\"\nversion = \"13.0.0\"\nfiles = [{ file = \"rich-13.0.0.tar.gz\", hash = \"sha256:aa\" }]\n",
        honest: [
            END,
            "\n[[package]]\nname = \"attrs\"\nversion = \"22.0\"\nfiles = [{ file = \"attrs.whl\", hash = \"sha256:bb\" }]\n",
        ],
        moved: [END, "\n[package.source]\ntype = \"legacy\"\nurl = \"https://evil.example/simple\"\n"],
        dropped: [", hash = \"sha256:aa\"", ""],
        foreign: [
            END,
            "\n[[package]]\nname = \"evil\"\nversion = \"1\"\n[package.source]\ntype = \"git\"\nurl = \"https://evil.example/e\"\n",
        ],
    },
    Case {
        path: "requirements-dev.txt",
        base: "rich==13.0.0 \\\n    --hash=sha256:aa\n",
        honest: [END, "attrs[x]>=22 ; python_version < '4' # why\n-r requirements.txt\n-e .\n"],
        moved: [END, "--extra-index-url https://evil.example/simple\n"],
        dropped: [" \\\n    --hash=sha256:aa", ""],
        foreign: [END, "evil @ git+https://evil.example/e\n"],
    },
    Case {
        path: "go.sum",
        base: "example.com/a v1.0.0 h1:aa=\nexample.com/a v1.0.0/go.mod h1:ab=\n",
        honest: [END, "example.com/b v1.0.0 h1:bb=\n"],
        moved: ["h1:aa=", "h1:zz="],
        dropped: ["h1:ab=", "h1:zz="],
        foreign: [END, "example.com/b v1.0.0\n"],
    },
    Case {
        path: "Gemfile.lock",
        base: "GEM\n  remote: https://rubygems.org/\n  specs:\n    rake (13.0.6)\n      other (>= 1)\n\nDEPENDENCIES\n  rake\n\nCHECKSUMS\n  rake (13.0.6) sha256=aa\n",
        honest: ["    rake (13.0.6)\n", "    rake (13.0.6)\n    rack (3.0.0)\n"],
        moved: ["rubygems.org", "evil.example"],
        dropped: [" sha256=aa", ""],
        foreign: [
            "GEM\n",
            "GIT\n  remote: https://evil.example/e.git\n  revision: 0123\n  specs:\n    evil (1.0.0)\n\nGEM\n",
        ],
    },
    Case {
        path: "composer.lock",
        base: r#"{"packages":[{"name":"a/b","version":"1.0","dist":{"type":"zip","url":"https://api.github.com/repos/a/b/zipball/0123","reference":"0123","shasum":"aa"}}]}"#,
        honest: [
            r#""1.0","dist":{"type":"zip","url":"https://api.github.com/repos/a/b/zipball/0123","reference":"0123""#,
            r#""1.1","dist":{"type":"zip","url":"https://api.github.com/repos/a/b/zipball/4567","reference":"4567""#,
        ],
        moved: ["repos/a/b", "repos/evil/b"],
        dropped: [r#""shasum":"aa""#, r#""shasum":"""#],
        foreign: [
            r#""1.0","dist":{"type":"zip","url":"https://api.github.com/repos/a/b"#,
            r#""1.1","dist":{"type":"zip","url":"https://api.github.com/repos/evil/b"#,
        ],
    },
    Case {
        path: "pubspec.lock",
        base: "packages:\n  http:\n    dependency: \"direct main\"\n    description:\n      name: http\n      sha256: aa\n      url: \"https://pub.dev\"\n    source: hosted\n    version: \"1.1.0\"\n  own:\n    description: { path: \"own\", relative: true }\n    source: path\n    version: \"0.1.0\"\n",
        honest: [
            "  own:",
            "  path:\n    description: { name: path, sha256: bb, url: \"https://pub.dartlang.org\" }\n    source: hosted\n    version: \"1.9.0\"\n  own:",
        ],
        moved: ["https://pub.dev", "https://evil.example"],
        dropped: ["      sha256: aa\n", ""],
        foreign: [
            END,
            "  evil:\n    description: { path: \".\", resolved-ref: \"0123\", url: \"https://evil.example/e.git\" }\n    source: git\n    version: \"1.0.0\"\n",
        ],
    },
];

fn changed(base: &str, [from, to]: [&str; 2]) -> String {
    if from == END {
        return format!("{base}{to}");
    }
    assert!(base.contains(from), "{from}");
    base.replacen(from, to, 1)
}

fn compared(path: &str, was: Option<&str>, is: Option<&str>, others: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let kind = match (was, is) {
        (None, _) => PathChangeKind::Added,
        (_, None) => PathChangeKind::Removed,
        _ => PathChangeKind::Modified,
    };
    let contents = |asked: &str, side: TreeSide| {
        let own = if side == TreeSide::Base { was } else { is };
        let other = others.iter().find(|(other, _)| *other == asked).map(|(_, text)| *text);
        if asked == path { own } else { other }.map(|text| text.as_bytes().to_vec())
    };
    let changes = [PathChange { path: path.into(), kind }];
    let (findings, notes) = findings_and_notes(&changes, contents, |_| false);
    (findings.into_iter().map(|finding| finding.rule).collect(), notes)
}

#[test]
fn entries_of_every_format_keep_their_place_and_their_checksum() {
    for case in CASES {
        let told = |change| compared(case.path, Some(case.base), Some(&changed(case.base, change)), &[]);
        let (wrong, notes) = told(case.honest);
        assert_eq!(wrong, Vec::<String>::new(), "{}", case.path);
        assert_eq!(notes.len(), 1, "{}: {notes:?}", case.path);
        for change in [case.moved, case.dropped, case.foreign] {
            let (wrong, notes) = told(change);
            assert_eq!(wrong.len(), 1, "{}: {change:?}: {wrong:?}", case.path);
            assert!(!wrong[0].is_empty() && notes.len() <= 1, "{}: {notes:?}", case.path);
        }
        let (wrong, _) = compared(case.path, Some(case.base), None, &[]);
        assert_eq!(
            wrong,
            ["the lock file was removed, and 1 checksums with it".to_owned()].map(|line| {
                let count = case.base.matches("h1:").count().max(1);
                line.replace("and 1", &format!("and {count}"))
            })
        );
    }
}

#[test]
fn a_finding_names_the_entry_with_what_was_and_what_is() {
    let told = |place: usize, change: fn(&Case) -> [&'static str; 2]| {
        let case = &CASES[place];
        compared(case.path, Some(case.base), Some(&changed(case.base, change(case))), &[]).0.remove(0)
    };
    assert_eq!(
        told(0, |case| case.moved),
        "`left-pad 1.3.0`: it came from registry.npmjs.org and now comes from evil.example"
    );
    assert_eq!(told(0, |case| case.dropped), "`left-pad 1.3.0`: its checksum was sha512-AA== and is now missing");
    assert_eq!(
        told(0, |case| case.foreign),
        "`evil 1.0.0`: it comes from evil.example, which the base does not use (it uses registry.npmjs.org)"
    );
    assert_eq!(told(9, |case| case.moved), "`example.com/a v1.0.0`: its checksum was h1:aa= and is now h1:zz=");
    assert_eq!(told(2, |case| case.foreign), "`left-pad 1.3.0`: it is now the package `evil`, but was not on the base");
}

#[test]
fn registries_are_those_of_the_lock_file_and_of_the_configuration_of_the_base() {
    let own = CASES[0].base.replace("registry.npmjs.org", "npm.corp.example");
    let added = |host: &str| {
        let entry = format!(
            r#""node_modules/new":{{"version":"1.0.0","resolved":"https://{host}/new/-/new-1.0.0.tgz"}},"node_modules/left-pad""#
        );
        own.replacen(r#""node_modules/left-pad""#, &entry, 1)
    };
    let wrong = |host: &str, config: &[(&str, &str)]| {
        compared("web/package-lock.json", Some(&own), Some(&added(host)), config).0.len()
    };
    assert_eq!((wrong("npm.corp.example", &[]), wrong("registry.npmjs.org", &[])), (0, 1));
    let scoped = [(".npmrc", "@corp:registry=https://scoped.example/\n//scoped.example/:_authToken=${TOKEN}\n")];
    assert_eq!((wrong("scoped.example", &scoped), wrong("elsewhere.example", &scoped)), (0, 1));
    let default = [("web/.npmrc", "registry=https://mirror.example/npm\n")];
    assert_eq!((wrong("mirror.example", &default), wrong("registry.npmjs.org", &default)), (0, 1));
    let new = r#"{"packages":{"node_modules/new":{"version":"1","resolved":"https://registry.npmjs.org/new.tgz"}}}"#;
    let new_lock = |config: &[(&str, &str)]| compared("package-lock.json", None, Some(new), config).0.len();
    assert_eq!((new_lock(&[]), new_lock(&[(".npmrc", "registry=https://mirror.example/")])), (0, 1));
}

#[test]
fn an_update_from_the_address_of_another_package_is_found() {
    let update = [
        r#""1.3.0","resolved":"https://registry.npmjs.org/left-pad/-/left-pad-1.3.0.tgz","integrity":"sha512-AA==""#,
        r#""1.3.9","resolved":"https://registry.npmjs.org/evil/-/evil-1.3.9.tgz","integrity":"sha512-BB==""#,
    ];
    let (wrong, notes) = compared(CASES[0].path, Some(CASES[0].base), Some(&changed(CASES[0].base, update)), &[]);
    assert!(wrong.len() == 1 && wrong[0].ends_with("which is the address of another package"), "{wrong:?}");
    assert_eq!(notes, ["web/package-lock.json: 1 updated (left-pad 1.3.0 → 1.3.9)"]);
    let disguised = [update[0], &update[1].replace(".tgz", ".tgz?/left-pad/")];
    let (wrong, _) = compared(CASES[0].path, Some(CASES[0].base), Some(&changed(CASES[0].base, disguised)), &[]);
    assert!(wrong.len() == 1 && wrong[0].ends_with("which is the address of another package"), "{wrong:?}");
}

#[test]
fn a_lock_file_of_another_format_is_named_if_it_changes() {
    for path in ["pdm.lock", "web/bun.lock", "Pipfile.lock"] {
        let change = PathChange { path: path.into(), kind: PathChangeKind::Modified };
        let (findings, notes) = findings_and_notes(&[change], |_, _| Some(Vec::new()), |_| false);
        assert_eq!(notes, [format!("{path}: changed, and fledge does not compare this format")]);
        assert_eq!(findings, []);
    }
}

#[test]
fn a_new_shrinkwrap_is_compared_with_the_lock_file_that_it_replaces() {
    let dropped = changed(CASES[0].base, CASES[0].dropped);
    let contents = |path: &str, side: TreeSide| match (path, side) {
        ("web/package-lock.json", _) => Some(CASES[0].base.as_bytes().to_vec()),
        ("web/npm-shrinkwrap.json", TreeSide::Candidate) => Some(dropped.as_bytes().to_vec()),
        _ => None,
    };
    let added = PathChange { path: "web/npm-shrinkwrap.json".into(), kind: PathChangeKind::Added };
    let (findings, _) = findings_and_notes(&[added], contents, |_| false);
    assert!(findings.len() == 1 && findings[0].rule.contains("its checksum was sha512-AA=="), "{findings:?}");
}

#[test]
fn options_count_as_pip_joins_lines_and_reads_starts_of_names() {
    let tried = |more: &str| compared("requirements.txt", Some("a==1\n"), Some(&format!("a==1\n{more}")), &[]);
    for more in [
        "--index\\\n-url https://evil.example\n",
        "# a comment \\\n--index-url https://evil.example\n",
        "--pre --index https://evil.example\n",
        "--extra=https://evil.example\n",
        "-ihttps://evil.example\n",
        "-i https://evil.example?a=b\n",
        "--req https://evil.example/r.txt\n",
    ] {
        assert_eq!(tried(more).0.len(), 1, "{more}");
    }
    for more in [
        "b @ https://evil.example/b.whl\n",
        "b@ https://evil.example/b.whl\n",
        "b@https://evil.example/b.whl\n",
        "b[x] @https://evil.example/b.whl\n",
        "b\t@\thttps://evil.example/b.whl\t# why\n",
        "b @ git+https://evil.example/b\n",
    ] {
        assert_eq!(
            tried(more).0,
            ["`b`: it comes from ADDRESS, which the base does not use"].map(|text| {
                text.replace(
                    "ADDRESS",
                    if more.contains("git+") { "git+https://evil.example/b" } else { "https://evil.example/b.whl" },
                )
            }),
            "{more}"
        );
    }
    let encoded = compared(
        "dev-requirements.in",
        Some("a\n"),
        Some("# -*- coding: utf-7 -*-\na\n+AC0-i https://e.example\n"),
        &[],
    );
    assert!(encoded.0.len() == 1 && encoded.0[0].contains("it is written in utf-7, not in UTF-8"), "{encoded:?}");
    let plain = compared("dev-requirements.in", Some("a\n"), Some("# coding: utf-8\na\nb\n"), &[]);
    assert_eq!(plain, (Vec::new(), vec!["dev-requirements.in: 1 added (b)".to_owned()]));
    let note = |told: &str| (Vec::<String>::new(), vec![format!("requirements.txt: {told}")]);
    assert_eq!(tried("--pre\n"), note("`--pre` is new"));
    assert_eq!(tried("--no-binary :all:\n"), note("`--no-binary :all:` is new"));
    assert_eq!(tried("-r requirements-dev.txt\n"), (Vec::new(), Vec::new()));
    assert_eq!(tried("b==1 \\\n    --hash=sha256:aa\n"), note("1 added (b 1)"));
    assert_eq!(tried("./evil.whl\n").1, note("1 added (./evil.whl)").1);
}

#[test]
fn what_an_entry_gains_to_run_is_noted() {
    let gains =
        [r#""integrity":"sha512-AA==""#, r#""integrity":"sha512-AA==","hasInstallScript":true,"bin":{"jest":"x.js"}"#];
    let told = compared(CASES[0].path, Some(CASES[0].base), Some(&changed(CASES[0].base, gains)), &[]);
    let note = "web/package-lock.json: left-pad 1.3.0 gains an install script and the program `jest`";
    assert_eq!(told, (Vec::new(), vec![note.to_owned()]));
    let bare = [r#""resolved":"https://registry.npmjs.org/left-pad/-/left-pad-1.3.0.tgz","#, ""];
    let bare = changed(CASES[0].base, bare);
    let moved = bare.replace(r#""integrity""#, r#""resolved":"https://evil.example/l.tgz","integrity""#);
    let told = compared(CASES[0].path, Some(&bare), Some(&moved), &[]).0;
    assert_eq!(told, ["`left-pad 1.3.0`: it comes from evil.example, but the base names no source for it"]);
}

#[test]
fn what_an_entry_depends_on_now_is_noted_and_so_is_every_other_change() {
    let cargo = "version = 3\n\n[[package]]\nname = 'calc'\nversion = '0.1.0'\ndependencies = ['serde']\n\n[[package]]\nname = 'serde'\nversion = '1.0.0'\nsource = 'registry+https://github.com/rust-lang/crates.io-index'\nchecksum = 'aa'\n";
    let npm = r#"{"packages":{"node_modules/near":{"version":"1.0.0","license":"MIT","dependencies":{"left":"^1"}}}}"#;
    let uv = "[[package]]\nname = 'a'\nversion = '1'\nsource = { virtual = '.' }\ndependencies = [{ name = 'rich' }]\n";
    for (path, base, from, to, told) in [
        ("Cargo.lock", cargo, "['serde']", "[]", "calc 0.1.0 does not depend on serde any more"),
        ("Cargo.lock", cargo, "['serde']", "['serde', 'evil']", "calc 0.1.0 depends on evil as well"),
        (
            "package-lock.json",
            npm,
            "\"left\":\"^1\"",
            "\"left\":\"*\"",
            "near 1.0.0 depends on left * instead of left ^1",
        ),
        ("package-lock.json", npm, "MIT", "GPL", "its entries are unchanged, but other parts changed"),
        (
            "uv.lock",
            uv,
            "{ name = 'rich' }",
            "{ name = 'poor' }",
            "a 1 depends on {\"name\":\"poor\"} instead of {\"name\":\"rich\"}",
        ),
    ] {
        let (wrong, notes) = compared(path, Some(base), Some(&changed(base, [from, to])), &[]);
        assert_eq!((wrong, notes), (Vec::new(), vec![format!("{path}: {told}")]));
    }
}

#[test]
fn a_lock_file_that_cannot_be_parsed_says_so_and_counts_as_changed_in_all() {
    for case in CASES {
        let (wrong, notes) = compared(case.path, Some(case.base), Some("}{\u{0}\n"), &[]);
        assert!(wrong.len() == 1 && wrong[0].contains("cannot be parsed"), "{}: {wrong:?}", case.path);
        assert!(notes[0].contains("every entry counts as changed"), "{notes:?}");
        let (_, notes) = compared(case.path, Some("}{\u{0}\n"), Some(case.base), &[]);
        assert!(notes[0].contains("the lock file of the base cannot be parsed"), "{notes:?}");
    }
}

#[test]
fn a_lock_file_that_goes_with_its_manifest_and_one_that_is_opened_give_no_finding() {
    let base = |path: &str, side: TreeSide| {
        let own = side == TreeSide::Base && path == CASES[0].path;
        own.then(|| CASES[0].base.as_bytes().to_vec())
    };
    let removed = |path: &str| PathChange { path: path.into(), kind: PathChangeKind::Removed };
    let both = [removed(CASES[0].path), removed("web/package.json")];
    assert_eq!(findings_and_notes(&both, base, |_| false).0, []);
    assert_eq!(findings_and_notes(&both[..1], base, |_| false).0.len(), 1);
    assert_eq!(findings_and_notes(&both[..1], base, |_| true).0, []);
}

#[test]
fn paths_inside_of_the_workspace_may_be_new_and_others_may_not() {
    let link = |path: &str| format!(r#"{{"packages":{{"node_modules/t":{{"resolved":"{path}","link":true}}}}}}"#);
    let wrong = |path: &str| compared("web/package-lock.json", Some("{}"), Some(&link(path)), &[]).0.len();
    assert_eq!((wrong("vendor/t"), wrong("../core"), wrong("../../out"), wrong("/etc")), (0, 0, 1, 1));
    let base = CASES[0].base;
    let taken = base.replace(
        r#""resolved":"https://registry.npmjs.org/left-pad/-/left-pad-1.3.0.tgz""#,
        r#""resolved":"x","link":true"#,
    );
    assert_eq!(compared("web/package-lock.json", Some(base), Some(&taken), &[]).0.len(), 1);
}
