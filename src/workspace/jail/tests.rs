//! Paths and links that try to leave the root, and files written below the root.

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

/// A root with `inside/file`, and a secret beside it.
fn jail() -> (tempfile::TempDir, Jail) {
    let home = crate::test_support::temp_dir();
    fs::create_dir_all(home.path().join("root/inside")).unwrap();
    fs::write(home.path().join("root/inside/file"), "text").unwrap();
    fs::write(home.path().join("secret"), "secret").unwrap();
    let jail = Jail::open(&home.path().join("root")).unwrap();
    (home, jail)
}

fn read(jail: &Jail, path: &str) -> Result<String, String> {
    let bytes =
        jail.path(path).and_then(|path| jail.locate(&path, FinalLink::Follow)).and_then(|place| place.read(100));
    bytes.map(|bytes| String::from_utf8(bytes).unwrap()).map_err(|error| error.to_string())
}

#[test]
fn links_are_followed_inside_and_refused_outside() {
    let (home, jail) = jail();
    let root = home.path().join("root");
    symlink("inside", root.join("in")).unwrap();
    symlink("../root/inside", root.join("out-and-in")).unwrap();
    symlink(root.join("inside/file"), root.join("absolute")).unwrap();
    symlink("../secret", root.join("up")).unwrap();
    symlink("/etc/passwd", root.join("far")).unwrap();
    symlink("/proc/self", root.join("proc")).unwrap();
    symlink("circle", root.join("circle")).unwrap();
    symlink("in/../up", root.join("chain")).unwrap();
    assert_eq!(read(&jail, "in/file"), Ok("text".into()));
    assert_eq!(read(&jail, "absolute"), Ok("text".into()));
    for path in ["out-and-in/file", "up", "far", "proc/environ", "chain"] {
        assert_eq!(read(&jail, path), Err(format!("`{path}` leads outside the workspace")));
    }
    assert_eq!(read(&jail, "circle"), Err("`circle` goes through too many symbolic links".into()));
}

#[test]
fn a_place_knows_where_it_really_is() {
    let (home, jail) = jail();
    symlink("inside", home.path().join("root/in")).unwrap();
    symlink("in/new/er", home.path().join("root/later")).unwrap();
    let real = |path: &str, last| jail.locate(&jail.path(path).unwrap(), last).unwrap().real().to_string();
    assert_eq!(real("in/file", FinalLink::Follow), "inside/file");
    assert_eq!(real("later", FinalLink::Follow), "inside/new/er");
    assert_eq!(real("later", FinalLink::Keep), "later");
    assert_eq!(real("in/a/b/c", FinalLink::Follow), "inside/a/b/c");
}

#[test]
fn a_write_keeps_the_mode_makes_directories_and_leaves_nothing_else() {
    let (home, jail) = jail();
    let root = home.path().join("root");
    fs::set_permissions(root.join("inside/file"), fs::Permissions::from_mode(0o750)).unwrap();
    for path in ["inside/file", "inside/new/deep/file"] {
        jail.locate(&jail.path(path).unwrap(), FinalLink::Follow).unwrap().write(b"new", 0o600).unwrap();
        assert_eq!(read(&jail, path), Ok("new".into()));
    }
    let mode = |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("inside/file"), mode("inside/new/deep/file")), (0o750, 0o600));
    assert_eq!(fs::read_dir(root.join("inside")).unwrap().count(), 2);
}

#[test]
fn a_write_does_not_go_through_a_hard_link() {
    let (home, jail) = jail();
    fs::hard_link(home.path().join("secret"), home.path().join("root/twin")).unwrap();
    jail.locate(&jail.path("twin").unwrap(), FinalLink::Follow).unwrap().write(b"new", 0o600).unwrap();
    assert_eq!(fs::read_to_string(home.path().join("secret")).unwrap(), "secret");
}

#[test]
fn a_link_put_in_place_after_the_look_is_not_followed() {
    let (home, jail) = jail();
    let place = jail.locate(&jail.path("inside/file").unwrap(), FinalLink::Follow).unwrap();
    let new = jail.locate(&jail.path("fresh/file").unwrap(), FinalLink::Follow).unwrap();
    fs::remove_file(home.path().join("root/inside/file")).unwrap();
    symlink("../../secret", home.path().join("root/inside/file")).unwrap();
    symlink("..", home.path().join("root/fresh")).unwrap();
    assert_eq!(place.read(10).unwrap_err().to_string(), "`inside/file` is a symbolic link, not a file");
    assert!(place.write(b"x", 0o600).is_err());
    assert!(new.write(b"x", 0o600).is_err());
    assert!(!home.path().join("file").exists());
    assert_eq!(fs::read_to_string(home.path().join("secret")).unwrap(), "secret");
}

#[test]
fn special_files_are_refused_without_waiting() {
    let (home, jail) = jail();
    let root = home.path().join("root");
    rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    for path in ["pipe", "socket"] {
        assert_eq!(read(&jail, path), Err(format!("`{path}` is a pipe, socket or device, not a file")));
        let place = jail.locate(&jail.path(path).unwrap(), FinalLink::Follow).unwrap();
        assert!(place.write(b"x", 0o600).is_err());
    }
}

#[test]
fn names_that_are_no_text_are_listed() {
    use std::os::unix::ffi::OsStrExt;
    let (home, jail) = jail();
    let name = OsStr::from_bytes(b"\xff.txt");
    fs::write(home.path().join("root").join(name), "x").unwrap();
    let (folder, _) = jail.folder(&jail.path(".").unwrap()).unwrap();
    assert_eq!(
        folder.entries().unwrap(),
        vec![
            FolderEntry { name: "inside".into(), kind: JailEntryKind::Folder },
            FolderEntry { name: name.to_owned(), kind: JailEntryKind::File }
        ]
    );
    assert_eq!(shown(name), "\u{fffd}.txt");
}

#[test]
fn more_than_the_limit_is_not_read() {
    let (_home, jail) = jail();
    let place = jail.locate(&jail.path("inside/file").unwrap(), FinalLink::Follow).unwrap();
    assert_eq!(place.read(4).unwrap(), b"text");
    assert_eq!(
        place.read(3).unwrap_err().to_string(),
        "`inside/file` has 4 bytes, more than the limit of 3 for one read"
    );
}

#[test]
fn the_whole_file_system_is_no_workspace() {
    assert!(matches!(Jail::open(Path::new("/")), Err(JailError::Root { .. })));
}
