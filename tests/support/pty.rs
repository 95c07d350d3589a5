//! A terminal that tests read from and write to.

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;

/// Opens a terminal with this many columns and rows. Returns the end for the test, and the end for
/// the program.
///
/// Neither end becomes the controlling terminal of the tests. If it did, and the tests led a
/// session, its close would end them by SIGHUP.
pub(crate) fn open_terminal(columns: u16, rows: u16) -> (File, File) {
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&main).unwrap();
    unlockpt(&main).unwrap();
    let mut size = rustix::termios::tcgetwinsize(&main).unwrap();
    (size.ws_col, size.ws_row) = (columns, rows);
    rustix::termios::tcsetwinsize(&main, size).unwrap();
    let path = ptsname(&main, Vec::new()).unwrap();
    let flags = OFlags::NOCTTY.bits().cast_signed();
    let own = File::options().read(true).write(true).custom_flags(flags).open(path.to_str().unwrap()).unwrap();
    (File::from(main), own)
}
