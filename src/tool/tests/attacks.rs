//! Attempts to leave the workspace with every tool that takes a path. They use the path itself,
//! links, and links that change while the tool works.

use super::ToolFixture;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The content of the file outside. No outcome may contain it.
const CANARY: &str = "canary-5d1f";
/// The name of that file. No listing may show it.
const SECRET: &str = "treasure";

/// Creates a workspace with links to many places, next to a directory that no tool may reach.
fn fixture() -> ToolFixture {
    let fixture = ToolFixture::new();
    let outside = fixture.home.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join(SECRET), CANARY).unwrap();
    fixture.file("dir/file", "inside\n");
    let links: [(&str, &Path); 14] = [
        ("up", Path::new("..")),
        ("out", Path::new("../outside")),
        ("abs", &outside),
        ("slash", Path::new("/")),
        ("proc", Path::new("/proc/self")),
        ("cwd", Path::new("/proc/self/cwd")),
        ("dir/up", Path::new("../..")),
        ("dir/back", Path::new("../dir/../../outside")),
        ("chain", Path::new("dir/up/outside")),
        ("chain2", Path::new("./chain/../outside")),
        ("circle", Path::new("circle")),
        ("dangling", Path::new("../outside/new")),
        ("gone", Path::new("missing/../../outside")),
        ("dots", Path::new("dir/.././/../outside")),
    ];
    for (name, target) in links {
        symlink(target, fixture.tree().join(name)).unwrap();
    }
    symlink(outside.join(SECRET), fixture.tree().join("straight")).unwrap();
    fixture
}

/// Paths that name something outside the workspace.
const PATHS: &[&str] = &[
    "..",
    "../",
    "../.",
    "./..",
    ".//..",
    "dir/../..",
    "dir/../../",
    "x/../..",
    "a/b/../../..",
    "../tree/../outside/treasure",
    "../outside/treasure",
    "./../outside/treasure",
    "dir/../../outside/treasure",
    "none/../../outside/treasure",
    "dir/file/../../../outside/treasure",
    "../../../../../../../../../../etc/passwd",
    "/",
    "//",
    "/..",
    "/etc/passwd",
    "//etc/passwd",
    "/./etc/passwd",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "/proc/thread-self/environ",
    "/dev/fd/0",
    "/dev/stdin",
    "/proc/1/environ",
    "~",
    "~/",
    "~/.ssh/id_rsa",
    "~root/x",
    "file:///etc/passwd",
    "",
    " ",
    ".",
    "./",
    "dir/..",
    "\0",
    "dir/file\0/../../outside/treasure",
    "../outside/treasure\0",
    "a\nb",
    "\u{7f}",
    "..\\outside\\treasure",
    "\\..\\outside",
    "%2e%2e/outside/treasure",
    "..%2foutside",
    "%2e%2e%2foutside",
    "..%c0%afoutside",
    "．．/outside/treasure",
    "‥/outside/treasure",
    "..\u{200b}/outside",
    "\u{202e}..",
    ".../outside",
    "....//outside",
    "..;/outside",
    "C:\\Windows",
    "$HOME/x",
    "`pwd`/../outside",
    "*/../../outside",
    "@output/../../outside",
    "@output/1",
    "@output//etc/passwd",
    "@output/-1",
    "straight",
    "straight/",
    "straight/.",
    "dangling",
    "circle",
    "circle/x",
];

/// All of these paths, and more that need links or directory names.
fn inputs(home: &Path) -> Vec<String> {
    let mut inputs: Vec<String> = PATHS.iter().map(|path| (*path).to_owned()).collect();
    for link in ["up", "out", "abs", "slash", "proc", "cwd", "dir/up", "dir/back", "chain", "chain2", "gone", "dots"] {
        for rest in
            ["", "/", "/treasure", "/outside/treasure", "/environ", "/etc/passwd", "/new", "/new/er", "/../outside/new"]
        {
            inputs.push(format!("{link}{rest}"));
        }
    }
    let home = home.display();
    for absolute in
        ["/tree/../outside/treasure", "/outside/treasure", "/tree/out/treasure", "/treetop", "/tree/..", "/outside/new"]
    {
        inputs.push(format!("{home}{absolute}"));
    }
    inputs.push("x".repeat(300));
    inputs.push("d/".repeat(3000));
    inputs.push("../".repeat(1000) + "etc/passwd");
    inputs
}

