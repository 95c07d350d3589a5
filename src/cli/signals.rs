//! SIGINT, SIGTERM and SIGHUP: the first signal asks the run to stop, the second kills all programs
//! and ends the process. SIGTERM or SIGHUP again within two seconds is still the first request.

use crate::driver::StopToken;
use crate::process::Stopwatch;
use crate::verdict::StopCause;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// The message to a person who stops a run.
pub(super) const STOPPING: &str = "stopping; press Ctrl-C again to kill at once";

/// The time in which SIGTERM or SIGHUP counts once. `timeout` and many supervisors signal a program
/// and then its whole process group, so the program gets one request twice.
const SAME_REQUEST: Duration = Duration::from_secs(2);

/// Turns signals into stop requests while the returned guard lives. Must be called inside the
/// runtime.
///
/// # Errors
/// When the handlers cannot be set.
pub(super) fn listen(stop: StopToken) -> std::io::Result<SignalListener> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // A closed terminal ends the run like SIGTERM, unless the process was started to outlive it
    // (nohup).
    let mut hangup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let mut terminated: Option<Stopwatch> = None;
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
            let is_same =
                cause == StopCause::Terminate && terminated.as_ref().is_some_and(|since| since.read() < SAME_REQUEST);
            if stop.token().is_cancelled() && !is_same {
                insist(cause);
            }
            if cause == StopCause::Terminate && terminated.is_none() {
                terminated = Some(Stopwatch::start());
            }
            stop.ask(cause);
        }
    });
    Ok(SignalListener { _tasks: tasks })
}

/// Makes a write beyond the file size limit an error instead of the end of the process
/// (setrlimit(2)). Must be called inside a runtime, which may end: the handler stays. Started
/// programs have their own.
///
/// # Errors
/// When the handler cannot be set.
pub(super) fn survive_limits() -> std::io::Result<()> {
    signal(SignalKind::from_raw(crate::process::FILE_TOO_LARGE)).map(drop)
}

/// Returns true if this process was started with SIGHUP ignored: the first bit of a mask that Linux
/// shows (proc(5), `SigIgn`).
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// A guard that listens to signals until it is dropped.
#[derive(Debug)]
pub(super) struct SignalListener {
    _tasks: tokio::task::JoinSet<()>,
}

#[expect(clippy::disallowed_methods, clippy::exit, reason = "asked twice: nothing is waited for any more")]
fn insist(cause: StopCause) {
    crate::process::kill_everything();
    super::live::give_up();
    std::process::exit(i32::from(crate::verdict::Reason::Cancelled.exit_code(Some(cause))));
}
