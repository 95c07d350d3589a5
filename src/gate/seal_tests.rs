//! Tests of seals on real folders: changes are found and put back.

use super::*;
use crate::workspace::ProtectedRule;

fn sealed(allow_edit: &[String]) -> (tempfile::TempDir, Seal) {
    let dir = crate::test_support::temp_dir();
    fs::create_dir_all(dir.path().join("lanes")).unwrap();
    fs::create_dir_all(dir.path().join("src")).unwrap();
    fs::write(dir.path().join("lanes/verify.yaml"), "steps: []").unwrap();
    fs::write(dir.path().join("lanes/check.sh"), "exit 1").unwrap();
    fs::set_permissions(dir.path().join("lanes/check.sh"), Permissions::from_mode(0o700)).unwrap();
    fs::write(dir.path().join("src/lib.rs"), "code").unwrap();
    let rule = |pattern: &str| ProtectedRule { pattern: pattern.into(), why: "test".into() };
    let protection = Protection::new([rule("/lanes"), rule("fixtures/**")], allow_edit).unwrap();
    let seal = Seal::capture(dir.path(), protection, None).unwrap();
    (dir, seal)
}

fn changes(seal: &Seal) -> Vec<(String, String)> {
    let (findings, aside) = (seal.inspect(), crate::test_support::temp_dir());
    assert_eq!(seal.restore(&findings, aside.path()), [""; 0]);
    findings.into_iter().map(|finding| (finding.path, finding.change)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, change)| ((*path).to_owned(), (*change).to_owned())).collect()
}

#[test]
fn changed_removed_and_added_protected_files_are_found_and_put_back() {
    let (dir, seal) = sealed(&[]);
    fs::write(dir.path().join("src/lib.rs"), "other code").unwrap();
    assert_eq!(changes(&seal), []);
    fs::write(dir.path().join("lanes/verify.yaml"), "steps: [true]").unwrap();
    fs::write(dir.path().join("lanes/extra.yaml"), "x").unwrap();
    fs::create_dir(dir.path().join("fixtures")).unwrap();
    fs::write(dir.path().join("fixtures/a"), "x").unwrap();
    let expected = [("fixtures/a", "added"), ("lanes/extra.yaml", "added"), ("lanes/verify.yaml", "changed")];
    assert_eq!(changes(&seal), pairs(&expected));
    assert_eq!(changes(&seal), []);
    fs::remove_file(dir.path().join("lanes/verify.yaml")).unwrap();
    assert_eq!(changes(&seal), pairs(&[("lanes/verify.yaml", "removed")]));
    assert_eq!(fs::read_to_string(dir.path().join("lanes/verify.yaml")).unwrap(), "steps: []");
}

#[test]
fn a_name_that_is_no_text_is_told_as_everywhere_and_put_back() {
    use std::os::unix::ffi::OsStrExt as _;
    let (dir, seal) = sealed(&[]);
    let place = dir.path().join("lanes").join(std::ffi::OsStr::from_bytes(b"a\xff.yaml"));
    fs::write(&place, "x").unwrap();
    let reported = "lanes/a\u{10ffff}.yaml";
    assert_eq!(changes(&seal), pairs(&[(reported, "added")]));
    assert!(!place.exists());
}

#[test]
fn a_file_is_put_back_with_its_mode() {
    let (dir, seal) = sealed(&[]);
    let script = dir.path().join("lanes/check.sh");
    fs::remove_file(&script).unwrap();
    assert_eq!(changes(&seal), pairs(&[("lanes/check.sh", "removed")]));
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o7777, 0o700);
    fs::set_permissions(&script, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(changes(&seal), pairs(&[("lanes/check.sh", "changed")]));
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o7777, 0o700);
}

#[test]
fn a_link_in_the_place_of_a_protected_folder_is_found_and_never_written_through() {
    let (dir, seal) = sealed(&[]);
    let outside = crate::test_support::temp_dir();
    fs::remove_dir_all(dir.path().join("lanes")).unwrap();
    symlink(outside.path(), dir.path().join("lanes")).unwrap();
    assert!(changes(&seal).contains(&("lanes".to_owned(), "added".to_owned())));
    assert_eq!(changes(&seal), []);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert!(dir.path().join("lanes").symlink_metadata().unwrap().is_dir());
}

#[test]
fn a_folder_in_the_place_of_a_protected_file_gives_way_to_it() {
    let (dir, seal) = sealed(&[]);
    fs::remove_file(dir.path().join("lanes/check.sh")).unwrap();
    fs::create_dir_all(dir.path().join("lanes/check.sh/a/b")).unwrap();
    fs::write(dir.path().join("lanes/check.sh/a/b/c"), "x").unwrap();
    assert_eq!(changes(&seal), pairs(&[("lanes/check.sh", "removed"), ("lanes/check.sh/a/b/c", "added")]));
    assert_eq!(fs::read_to_string(dir.path().join("lanes/check.sh")).unwrap(), "exit 1");
    assert_eq!(changes(&seal), []);
}

#[test]
fn a_changed_link_is_put_back_as_a_link() {
    let (dir, _) = sealed(&[]);
    symlink("check.sh", dir.path().join("lanes/link")).unwrap();
    let protection = Protection::new([ProtectedRule { pattern: "/lanes".into(), why: "test".into() }], &[]).unwrap();
    let seal = Seal::capture(dir.path(), protection, None).unwrap();
    fs::remove_file(dir.path().join("lanes/link")).unwrap();
    fs::write(dir.path().join("lanes/link"), "exit 0").unwrap();
    assert_eq!(changes(&seal), pairs(&[("lanes/link", "changed")]));
    assert_eq!(fs::read_link(dir.path().join("lanes/link")).unwrap(), Path::new("check.sh"));
}

