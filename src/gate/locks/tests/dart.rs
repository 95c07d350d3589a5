//! Tests of Dart lock files.

use super::*;

/// An older lock file, without checksums: a package from a repository, and one from a registry.
const BASE: &str = "packages:\n  half:\n    dependency: \"direct main\"\n    description:\n      path: \".\"\n      ref: main\n      resolved-ref: \"0123\"\n      \
    url: \"https://example.org/half.git\"\n    source: git\n    version: \"1.0.0\"\n  http:\n    dependency: \"direct main\"\n    description:\n      \
    name: http\n      url: \"https://pub.dartlang.org\"\n    source: hosted\n    version: \"0.13.0\"\n";

#[test]
fn a_package_of_dart_stays_the_one_that_it_was() {
    let case = CASES.iter().find(|case| case.path == "pubspec.lock").unwrap();
    let reported = |change| compared(case.path, Some(case.base), Some(&changed(case.base, change)), &[]).0;
    for (change, wanted) in [
        (["sha256: aa", "sha256: bb"], Some("its checksum was aa and is now bb")),
        (["name: http", "name: evil"], Some("it is now the package `evil`, but was not on the base")),
        (["source: hosted", "source: git"], Some("it came from a registry and now comes from https://pub.dev#")),
        (
            ["path: \"own\"", "path: \"../../own\""],
            Some("it came from the folder `own` and now comes from the folder `../../own`"),
        ),
        (["packages:\n", "- packages:\n"], Some("cannot be parsed")),
        (
            [
                "aa\n      url: \"https://pub.dev\"\n    source: hosted\n    version: \"1.1.0\"",
                "bb\n      url: \"https://pub.dev\"\n    source: hosted\n    version: \"1.2.0\"",
            ],
            None,
        ),
        (["path: \"own\"", "path: \"packages/own\""], None),
        (["https://pub.dev", "https://pub.dartlang.org"], None),
        (
            ["https://pub.dev", "https://pub.dartlang.org.evil.example"],
            Some("it came from pub.dev and now comes from pub.dartlang.org.evil.example"),
        ),
    ] {
        let rules = reported(change);
        assert_eq!(rules.len(), usize::from(wanted.is_some()), "{change:?}: {rules:?}");
        assert!(rules.concat().contains(wanted.unwrap_or_default()), "{rules:?}");
    }
}

#[test]
fn a_package_from_a_repository_keeps_its_place_and_its_revision() {
    for (change, wanted) in [
        (
            ["https://example.org", "https://evil.example"],
            Some(
                "it came from https://example.org/half.git#0123 . and now comes from https://evil.example/half.git#0123 .",
            ),
        ),
        (
            ["\"0123\"", "\"4567\""],
            Some(
                "it came from https://example.org/half.git#0123 . and now comes from https://example.org/half.git#4567 .",
            ),
        ),
        (["      resolved-ref: \"0123\"\n", ""], Some("and now comes from https://example.org/half.git# .")),
        (["path: \".\"", "path: evil"], Some("and now comes from https://example.org/half.git#0123 evil")),
        (["source: git", "source: hosted"], Some("and now comes from a registry")),
        (["source: git", "source: path"], Some("and now comes from the folder `.`")),
        (["direct main", "direct dev"], None),
        (["ref: main", "ref: stable"], None),
    ] {
        let rules = compared("pubspec.lock", Some(BASE), Some(&changed(BASE, change)), &[]).0;
        assert_eq!(rules.len(), usize::from(wanted.is_some()), "{change:?}: {rules:?}");
        assert!(rules.concat().contains(wanted.unwrap_or_default()), "{rules:?}");
    }
}

#[test]
fn the_public_registry_of_dart_has_two_names() {
    for (to, is_wrong) in [
        ("https://pub.dev", false),
        ("https://pub.dev/", false),
        ("http://pub.dev", true),
        ("https://pub.dev.evil.example", true),
    ] {
        let rules = compared("pubspec.lock", Some(BASE), Some(&changed(BASE, ["https://pub.dartlang.org", to])), &[]).0;
        assert_eq!(!rules.is_empty(), is_wrong, "{to}: {rules:?}");
    }
}
