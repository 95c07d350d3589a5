//! SIGINT and SIGTERM: the first asks the run to stop, the second kills what runs and ends the process.

use crate::driver::Stop;
use crate::verdict::StopCause;
use tokio::signal::unix::{SignalKind, signal};

/// Turns signals into `stop` for as long as the returned guard lives. Must be called inside the runtime.
///
/// # Errors
/// When the handlers cannot be set.
pub(super) fn listen(stop: Stop) -> std::io::Result<Listening> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        loop {
            let cause = tokio::select! {
                Some(()) = interrupt.recv() => StopCause::Interrupt,
                Some(()) = terminate.recv() => StopCause::Terminate,
                else => return,
            };
            if stop.token().is_cancelled() {
                insist(cause);
            }
            stop.ask(cause);
        }
    });
    Ok(Listening { _tasks: tasks })
}

/// Listens while it lives.
#[derive(Debug)]
pub(super) struct Listening {
    _tasks: tokio::task::JoinSet<()>,
}

#[expect(clippy::disallowed_methods, clippy::exit, reason = "asked twice: nothing is waited for any more")]
fn insist(cause: StopCause) {
    crate::process::kill_everything();
    std::process::exit(i32::from(crate::verdict::Reason::Cancelled.exit_code(Some(cause))));
}