#[test]
fn what_is_too_large_to_be_kept_is_found_and_left_as_it_is() {
    let (dir, _) = sealed(&[]);
    let large = dir.path().join("lanes/large.bin");
    fs::write(&large, vec![b'x'; KEPT as usize + 1]).unwrap();
    let protection = Protection::new([ProtectedRule { pattern: "/lanes".into(), why: "test".into() }], &[]).unwrap();
    let seal = Seal::capture(dir.path(), protection, None).unwrap();
    fs::write(&large, "small").unwrap();
    let findings = seal.inspect();
    let left = seal.restore(&findings, &dir.path().join("aside"));
    assert_eq!(
        (findings.len(), left),
        (1, vec!["cannot put lanes/large.bin back: too large, so fledge kept no copy".to_owned()])
    );
    assert_eq!(fs::read_to_string(&large).unwrap(), "small");
}

#[test]
fn a_protected_file_in_a_build_folder_is_sealed_and_other_build_folders_are_skipped() {
    let (dir, _) = sealed(&[]);
    for folder in ["lanes/target", "target/lanes"] {
        fs::create_dir_all(dir.path().join(folder)).unwrap();
        fs::write(dir.path().join(folder).join("check.sh"), "exit 1").unwrap();
    }
    let protection = Protection::new([ProtectedRule { pattern: "/lanes".into(), why: "test".into() }], &[]).unwrap();
    let seal = Seal::capture(dir.path(), protection, None).unwrap();
    assert!(seal.files.contains_key(Path::new("lanes/target/check.sh")));
    assert_eq!(seal.files.len(), 3);
}

#[test]
fn allow_edit_opens_a_path() {
    let (dir, seal) = sealed(&["lanes/verify.yaml".into()]);
    fs::write(dir.path().join("lanes/verify.yaml"), "x").unwrap();
    assert_eq!(changes(&seal), []);
}

#[test]
fn a_file_that_was_written_and_put_back_was_touched_all_the_same() {
    let (dir, seal) = sealed(&[]);
    let before = seal.stamps_with(&BTreeSet::new());
    assert_eq!(seal.touched(&before, &seal.stamps_with(&BTreeSet::new())), []);
    let script = dir.path().join("lanes/check.sh");
    fs::rename(&script, dir.path().join("kept")).unwrap();
    fs::write(&script, "exit 0").unwrap();
    fs::rename(dir.path().join("kept"), &script).unwrap();
    assert_eq!(changes(&seal), []);
    let touched: Vec<String> =
        seal.touched(&before, &seal.stamps_with(&BTreeSet::new())).into_iter().map(|finding| finding.path).collect();
    assert_eq!(touched, ["lanes/check.sh"]);
}

#[test]
fn what_is_put_back_writes_nothing_over_that_is_not_set_aside() {
    let (dir, seal) = sealed(&[]);
    let (at, aside) = (|path: &str| dir.path().join(path), crate::test_support::temp_dir());
    fs::write(at("lanes/verify.yaml"), "changed").unwrap();
    fs::write(at("lanes/extra.yaml"), "added").unwrap();
    fs::remove_file(at("lanes/check.sh")).unwrap();
    fs::create_dir(at("lanes/check.sh")).unwrap();
    symlink("nowhere", at("lanes/check.sh/link")).unwrap();
    let findings = seal.inspect();
    assert_eq!(seal.restore(&findings, aside.path()), [""; 0]);
    assert_eq!(seal.inspect(), []);
    let kept = |path: &str| fs::read_to_string(aside.path().join("lanes").join(path)).unwrap();
    assert_eq!([kept("verify.yaml"), kept("extra.yaml")], ["changed", "added"]);
    assert_eq!(fs::read_link(aside.path().join("lanes/check.sh/link")).unwrap(), Path::new("nowhere"));
}

#[test]
fn beyond_the_paths_of_the_base_only_what_defines_the_gate_is_sealed() {
    let (dir, _) = sealed(&[]);
    let rule = |pattern: &str, why: &str| ProtectedRule { pattern: pattern.into(), why: why.into() };
    let rules = [rule("/lanes", "it defines the gate"), rule("Makefile", "it steers")];
    let protection = Protection::new(rules, &[]).unwrap();
    fs::write(dir.path().join("Makefile"), "all:").unwrap();
    let scope = ["Makefile", "lanes/verify.yaml"].map(str::to_owned);
    let seal = Seal::capture(dir.path(), protection, Some(&scope)).unwrap();
    fs::create_dir(dir.path().join("build")).unwrap();
    for path in ["Makefile", "build/Makefile", "lanes/new.yaml"] {
        fs::write(dir.path().join(path), "x").unwrap();
    }
    assert_eq!(changes(&seal), pairs(&[("Makefile", "changed"), ("lanes/new.yaml", "added")]));
    assert!(dir.path().join("build/Makefile").exists());
}

#[test]
fn what_is_huge_is_neither_read_nor_copied_and_what_was_there_is_put_back() {
    let (dir, seal) = sealed(&[]);
    let (huge, aside) = (dir.path().join("lanes/check.sh"), crate::test_support::temp_dir());
    fs::File::create(&huge).unwrap().set_len(3 << 30).unwrap();
    let findings = seal.inspect();
    assert_eq!(findings.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["lanes/check.sh"]);
    let message = seal.set_aside(&findings, aside.path());
    assert_eq!(message, ["lanes/check.sh is too large to copy: 3221225472 bytes"]);
    assert_eq!(seal.restore(&findings, aside.path()), [""; 0]);
    assert_eq!(fs::read_to_string(&huge).unwrap(), "exit 1");
    assert!(fs::read_dir(aside.path()).unwrap().next().is_none());
}
