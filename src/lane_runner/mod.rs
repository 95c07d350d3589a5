//! Drives a lane's course with real processes. What is to be done is decided by [`crate::lane::Course`]; here it is done, and
//! what came of it is told. When [`run_lane`] returns or is dropped, nothing of the lane is left running.

mod excerpt;
mod lines;
mod report;

pub use crate::lane::LaneRuling;

use crate::lane::{Course, Lane, Order, Step};
use crate::limits::{GRACE, LOG_LIMIT};
use crate::process::{self, Ended, Invocation};
use crate::verdict::{StepProgress, StepReport};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lines::Lines;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Where a lane runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// The directory that steps start in, and that their `dir` is relative to.
    pub root: PathBuf,
    /// The environment of every step; the lane's and the step's own variables win over it. Nothing else is inherited.
    pub env: Vec<(String, String)>,
    /// The directory for the logs, one file a step.
    pub log_dir: PathBuf,
    /// How many steps may run at a time.
    pub jobs: usize,
}

/// A lane that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneOutcome {
    /// What it said.
    pub ruling: LaneRuling,
    /// All steps in the order of the lane, with those that were not started.
    pub steps: Vec<StepReport>,
    /// From the first order to the end of the last step.
    pub duration: Duration,
}

/// Runs a lane to its end. Needs a tokio runtime with I/O and time.
pub async fn run_lane(
    lane: &Lane,
    room: &Room,
    stop: &CancellationToken,
    on_event: &(dyn Fn(StepProgress) + Send + Sync),
) -> LaneOutcome {
    let watch = process::Stopwatch::start();
    let steps: Vec<&Step> = lane.all_steps().collect();
    let stops: Vec<CancellationToken> = steps.iter().map(|_| CancellationToken::new()).collect();
    let mut reports: Vec<StepReport> = steps.iter().map(|step| report::skipped(lane, step)).collect();
    let mut course = Course::new(lane, room.jobs);
    let mut running = FuturesUnordered::new();
    let deadline = tokio::time::sleep(lane.timeout);
    tokio::pin!(deadline);

    let (mut is_stopped, mut is_late) = (stop.is_cancelled(), false);
    let mut orders = if is_stopped { course.cancel() } else { course.start() };
    let ruling = 'over: loop {
        for order in orders {
            match order {
                Order::Start(number) => {
                    let work = run_step(lane, steps[number], number, room, &stops[number], on_event);
                    running.push(async move { (number, work.await) });
                }
                Order::Stop(number) => stops[number].cancel(),
                Order::Done(ruling) => break 'over ruling,
            }
        }
        orders = tokio::select! {
            biased;
            () = stop.cancelled(), if !is_stopped => {
                is_stopped = true;
                course.cancel()
            }
            () = &mut deadline, if !is_late => {
                is_late = true;
                course.expire()
            }
            Some((number, (ended, log))) = running.next() => {
                let report = report::ended(lane, steps[number], &ended, log, course.status_of_stopped());
                on_event(StepProgress::Ended(report.clone()));
                let status = report.status;
                reports[number] = report;
                course.ended(number, status)
            }
        };
    };
    LaneOutcome { ruling, steps: reports, duration: watch.read() }
}

async fn run_step(
    lane: &Lane,
    step: &Step,
    number: usize,
    room: &Room,
    stop: &CancellationToken,
    on_event: &(dyn Fn(StepProgress) + Send + Sync),
) -> (Ended, PathBuf) {
    let (lane_name, name) = (&lane.name, &step.name);
    on_event(StepProgress::Started { lane: lane_name.clone(), step: name.clone(), command: step.run.clone() });
    let tell = |line| on_event(StepProgress::Output { lane: lane_name.clone(), step: name.clone(), line });
    let lines = Mutex::new(Lines::default());
    let on_output = |bytes: &[u8]| {
        let whole = lines.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        whole.into_iter().for_each(tell);
    };

    let log = room.log_dir.join(format!("{}-{:02}-{}.log", file_name(lane_name), number + 1, file_name(name)));
    let mut env: BTreeMap<String, String> = room.env.iter().cloned().collect();
    env.extend(lane.env.clone());
    env.extend(step.env.clone());
    let invocation = Invocation {
        program: "/bin/sh".into(), // by path: PATH may lead to what the agent wrote
        args: vec!["-c".into(), step.run.clone()],
        dir: step.dir.as_ref().map_or_else(|| room.root.clone(), |dir| room.root.join(dir)),
        env: env.into_iter().collect(),
        timeout: step.timeout,
        grace: GRACE,
        log: Some(log.clone()),
        log_limit: LOG_LIMIT,
    };
    let ended = process::run(invocation, stop, &on_output).await;
    let rest = lines.lock().unwrap_or_else(PoisonError::into_inner).rest();
    rest.into_iter().for_each(tell);
    (ended, log)
}

/// A name as part of a file's name.
fn file_name(name: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() || "-_".contains(char) { char } else { '-' };
    name.chars().take(40).map(plain).collect()
}

#[cfg(test)]
mod tests;
