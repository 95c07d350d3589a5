//! Which processes are alive, by the kernel's own list.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A number of seconds for `sleep` that no other test and no other run of the tests uses: what bears it is ours.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("3600.{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The command lines of all processes that have this text in theirs. Ended ones that wait to be reaped have none.
pub(crate) fn running_with(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let command_line = |entry: std::fs::DirEntry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        let bytes = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&bytes).replace('\0', " "))
    };
    entries.filter_map(command_line).filter(|line| line.contains(text)).collect()
}

/// Insists that no process has this text in its command line, or that it is on its way out: one that was killed needs a moment.
#[track_caller]
pub(crate) fn must_be_gone(text: &str) {
    let late = Instant::now() + Duration::from_secs(2);
    while !running_with(text).is_empty() {
        assert!(Instant::now() < late, "still alive: {:?}", running_with(text));
        std::thread::yield_now();
    }
}
