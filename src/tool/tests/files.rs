//! Tests of reading and changing files.

use super::*;
use crate::chat::{FileChange, FileChangeKind, OutcomeDetail};
use std::os::unix::fs::symlink;

#[tokio::test]
async fn a_file_is_read_in_pages_that_say_how_to_go_on() {
    let fixture = ToolFixture::new();
    fixture.file("a", "one\r\ntwo\nthree\n");
    assert_eq!(fixture.output("files-read", json!({"path": "a"})).await, "     1\tone\n     2\ttwo\n     3\tthree\n");
    assert_eq!(
        fixture.output("files-read", json!({"path": "./x/../a", "offset": 2, "limit": 1})).await,
        "     2\ttwo\n[lines 2-2 of 3; continue with offset 3]\n"
    );
    let absolute = fixture.tree().join("a");
    assert_eq!(fixture.output("files-read", json!({"path": absolute, "offset": 3})).await, "     3\tthree\n");
    assert_eq!(
        fixture.call("files-read", json!({"path": "a", "offset": 4})).await,
        ToolOutcome::error("`a` has 3 lines; line 4 is past its end")
    );
}

#[tokio::test]
async fn pages_together_are_the_whole_file() {
    let fixture = ToolFixture::new();
    let lines: Vec<String> = (0..2000).map(|number| format!("line {number} of ünïcode")).collect();
    fixture.file("long", lines.join("\n"));
    let (mut read, mut offset) = (Vec::new(), 1);
    while offset <= lines.len() {
        let page = fixture.output("files-read", json!({"path": "long", "offset": offset})).await;
        assert!(page.len() <= 4096);
        let page: Vec<&str> = page.lines().filter_map(|line| line.split_once('\t')).map(|(_, line)| line).collect();
        offset += page.len();
        read.extend(page.into_iter().map(String::from));
    }
    assert_eq!(read, lines);
}

#[tokio::test]
async fn a_picture_is_shown_whatever_its_name() {
    let fixture = ToolFixture::new();
    for (media_type, bytes) in crate::tool::picture::tests::pixels() {
        fixture.file("notes.txt", &bytes);
        let output = format!("`notes.txt` is a picture: {media_type}, 1 x 1 pixels, {} bytes", bytes.len());
        assert_eq!(
            fixture.call("files-read", json!({"path": "notes.txt"})).await,
            ToolOutcome { images: vec![crate::chat::Image::new(media_type, &bytes)], ..ToolOutcome::ok(output) }
        );
    }
}

#[tokio::test]
async fn what_is_no_text_is_named_and_not_shown() {
    let fixture = ToolFixture::new();
    fixture.file("a.png", b"\x89PNG\r\n\x1a\n");
    fixture.file("latin", b"gr\xfcn\n");
    fixture.file("empty", "");
    fixture.file("dir/file", "");
    for (path, output) in [
        ("a.png", "`a.png` is a PNG image of 8 bytes, which can't be shown as text"),
        ("latin", "     1\tgr\u{fffd}n\n[not UTF-8: invalid bytes are shown as \u{fffd}]\n"),
        ("empty", "(the file is empty)"),
        ("dir", "`dir` is a directory, not a file"),
        ("none", "`none` does not exist"),
        ("empty/x", "`empty` is a file, not a directory"),
        ("@output/77", "there is no stored output `@output/77`"),
        ("@output/../a", "there is no stored output `@output/../a`"),
    ] {
        assert_eq!(fixture.output("files-read", json!({"path": path})).await, output);
    }
}

#[tokio::test]
async fn a_write_says_what_it_did_and_counts_against_the_first_state() {
    let fixture = ToolFixture::new();
    let first = fixture.call("files-write", json!({"path": "new/a", "content": "1\n2\n"})).await;
    let second = fixture.call("files-write", json!({"path": "new/a", "content": "1\n3\n4\n"})).await;
    let change = |added| FileChange { path: "new/a".into(), kind: FileChangeKind::Created, added, removed: 0 };
    let diff = "--- a/new/a\n+++ b/new/a\n@@ -1,2 +1,3 @@\n 1\n-2\n+3\n+4\n";
    assert_eq!(
        (first.change, second),
        (
            Some(change(2)),
            ToolOutcome {
                change: Some(change(3)),
                detail: OutcomeDetail::Diff(diff.into()),
                ..ToolOutcome::ok("replaced `new/a`: 3 lines, 6 bytes")
            }
        )
    );
}

