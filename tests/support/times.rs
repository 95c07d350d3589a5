//! The time of each test, kept in a file for the table that `tests/times.rs` prints after the last
//! test program.

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Instant;

thread_local! {
    /// Each test has its own thread, which the harness names after the test.
    static TEST: RefCell<Option<Test>> = const { RefCell::new(None) };
}

struct Test(Instant);

/// Records the time from this call until the end of this thread as that of its test. Later calls in
/// the same test have no effect.
pub(crate) fn record_time() {
    TEST.with_borrow_mut(|test| {
        test.get_or_insert_with(|| Test(Instant::now()));
    });
}

impl Drop for Test {
    fn drop(&mut self) {
        let (thread, milliseconds) = (std::thread::current(), self.0.elapsed().as_millis());
        let Some(name) = thread.name().filter(|name| name.contains("::")) else { return };
        let path = format!("{}/times.{}", env!("CARGO_TARGET_TMPDIR"), std::os::unix::process::parent_id());
        let line = format!("{milliseconds} {name}\n");
        let file = OpenOptions::new().append(true).create(true).open(path);
        let _only_the_table_lacks_it = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
