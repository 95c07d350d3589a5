//! The size of the terminal on standard error.

use super::rows::WIDEST;
use std::sync::atomic::{AtomicBool, Ordering};

/// True if live lines are drawn.
static IS_DRAWN: AtomicBool = AtomicBool::new(false);

/// Records that live lines are drawn, if they are.
pub(super) fn draws(is_wanted: bool) {
    IS_DRAWN.fetch_or(is_wanted, Ordering::Relaxed);
}

/// Returns the columns and rows of the terminal.
pub(super) fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).map(|size| (size.ws_col.into(), size.ws_row.into()));
    match size {
        Ok((columns, rows)) if columns > 0 && rows > 0 => (columns, rows),
        Ok(_) | Err(_) => (80, 24),
    }
}

/// Returns the columns of a line above the live lines: a little narrower than the terminal, and
/// limited for easy reading.
pub(in crate::cli) fn width() -> usize {
    size().0.saturating_sub(1).clamp(20, WIDEST)
}

/// Returns the columns that a line may have, if live lines are drawn.
pub(in crate::cli) fn drawn_width() -> Option<usize> {
    IS_DRAWN.load(Ordering::Relaxed).then(|| size().0.saturating_sub(1).max(20))
}
