//! Disks that refuse: an error of every kind at every call that writes, syncs or names a file, a
//! full disk, and a limit on the size of files. The writer ends with an error and without a panic.
//! Acknowledged records exist, and the next process continues.

use crate::disk::judge::{Loss, Promises};
use crate::disk::story::{STORIES, WORKSPACE, begin, can_trace, tell, writer};
use crate::support::{Need, amount, dice, draw};
use fledge::store::{RunListFilter, Store};
use std::path::Path;
use std::process::{Command, Output};

const COMPLAINTS: [&str; 3] = ["ENOSPC", "EIO", "EDQUOT"];
/// The story with large records, which have separate files.
const LARGE: usize = 3;

#[test]
fn whatever_call_fails_and_however_the_writer_says_so_and_the_next_one_goes_on() {
    let mut failed = 0;
    let calls = [
        ("pwrite64", 1..90),
        ("write", 4..20),
        ("fdatasync,fsync", 1..27),
        ("ftruncate", 1..4),
        ("mkdir", 1..9),
        ("rename", 1..3),
    ];
    if !can_trace() {
        return Need::Strace.lacks("no strace, or it may not trace");
    }
    for (call, times) in calls {
        for when in draw(call, times.len().div_ceil(9), times.collect()) {
            let complaint = COMPLAINTS[when % COMPLAINTS.len()];
            let home = crate::support::temp_dir();
            let (calls, inject) = (format!("trace={call}"), format!("inject={call}:error={complaint}:when={when}"));
            let starter = ["strace", "-f", "-o", "/dev/null", "-e", &calls, "-e", &inject];
            let ended = writer(&starter, LARGE, 0, home.path()).unwrap();
            failed += u32::from(has_failed(&ended, home.path(), &format!("{complaint} at {call} {when}")));
        }
    }
    assert!(failed >= 9, "{failed}");
}

#[test]
fn files_that_may_not_grow_end_the_writer_and_nothing_else() {
    // Limits in blocks of 512 bytes. The signal at the limit is first ignored; in the last cases it
    // kills.
    for (limit, is_told) in
        [(0, true), (1, true), (40, true), (90, true), (135, true), (155, true), (165, true), (90, false), (155, false)]
    {
        let home = crate::support::temp_dir();
        let trap = if is_told { "trap '' XFSZ;" } else { "" };
        let shell = format!("{trap} ulimit -f {limit}; exec \"$@\"");
        let ended = writer(&["sh", "-c", &shell, "sh"], LARGE, 0, home.path()).unwrap();
        let has_failed = if is_told { has_failed(&ended, home.path(), &shell) } else { !ended.status.success() };
        assert!(has_failed, "{shell}: {}", String::from_utf8_lossy(&ended.stderr));
        if !is_told {
            promises(&ended).are_kept_in(home.path(), Loss::Process).unwrap();
        }
    }
}

#[test]
fn on_a_full_disk_it_is_said_and_when_there_is_room_again_it_goes_on() {
    let room = crate::support::temp_dir();
    let (mut failed, room) = (0, room.path().to_str().unwrap());
    // One size in every 44 kB, or all.
    let (step, first) = amount((44, dice("sizes of full disks").index(44)), (4, 0));
    for size in (24 + first..640).step_by(step) {
        let mount = format!("mount -t tmpfs -o size={size}k none {room}");
        let Some(ended) = mounting(&mount, "disk::full::tells_a_story_in_a_small_room", room) else { return };
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{size}k: {:?}: {said}", ended.status);
        failed += u32::from(said.contains("failed - 0 "));
    }
    assert!(failed >= 5, "{failed}");
}

#[test]
fn tells_a_story_in_a_small_room() {
    let Ok(room) = std::env::var("FLEDGE_DISK_PLACE") else { return };
    let (room, mut promises) = (Path::new(&room), Promises::default());
    let mut say = |word: String| promises.hear(&word);
    if let Err(error) = tell(STORIES[LARGE].2[0], room, &mut say) {
        eprintln!("failed - 0 {error}: {:?}", std::error::Error::source(&error));
    }
    let larger =
        Command::new("mount").args(["--options-mode=ignore", "-o", "remount,size=8m"]).arg(room).status().unwrap();
    assert!(larger.success());
    promises.are_kept_in(room, Loss::Process).unwrap();
}

#[test]
fn what_may_only_be_read_is_refused_and_says_so() {
    let home = crate::support::temp_dir();
    let mounted = home.path().to_str().unwrap();
    begin(&Store::open(home.path(), Path::new(WORKSPACE)).unwrap(), "a").unwrap().sync().unwrap();
    let mount = format!("mount --bind {mounted} {mounted} && mount -o remount,ro,bind {mounted}");
    let Some(ended) = mounting(&mount, "disk::full::opens_what_may_only_be_read", mounted) else { return };
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn opens_what_may_only_be_read() {
    let Ok(place) = std::env::var("FLEDGE_DISK_PLACE") else { return };
    let (state, workspace) = (Path::new(&place), Path::new(WORKSPACE));
    let store = Store::existing(state, workspace).unwrap().unwrap();
    assert_eq!(store.runs(&RunListFilter::default()).unwrap().len(), 1, "who only looks sees what there is");
    let error = Store::open(state, workspace).and_then(|store| begin(&store, "b").map(drop)).unwrap_err();
    let said = format!("{error}: {}", std::error::Error::source(&error).unwrap());
    assert!(said.starts_with("cannot ") && said.to_lowercase().replace('-', "").contains("readonly"), "{said}");
}

/// Runs a test in a process that may mount, after the mount.
fn mounting(mount: &str, test: &str, place: &str) -> Option<Output> {
    let shell = format!("{mount} || exit 9; exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", &shell, "sh"]).arg(std::env::current_exe().unwrap());
    let ended = command.args(["--exact", test, "--nocapture"]).env("FLEDGE_DISK_PLACE", place).output().ok();
    let mounted = ended.filter(|ended| {
        ended.status.code() != Some(9) && !String::from_utf8_lossy(&ended.stderr).starts_with("unshare: ")
    });
    if mounted.is_none() {
        Need::Root.lacks("this user may not mount a file system");
    }
    mounted
}

/// Returns true if a writer failed. Asserts that the failure was orderly and that the files keep
/// all promises.
#[track_caller]
fn has_failed(ended: &Output, home: &Path, what: &str) -> bool {
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{what}: {:?}: {said}", ended.status);
    promises(ended).are_kept_in(home, Loss::Process).unwrap_or_else(|broken| panic!("{what}: {broken}\n{said}"));
    said.contains("failed - 0 ")
}

/// Returns the promises that a writer announced.
fn promises(ended: &Output) -> Promises {
    let mut promises = Promises::default();
    let said = String::from_utf8_lossy(&ended.stderr);
    said.lines()
        .filter(|line| line.split(' ').nth(2).is_some_and(|seq| seq.parse::<u64>().is_ok()))
        .for_each(|line| promises.hear(line));
    promises
}
