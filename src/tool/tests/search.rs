//! Tests of listing, finding and searching.

use super::*;
use std::os::unix::fs::symlink;

#[tokio::test]
async fn a_directory_is_listed_with_sizes() {
    let fixture = ToolFixture::new();
    fixture.file("b.txt", "12345");
    fixture.file("a/x", "");
    fixture.file(".hidden", "");
    symlink("b.txt", fixture.tree().join("c")).unwrap();
    assert_eq!(fixture.output("files-list", json!({})).await, ".hidden  0\na/\nb.txt  5\nc -> b.txt\n");
    assert_eq!(fixture.output("files-list", json!({"path": "b.txt"})).await, "`b.txt` is a file, not a directory");
    assert_eq!(fixture.output("files-list", json!({"path": "no"})).await, "`no` does not exist");
}

/// Creates a tree with ignore files at several levels.
fn ignoring() -> ToolFixture {
    let fixture = ToolFixture::new();
    fixture.file(".gitignore", "target/\n*.log\n/top\n");
    fixture.file(".git/info/exclude", "excluded\n");
    fixture.file("sub/.gitignore", "!keep.log\ninner\n");
    fixture.file("sub/.ignore", "secondary\n");
    for path in [
        "a.rs",
        "b.log",
        "top",
        "excluded",
        "target/a.rs",
        "sub/a.rs",
        "sub/keep.log",
        "sub/lose.log",
        "sub/inner",
        "sub/secondary",
        "sub/top",
        "inner",
        ".github/ci.yml",
        "sub/deep/inner",
    ] {
        fixture.file(path, "needle\n");
    }
    fixture.file("binary", b"needle\n\0\n");
    symlink("../outside", fixture.tree().join("link")).unwrap();
    fixture
}

#[tokio::test]
async fn a_glob_finds_what_ignore_files_leave() {
    let fixture = ignoring();
    for (input, found) in [
        (json!({"pattern": "**"}), "a.rs\nbinary\ninner\nsub/a.rs\nsub/keep.log\nsub/top\n"),
        (json!({"pattern": "*.rs"}), "a.rs\nsub/a.rs\n"),
        (json!({"pattern": "/*.rs"}), "a.rs\n"),
        (json!({"pattern": fixture.tree().join("sub/*.rs")}), "sub/a.rs\n"),
        (json!({"pattern": "*.rs", "path": "sub"}), "sub/a.rs\n"),
        (json!({"pattern": "*.rs", "path": "target"}), "target/a.rs\n"),
        (json!({"pattern": "lose.log", "path": "sub"}), "no matching files\n"),
        (json!({"pattern": ".github/**"}), ".github/ci.yml\n"),
        (json!({"pattern": ".git/**"}), "no matching files\n"),
    ] {
        assert_eq!(fixture.output("files-glob", input.clone()).await, found, "{input}");
    }
}

#[tokio::test]
async fn a_search_shows_lines_and_heeds_ignore_files() {
    let fixture = ignoring();
    fixture.file("long", format!("needle{}\n", "é".repeat(400)));
    fixture.file("dos", "one\r\nNeedle\r\nthree\r\nfour\r\nneedle\r\n");
    for (input, found) in [
        (
            json!({"pattern": "^needle$"}),
            "a.rs:1:needle\ninner:1:needle\nsub/a.rs:1:needle\nsub/keep.log:1:needle\nsub/top:1:needle\n",
        ),
        (json!({"pattern": "n.*le", "glob": "*.rs"}), "a.rs:1:needle\nsub/a.rs:1:needle\n"),
        (json!({"pattern": "needle", "path": "sub", "glob": "/a.*"}), "sub/a.rs:1:needle\n"),
        (json!({"pattern": "needle", "path": "b.log"}), "b.log:1:needle\n"),
        (
            json!({"pattern": "needle", "path": "dos", "ignore_case": true, "context": 1}),
            "dos-1-one\ndos:2:Needle\ndos-3-three\ndos-4-four\ndos:5:needle\n",
        ),
        (
            json!({"pattern": "needle", "max": 1}),
            "a.rs:1:needle\n[stopped at 1 matches: narrow the search or raise `max`]\n",
        ),
        (json!({"pattern": "haystack"}), "no matches\n"),
        (json!({"pattern": "needle", "path": "binary"}), "no matches\n"),
    ] {
        assert_eq!(fixture.output("search-grep", input.clone()).await, found, "{input}");
    }
    let long = fixture.output("search-grep", json!({"pattern": "needle", "path": "long"})).await;
    assert_eq!(long, format!("long:1:needle{} [… 406 bytes more]\n", "é".repeat(197)));
    let bad = fixture.call("search-grep", json!({"pattern": "a("})).await;
    assert!(bad.is_error && bad.content.starts_with("invalid pattern `a(`: regex parse error"), "{}", bad.content);
}
