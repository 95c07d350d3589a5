//! SIGINT, SIGTERM and SIGHUP: the first asks the run to stop, the second kills what runs and ends the process.

use crate::driver::Stop;
use crate::verdict::StopCause;
use tokio::signal::unix::{SignalKind, signal};

/// What a person is told who wants to stop.
pub(super) const STOPPING: &str = "stopping; Ctrl-C again kills at once";

/// Turns signals into `stop` for as long as the returned guard lives. Must be called inside the runtime.
///
/// # Errors
/// When the handlers cannot be set.
pub(super) fn listen(stop: Stop) -> std::io::Result<Listening> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // A terminal that is closed ends the run like SIGTERM, unless it was started so as to outlive it (nohup).
    let mut hangup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        loop {
            let hung_up = async {
                match &mut hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            let cause = tokio::select! {
                Some(()) = interrupt.recv() => StopCause::Interrupt,
                Some(()) = terminate.recv() => StopCause::Terminate,
                Some(()) = hung_up => StopCause::Terminate,
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

/// From now on a file that may not grow is an error of the write, which says so, and not the end of the process (setrlimit(2)).
/// Must be called inside a runtime; it need not last, since a handler that is set stays. Programs that are started have their own.
///
/// # Errors
/// When the handler cannot be set.
pub(super) fn survive_limits() -> std::io::Result<()> {
    signal(SignalKind::from_raw(crate::process::FILE_TOO_LARGE)).map(drop)
}

/// Whether this process was started with SIGHUP ignored: the first bit of a mask that Linux shows (proc(5), `SigIgn`).
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Listens while it lives.
#[derive(Debug)]
pub(super) struct Listening {
    _tasks: tokio::task::JoinSet<()>,
}

#[expect(clippy::disallowed_methods, clippy::exit, reason = "asked twice: nothing is waited for any more")]
fn insist(cause: StopCause) {
    crate::process::kill_everything();
    super::live::give_up();
    std::process::exit(i32::from(crate::verdict::Reason::Cancelled.exit_code(Some(cause))));
}
