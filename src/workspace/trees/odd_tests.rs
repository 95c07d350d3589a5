//! Workspaces that are large, damaged, or have entries that block git.

use super::tests::{PATH, Project};
use super::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;

#[tokio::test]
async fn many_files_are_written_at_once_and_are_what_they_are_one_by_one() {
    let project = Project::new(&[("empty", ""), ("lines", "a\r\nb\r\n"), ("zero", "\0\u{1}")]);
    for number in 0..take::MANY {
        project.write(&format!("d{}/f{number}", number % 7), number.to_string().repeat(number));
    }
    std::os::unix::fs::symlink("empty", project.at("link")).unwrap();
    let (trees, many) = project.begin().await;
    let one_by_one = Project { home: crate::test_support::temp_dir(), stop: CancellationToken::new() };
    fs::create_dir(one_by_one.root()).unwrap();
    let (other, _) = one_by_one.begin().await;
    for entry in trees.entries(&many, &project.stop).await.unwrap().chunks(take::MANY / 3) {
        for path in entry.iter().map(|entry| &entry.path) {
            let target = one_by_one.at(path);
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            match fs::read_link(project.at(path)) {
                Ok(to) => std::os::unix::fs::symlink(to, target).unwrap(),
                Err(_) => drop(fs::copy(project.at(path), target).unwrap()),
            }
        }
        one_by_one.take(&other).await;
    }
    assert_eq!(one_by_one.take(&other).await, many);
    assert!(trees.has(&many, &project.stop).await.unwrap());
    let packs = |trees: &Trees| fs::read_dir(trees.0.git_dir.join("objects/pack")).map_or(0, Iterator::count);
    let expected = if trees.0.packs_at_once { 2 } else { 0 };
    assert_eq!((packs(&trees), packs(&other)), (expected, 0), "a pack has two files");
}

#[tokio::test]
async fn a_file_that_has_become_too_large_is_odd_and_the_rest_is_taken() {
    let project = Project::new(&[("a", "1")]);
    let (trees, base) = project.begin().await;
    fs::File::create(project.at("big")).unwrap().set_len(MOST_BYTES + 1).unwrap();
    project.write("a", "2");
    let taken = trees.take(&project.stop).await.unwrap();
    assert_eq!(project.changes(&trees, &base, &taken.tree).await, [("a".to_owned(), TreeChangeKind::Modified)]);
    let what = AnomalyKind::TooLarge(MOST_BYTES + 1);
    assert_eq!(taken.anomalies, [TreeAnomaly { path: "big".into(), what }]);
}

#[tokio::test]
async fn a_pipe_where_git_reads_a_list_is_odd_and_nobody_waits_for_it() {
    let project = Project::new(&[("a", "1"), ("s/b", "1")]);
    let (trees, base) = project.begin().await;
    project.write("a", "2");
    for name in ["s/.gitignore", "new/.gitattributes"] {
        fs::create_dir_all(project.at(name).parent().unwrap()).unwrap();
        mknodat(CWD, project.at(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(project.anomalies(&trees).await, [format!("{name}: a pipe, socket or device")]);
        let other = Trees::open(&project.home.path().join("o"), &project.root(), PATH, &project.stop).await.unwrap();
        let next = other.take(&project.stop).await;
        assert!(matches!(&next, Err(TreesError::Blocked { path }) if path == name), "{next:?}");
        let next = other.freeze_ignores(&project.env(), &project.stop).await;
        assert!(matches!(&next, Err(TreesError::Blocked { path }) if path == name), "{next:?}");
        trees.put_back(&base, Some(&[name.to_owned()]), &project.stop).await.unwrap();
        assert!(!project.at(name).exists());
    }
    assert_eq!(fs::read(project.at("a")).unwrap(), b"2");
}

#[tokio::test]
async fn an_index_that_a_lost_machine_left_empty_is_made_anew() {
    let project = Project::new(&[("a", "1")]);
    let (trees, base) = project.begin().await;
    fs::write(trees.0.git_dir.join("index"), "").unwrap();
    assert_eq!(project.begin().await.1, base);
}

#[tokio::test]
async fn a_file_that_is_too_large_is_named_before_it_is_read() {
    let project = Project::new(&[("a", "1")]);
    let trees = project.open().await;
    fs::File::create(project.at("huge")).unwrap().set_len(1 << 40).unwrap();
    let fault = trees.take(&project.stop).await.unwrap_err();
    let reported = "`huge` has 1099511627776 bytes, more than the limit of 200000000 for a file \
        (move it away, or let git ignore it)";
    assert_eq!(fault.to_string(), reported);
}
