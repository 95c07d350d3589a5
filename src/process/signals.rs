//! The signals that this process needs.

use nix::sys::signal::{SigSet, Signal};

/// Unblocks the signals that announce ended programs and ask this process to stop, in case its
/// parent blocked them. This holds for this thread and those that it starts, so call it first of
/// all.
pub fn unblock_signals() {
    let received = [Signal::SIGCHLD, Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM, Signal::SIGXFSZ];
    if let Err(error) = SigSet::from_iter(received).thread_unblock() {
        tracing::debug!(%error, "cannot unblock signals; fledge notices the end of steps late");
    }
}
