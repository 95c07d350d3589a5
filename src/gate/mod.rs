//! The gate: the lanes of a run with everything that defines them, frozen before the first model call. Judges the workspace
//! and says so in a [`Verdict`].
//!
//! First form: the room is the workspace itself. What defines the gate is read into memory when it is frozen; before each
//! judgement it is compared, put back where it differs, and the difference is a finding.

mod detection;
mod feedback;
mod freeze;
mod kept;
mod pages;
mod protected;
mod seal;

pub use detection::{InitFault, look, look_if_no_lanes, write_detected};
pub use freeze::{Checked, GateFault, Listed, Loaded, can_run, check, freeze, list, load};
pub use kept::ThawFault;
pub use seal::{Difference, Seal};

use crate::lane::{Facts, Lane, Selection};
use crate::lane_runner::{LaneRuling, Room, recall, remember, run_lane};
use crate::limits::FEEDBACK_LIMIT;
use crate::process::Stopwatch;
use crate::task::OnTamper;
use crate::verdict::{Finding, Ruling, StepProgress, StepReport, Verdict};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// A frozen gate.
#[derive(Debug)]
pub struct Gate {
    /// The lanes, in the order in which they run.
    pub lanes: Vec<Lane>,
    /// A digest of the lanes as they were parsed: the same gate has the same one.
    pub digest: String,
    /// What is to be known about them, for people; empty when all is as the project says.
    pub notes: Vec<String>,
    /// What may not be changed, as it was.
    pub seal: Arc<Seal>,
}

/// Where and how a gate runs.
#[derive(Debug, Clone)]
pub struct Site {
    /// The workspace.
    pub root: PathBuf,
    /// The environment of steps, whole.
    pub env: Vec<(String, String)>,
    /// Where step logs go; a folder for each attempt is made in it.
    pub logs: PathBuf,
    /// The folder of what is kept of the project, where how long steps took is remembered.
    pub project: PathBuf,
    /// Steps at once.
    pub jobs: usize,
    /// What happens when a protected path was changed.
    pub on_tamper: OnTamper,
}

impl Gate {
    /// Judges the workspace: first what was tampered with, then the lanes, one after the other until one does not pass, then
    /// whether anything protected was written meanwhile: the lanes run what the agent has written.
    pub async fn judge(
        &self,
        site: &Site,
        attempt: u32,
        stop: &CancellationToken,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
    ) -> Verdict {
        let started = Stopwatch::start();
        let restore = site.on_tamper == OnTamper::Restore;
        let Ok((difference, before)) = self.look(move |seal| (seal.inspect(restore), seal.stamps())).await else {
            return errored(Vec::new(), "looking at protected files panicked".into(), started);
        };
        if !difference.findings.is_empty() {
            return tampered(difference, started);
        }
        let verdict = self.run_lanes(site, attempt, stop, on_step, started).await;
        let look = move |seal: &Seal| {
            let touched = seal.touched(&before, &seal.stamps());
            (touched, seal.inspect(restore).left)
        };
        let Ok((touched, left)) = self.look(look).await else {
            return errored(verdict.steps, "looking at protected files panicked".into(), started);
        };
        written_meanwhile(verdict, touched, left)
    }

    /// Looks at protected files on a thread that may block.
    async fn look<T: Send + 'static>(&self, work: impl FnOnce(&Seal) -> T + Send + 'static) -> Result<T, JoinError> {
        let seal = Arc::clone(&self.seal);
        tokio::task::spawn_blocking(move || work(&seal)).await
    }

    async fn run_lanes(
        &self,
        site: &Site,
        attempt: u32,
        stop: &CancellationToken,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
        started: Stopwatch,
    ) -> Verdict {
        let mut steps = Vec::new();
        for lane in &self.lanes {
            let log_dir = site.logs.join(format!("attempt-{attempt}")).join(&lane.name);
            let mut room = Room::new(site.root.clone(), site.env.clone(), log_dir, site.jobs);
            let facts = facts(site);
            room.left_out = lane.left_out(&Selection::All, &facts).unwrap_or_default();
            room.expected = recall(lane, &site.project);
            let outcome = run_lane(lane, &room, stop, on_step).await;
            remember(lane, &outcome, &site.project);
            steps.extend(outcome.steps);
            match outcome.ruling {
                LaneRuling::Passed => {}
                LaneRuling::Failed => return failed(steps, started),
                LaneRuling::Errored => {
                    let why = feedback::could_not_run(&steps);
                    return errored(steps, why, started);
                }
                LaneRuling::Cancelled => return errored(steps, "the gate was stopped".into(), started),
                LaneRuling::NothingRan => {
                    let why = format!("nothing ran in lane `{}`: that proves nothing", lane.name);
                    return errored(steps, why, started);
                }
            }
        }
        verdict(Ruling::Passed, steps, started)
    }
}

/// What decides which steps of a lane run: the variables that steps have. Not what has changed: what git says of that is the
/// agent's to decide, by a commit or an ignore file, so here every step that asks for it runs.
fn facts(site: &Site) -> Facts {
    Facts { variables: site.env.iter().cloned().collect(), changed: None }
}

fn verdict(ruling: Ruling, steps: Vec<StepReport>, started: Stopwatch) -> Verdict {
    let duration_ms = u64::try_from(started.read().as_millis()).unwrap_or(u64::MAX);
    Verdict {
        ruling,
        steps,
        findings: Vec::new(),
        duration_ms,
        feedback: String::new(),
        signature: String::new(),
        notes: Vec::new(),
    }
}

fn failed(steps: Vec<StepReport>, started: Stopwatch) -> Verdict {
    let feedback = feedback::of(&steps, FEEDBACK_LIMIT);
    let signature = feedback::signature(&steps);
    Verdict { feedback, signature, ..verdict(Ruling::Failed, steps, started) }
}

fn errored(steps: Vec<StepReport>, why: String, started: Stopwatch) -> Verdict {
    Verdict { feedback: why, ..verdict(Ruling::Errored, steps, started) }
}

fn tampered(difference: Difference, started: Stopwatch) -> Verdict {
    let Difference { findings, left } = difference;
    Verdict { findings, notes: left, ..verdict(Ruling::Tampered, Vec::new(), started) }
}

/// What a gate run comes to when protected files were written while it ran: a pass counts for nothing, whoever wrote them.
fn written_meanwhile(mut verdict: Verdict, touched: Vec<Finding>, left: Vec<String>) -> Verdict {
    if touched.is_empty() {
        return verdict;
    }
    let names: Vec<&str> = touched.iter().map(|finding| finding.path.as_str()).collect();
    let note = format!("written while the gate ran, although protected: {}", names.join(", "));
    if verdict.passed() {
        verdict.ruling = Ruling::Errored;
        verdict.feedback = format!("{note}; if a step is meant to write there, open it with `allow_edit`");
        verdict.findings = touched;
    }
    verdict.notes.push(note);
    verdict.notes.extend(left);
    verdict
}

#[cfg(test)]
mod tests;
