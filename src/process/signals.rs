//! The signals that this process wants to hear.

use nix::sys::signal::{SigSet, Signal};

/// Hears again what whoever started this process may have blocked: the ends of programs, and what asks to stop. It holds for this
/// thread and those that it starts, so it comes first of all.
pub fn unblock_signals() {
    let heard = [Signal::SIGCHLD, Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM, Signal::SIGXFSZ];
    if let Err(error) = SigSet::from_iter(heard).thread_unblock() {
        tracing::debug!(%error, "cannot unblock signals; the ends of steps are seen late");
    }
}