/// Every argument through which a tool takes a path.
fn calls(path: &str) -> [(&'static str, Value); 9] {
    [
        ("files-read", json!({"path": path})),
        ("files-list", json!({"path": path})),
        ("files-glob", json!({"pattern": "**", "path": path})),
        ("files-glob", json!({"pattern": path})),
        ("search-grep", json!({"pattern": ".", "path": path})),
        ("search-grep", json!({"pattern": ".", "glob": path})),
        ("files-write", json!({"path": path, "content": "written\n"})),
        ("files-edit", json!({"path": path, "old": "c", "new": "C"})),
        ("files-delete", json!({"path": path})),
    ]
}

/// The files outside the workspace, by path.
fn outside(home: &Path) -> BTreeMap<String, Vec<u8>> {
    let directory = home.join("outside");
    let entries = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let mut found: BTreeMap<_, _> =
        entries.map(|path| (path.display().to_string(), fs::read(&path).unwrap())).collect();
    for entry in fs::read_dir(home).unwrap() {
        found.insert(entry.unwrap().path().display().to_string(), Vec::new());
    }
    found
}

#[tokio::test]
async fn no_path_leads_any_tool_outside() {
    let paths = inputs(fixture().home.path());
    assert!(paths.len() >= 80, "{}", paths.len());
    let mut calls_made = 0;
    for number in 0..calls("").len() {
        let fixture = fixture();
        let before = outside(fixture.home.path());
        for path in inputs(fixture.home.path()) {
            let (tool, input) = calls(&path)[number].clone();
            let outcome = fixture.call(tool, input).await;
            // An outcome may repeat the requested path, and a listing shows the target of a link.
            // Neither reveals anything.
            let reported: Vec<String> = outcome.content.lines().map(|line| line.replace(&path, "")).collect();
            let listed =
                reported.iter().any(|line| !outcome.is_error && line.contains(SECRET) && !line.contains(" -> "));
            let read =
                reported.iter().any(|line| [CANARY, "root:x:0", "PATH="].iter().any(|secret| line.contains(secret)));
            assert!(!listed && !read, "{tool} {path:?}: {reported:?}");
            assert!(!outcome.content.contains("internal error"), "{tool} {path:?}: {reported:?}");
            assert_eq!(outside(fixture.home.path()), before, "{tool} {path:?}");
            calls_made += 1;
        }
    }
    assert_eq!(calls_made, paths.len() * calls("").len());
}

/// Swaps the two names back and forth while `work` runs.
fn racing<T>(a: &Path, b: &Path, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        over.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Returns whether a plain read by path reaches the file outside. This proves that the race exists.
fn plain_read_escapes(path: &Path) -> bool {
    (0..1_000_000).any(|_| fs::read_to_string(path).is_ok_and(|text| text.contains(CANARY)))
}

#[test]
fn a_directory_that_turns_into_a_link_and_back_lets_nothing_out() {
    let fixture = fixture();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let before = outside(fixture.home.path());
    fixture.file(&format!("swap/{SECRET}"), "inside\n");
    let (swap, link) = (fixture.tree().join("swap"), fixture.tree().join("out"));
    let (mut escaped, mut inside) = (false, 0);
    racing(&swap, &link, || {
        escaped |= plain_read_escapes(&swap.join(SECRET));
        for round in 0..300 {
            for (tool, input) in [
                ("files-read", json!({"path": "swap/treasure"})),
                ("files-list", json!({"path": "swap"})),
                ("files-write", json!({"path": "swap/treasure", "content": format!("inside {round}\n")})),
                ("files-write", json!({"path": "swap/new/er", "content": "new\n"})),
                ("files-edit", json!({"path": "swap/treasure", "old": "inside", "new": "still inside"})),
                ("files-glob", json!({"pattern": "**", "path": "swap"})),
                ("search-grep", json!({"pattern": "."})),
                ("files-delete", json!({"path": "swap/new/er"})),
            ] {
                let outcome = runtime.block_on(fixture.call(tool, input));
                assert!(!outcome.content.contains(CANARY), "{tool}: {}", outcome.content);
                inside += usize::from(!outcome.is_error);
            }
        }
    });
    assert_eq!(outside(fixture.home.path()), before);
    assert!(escaped && inside > 0, "a plain read escaped: {escaped}; {inside} calls worked");
}

#[test]
fn a_link_that_comes_and_goes_does_not_reach_a_protected_file() {
    let fixture = ToolFixture::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    fixture.file("lanes/verify.yaml", CANARY);
    fixture.file("swap/verify.yaml", "free\n");
    let (swap, link) = (fixture.tree().join("swap"), fixture.tree().join("link"));
    symlink("lanes", &link).unwrap();
    let escaped = racing(&swap, &link, || {
        for round in 0..300 {
            let path = "swap/verify.yaml";
            runtime.block_on(fixture.call("files-write", json!({"path": path, "content": format!("free {round}\n")})));
            runtime.block_on(fixture.call("files-edit", json!({"path": path, "old": "free", "new": "freed"})));
            runtime.block_on(fixture.call("files-delete", json!({"path": path})));
        }
        plain_read_escapes(&swap.join("verify.yaml"))
    });
    assert_eq!(fs::read_to_string(fixture.tree().join("lanes/verify.yaml")).unwrap(), CANARY);
    assert!(escaped);
}