#[tokio::test]
async fn to_write_what_is_there_already_is_no_change() {
    let fixture = ToolFixture::new();
    fixture.call("files-write", json!({"path": "a", "content": "1\n"})).await;
    let again = fixture.call("files-write", json!({"path": "a", "content": "1\n"})).await;
    assert_eq!(again, ToolOutcome::ok("`a` has this content already: nothing was changed"));
    assert!(fixture.call("files-write", json!({"path": "a", "content": "2\n"})).await.change.is_some());
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_overwritten() {
    let fixture = ToolFixture::new();
    fixture.file("a", "one\n");
    fixture.call("files-read", json!({"path": "a"})).await;
    fixture.file("a", "another writer's\n");
    let changed = ToolOutcome::error("`a` changed since you last read it: read it again, then repeat your change");
    assert_eq!(fixture.call("files-write", json!({"path": "a", "content": "two\n"})).await, changed);
    assert_eq!(fixture.call("files-edit", json!({"path": "a", "old": "else", "new": "e"})).await, changed);
    assert_eq!(fixture.call("files-delete", json!({"path": "a"})).await, changed);
    fixture.call("files-read", json!({"path": "a"})).await;
    assert!(!fixture.call("files-write", json!({"path": "a", "content": "two\n"})).await.is_error);
    assert_eq!(fixture.text("a"), "two\n");
}

#[tokio::test]
async fn an_edit_keeps_line_ends_byte_order_mark_and_mode() {
    let fixture = ToolFixture::new();
    fixture.file("dos", "\u{feff}one\r\ntwo\r\nthree\r\n");
    fs::set_permissions(fixture.tree().join("dos"), fs::Permissions::from_mode(0o751)).unwrap();
    let edited = fixture.call("files-edit", json!({"path": "dos", "old": "one\ntwo\n", "new": "1\n2\n2.5\n"})).await;
    assert_eq!(edited.content, "edited `dos`");
    assert_eq!(fixture.text("dos"), "\u{feff}1\r\n2\r\n2.5\r\nthree\r\n");
    fixture.call("files-write", json!({"path": "dos", "content": "x\ny\n"})).await;
    assert_eq!(fixture.text("dos"), "\u{feff}x\r\ny\r\n");
    assert_eq!(fs::metadata(fixture.tree().join("dos")).unwrap().permissions().mode() & 0o777, 0o751);
}

#[tokio::test]
async fn an_edit_that_does_not_match_once_says_why() {
    let fixture = ToolFixture::new();
    fixture.file("a", "let x = 1;\nlet y = 2;\nlet x = 1;\n");
    for (old, new, output) in [
        (
            "let x = 1;",
            "let x = 3;",
            "`old` is in `a` 2 times (lines 1, 3): give more of the text around it, or set `replace_all`",
        ),
        (
            "let y = 3;",
            "let y = 4;",
            "`old` is not in `a`; the nearest text is in lines 2-2 (90 % alike):\n     2\tlet y = 2;",
        ),
        ("same", "same", "`old` and `new` are the same: nothing to change"),
        ("", "x", "`old` is empty: give the text to replace, or use files-write"),
    ] {
        assert_eq!(
            fixture.call("files-edit", json!({"path": "a", "old": old, "new": new})).await,
            ToolOutcome::error(output)
        );
    }
    let all = json!({"path": "a", "old": "x = 1", "new": "x = 3", "replace_all": true});
    assert_eq!(fixture.output("files-edit", all).await, "edited `a`: 2 replacements");
    assert_eq!(fixture.text("a"), "let x = 3;\nlet y = 2;\nlet x = 3;\n");
}

#[tokio::test]
async fn a_delete_takes_the_file_or_the_link_but_no_directory() {
    let fixture = ToolFixture::new();
    fixture.file("dir/a", "1\n2\n");
    symlink("dir/a", fixture.tree().join("link")).unwrap();
    assert_eq!(fixture.output("files-delete", json!({"path": "link"})).await, "deleted `link`");
    let deleted = fixture.call("files-delete", json!({"path": "dir/a"})).await;
    let change = FileChange { path: "dir/a".into(), kind: FileChangeKind::Deleted, added: 0, removed: 2 };
    assert_eq!(deleted.change, Some(change));
    assert_eq!(fixture.output("files-delete", json!({"path": "dir"})).await, "`dir` is a directory, not a file");
    assert_eq!(fixture.output("files-delete", json!({"path": "link"})).await, "`link` does not exist");
}

#[tokio::test]
async fn protected_paths_are_refused_by_every_name_they_have() {
    let fixture = ToolFixture::with(|settings| settings.allow_edit = vec!["lanes/free.yaml".into()]);
    fixture.file("lanes/verify.yaml", "steps\n");
    fixture.file("lanes/free.yaml", "steps\n");
    fixture.file(".git/config", "[core]\n");
    symlink("lanes", fixture.tree().join("alias")).unwrap();
    symlink("alias/verify.yaml", fixture.tree().join("file")).unwrap();
    symlink(".git", fixture.tree().join("meta")).unwrap();
    let lane =
        "`lanes/verify.yaml` is protected (it defines the gate); do not change it, and solve the task in other files";
    let git = |path: &str| format!("`{path}` belongs to git's own files, which tools do not change");
    for (path, output) in [
        ("lanes/verify.yaml", lane.to_owned()),
        ("x/../lanes//verify.yaml", lane.to_owned()),
        ("alias/verify.yaml", lane.to_owned()),
        ("file", lane.to_owned()),
        (".git/config", git(".git/config")),
        (".GIT/config", git(".GIT/config")),
        ("meta/config", git(".git/config")),
        ("vendor/sub/.git", git("vendor/sub/.git")),
    ] {
        assert_eq!(fixture.output("files-write", json!({"path": path, "content": "x"})).await, output);
        assert_eq!(fixture.output("files-edit", json!({"path": path, "old": "steps", "new": "x"})).await, output);
    }
    assert_eq!(fixture.output("files-delete", json!({"path": "alias/verify.yaml"})).await, lane);
    assert_eq!(fixture.output("files-read", json!({"path": "file"})).await, "     1\tsteps\n");
    assert!(!fixture.call("files-write", json!({"path": "lanes/free.yaml", "content": "x"})).await.is_error);
    assert_eq!(fixture.text("lanes/verify.yaml"), "steps\n");
}

#[tokio::test]
async fn a_task_that_names_its_files_gets_no_others() {
    let fixture = ToolFixture::with(|settings| settings.files = vec!["src".into(), "*.md".into()]);
    for (path, refused) in [("src/a.rs", false), ("docs/a.md", false), ("Cargo.toml", true), ("srcs/a.rs", true)] {
        assert_eq!(
            fixture.call("files-write", json!({"path": path, "content": "x"})).await.is_error,
            refused,
            "{path}"
        );
    }
    assert_eq!(
        fixture.output("files-delete", json!({"path": "a.toml"})).await,
        "`a.toml` is not among the files that this task may change (src, *.md)"
    );
}

#[tokio::test]
async fn changes_at_the_same_time_are_all_kept() {
    let fixture = ToolFixture::new();
    let names: Vec<String> = (0..16).map(|number| format!("mark-{number:02}")).collect();
    fixture.file("a", names.join("\n"));
    let edit =
        |name: &String| fixture.call("files-edit", json!({"path": "a", "old": name, "new": format!("done {name}")}));
    let edits = futures_util::future::join_all(names.iter().map(edit)).await;
    assert!(edits.iter().all(|edit| !edit.is_error));
    assert_eq!(fixture.text("a").matches("done mark").count(), 16);
}
