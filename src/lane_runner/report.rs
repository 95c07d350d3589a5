//! What came of a step, in the words of a verdict. Pure.

use super::excerpt::excerpt;
use crate::duration::show_duration;
use crate::lane::{Lane, Step};
use crate::process::{End, Ended};
use crate::verdict::{StepReport, StepStatus};
use std::path::PathBuf;

/// Bytes of output that are looked at for an excerpt: all that is kept of it.
const LOOKED_AT: usize = 256 * 1024;

/// The report of a step that was not started.
pub(super) fn skipped(lane: &Lane, step: &Step) -> StepReport {
    StepReport {
        lane: lane.name.clone(),
        step: step.name.clone(),
        command: step.run.clone(),
        status: StepStatus::Skipped,
        exit_code: None,
        signal: None,
        duration_ms: 0,
        log: None,
        excerpt: String::new(),
        note: String::new(),
    }
}

/// The report of a step that is over. `stopped` is what one is that was ended by an order to stop.
pub(super) fn ended(lane: &Lane, step: &Step, ended: &Ended, log: PathBuf, stopped: StepStatus) -> StepReport {
    let (status, mut note) = match &ended.end {
        End::Exited(0) => (StepStatus::Passed, String::new()),
        End::Exited(126 | 127) => (StepStatus::Failed, "the shell could not find or run a program".into()),
        End::Exited(_) => (StepStatus::Failed, String::new()),
        End::Signalled(9) => (StepStatus::Failed, "killed by signal 9, not by fledge; was memory short?".into()),
        End::Signalled(signal) => (StepStatus::Failed, format!("ended by signal {signal}")),
        End::TimedOut => {
            let limit = step.timeout.map(show_duration).unwrap_or_default();
            (StepStatus::TimedOut, format!("ran out of its time of {limit}"))
        }
        End::Stopped if stopped == StepStatus::TimedOut => {
            (stopped, format!("the lane ran out of its time of {}", show_duration(lane.timeout)))
        }
        End::Stopped => (stopped, String::new()),
        End::NotStarted(why) => (StepStatus::Errored, why.clone()),
    };
    if ended.leaked {
        note =
            [note.as_str(), "left processes behind, which were killed"].join(if note.is_empty() { "" } else { "; " });
    }
    let was_started = !matches!(ended.end, End::NotStarted(_));
    StepReport {
        status,
        exit_code: if let End::Exited(code) = ended.end { Some(code) } else { None },
        signal: if let End::Signalled(signal) = ended.end { Some(signal) } else { None },
        duration_ms: u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX),
        log: was_started.then(|| log.to_string_lossy().into_owned()),
        excerpt: excerpt(&ended.output.text(LOOKED_AT), status),
        note,
        ..skipped(lane, step)
    }
}
