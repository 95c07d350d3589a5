//! One gate run, from the workspace as the agent left it to a verdict that names a tree.
//!
//! First what defines the gate is looked at, then the tree is taken and compared with the base, then the lanes run in rooms made of that
//! tree, then what their pass rests on: the tests that ran, a planted failure that must be seen, and lanes that only the gate knows.

use super::base::{self, Base, Caches};
use super::candidate::{self, Candidate};
use super::clean::{CleanRoom, Wanted};
use super::evidence::Evidence;
use super::freeze::HOLDOUT;
use super::seal::{Difference, Seal};
use super::{Gate, Site, feedback, planted};
use crate::duration::milliseconds;
use crate::id::TreeId;
use crate::lane::{Flaky, Lane, RoomKind};
use crate::lane_runner::{LaneOutcome, LaneRuling};
use crate::limits::FEEDBACK_LIMIT;
use crate::process::Stopwatch;
use crate::task::OnTamper;
use crate::verdict::{Finding, Proof, Ruling, StepProgress, StepReport, StepStatus, Verdict};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What one gate run goes by.
pub(super) struct Sitting<'a> {
    pub(super) gate: &'a Gate,
    pub(super) site: &'a Site,
    pub(super) attempt: u32,
    pub(super) stop: &'a CancellationToken,
    pub(super) on_step: &'a (dyn Fn(StepProgress) + Send + Sync),
    pub(super) started: Stopwatch,
}

/// How far a gate run has come.
#[derive(Debug, Default)]
struct Record {
    steps: Vec<StepReport>,
    evidence: Evidence,
    notes: Vec<String>,
}

/// What ends a gate run early.
enum Early {
    /// The lanes have spoken.
    Said(Box<Verdict>),
    /// It cannot be judged, for this reason.
    Broken(String),
}

impl<E: Error> From<E> for Early {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        Self::Broken(text)
    }
}

impl Sitting<'_> {
    /// Judges the workspace.
    pub(super) async fn judge(&self) -> Verdict {
        let restore = self.site.on_tamper == OnTamper::Restore;
        let (difference, before) = match self.look(move |seal| (seal.inspect(restore), seal.stamps())).await {
            Ok(looked) => looked,
            Err(why) => return self.errored(&Record::default(), why),
        };
        if !difference.findings.is_empty() {
            return self.tampered(difference);
        }
        let mut record = Record::default();
        let verdict = match self.sit(&mut record).await {
            Ok(verdict) => verdict,
            Err(Early::Said(verdict)) => *verdict,
            Err(Early::Broken(_)) if self.stop.is_cancelled() => self.errored(&record, "the gate was stopped".into()),
            Err(Early::Broken(why)) => self.errored(&record, why),
        };
        let look = move |seal: &Seal| (seal.touched(&before, &seal.stamps()), seal.inspect(restore).left);
        match self.look(look).await {
            Ok((touched, left)) => written_meanwhile(verdict, touched, left),
            Err(why) => self.errored(&record, why),
        }
    }

    async fn sit(&self, record: &mut Record) -> Result<Verdict, Early> {
        let mut tree = self.candidate(record).await?;
        for lane in &self.gate.lanes {
            tree = self.lane(lane, tree, record).await?;
        }
        self.evidence(record)?;
        for lane in &self.gate.lanes {
            self.canary(lane, &tree, record).await?;
        }
        self.held_out(&tree, record).await?;
        let proof = Proof {
            base: self.gate.base().clone(),
            tree,
            lanes: self.gate.digest.clone(),
            room: self.room_word().into(),
            sandbox: self.site.wall.kind().name().into(),
            tests: record.evidence.ran(),
            canaries: self.gate.lanes.iter().filter(|lane| lane.canary.is_some()).count() as u64,
            held_out: self.gate.held_out.len() as u64,
        };
        Ok(Verdict { proof: Some(Box::new(proof)), ..self.verdict(Ruling::Passed, record) })
    }

    /// Takes the tree that is judged, when nothing in it is against the rules.
    async fn candidate(&self, record: &mut Record) -> Result<TreeId, Early> {
        let Candidate { tree, findings, notes } = candidate::take(self.gate, self.site, self.stop).await?;
        record.notes.extend(notes);
        if findings.is_empty() {
            return Ok(tree);
        }
        let mut left = Vec::new();
        if self.site.on_tamper == OnTamper::Restore {
            let paths: Vec<String> = findings.iter().map(|finding| finding.path.clone()).collect();
            if let Err(fault) = self.site.trees.put_back(self.gate.base(), Some(&paths), self.stop).await {
                left.push(format!("cannot put back what was changed: {fault}"));
            }
        }
        Err(Early::Said(Box::new(self.tampered(Difference { findings, left }))))
    }

    /// Runs a lane on a tree; gives the tree that passed, which differs where the lane may write.
    async fn lane(&self, lane: &Lane, tree: TreeId, record: &mut Record) -> Result<TreeId, Early> {
        let mut tree = tree;
        for again in 0..=u8::from(lane.writes) {
            let name = if again == 0 { lane.name.clone() } else { format!("{}-again", lane.name) };
            let (outcome, after) = self.run(lane, &name, &tree, self.on_step).await?;
            self.hear(lane, outcome, record).await?;
            let before = tree.clone();
            match after {
                Some(after) if after != tree => tree = after,
                Some(_) | None => return Ok(tree),
            }
            if !lane.writes {
                return Err(self.wrote(lane, &before, &tree, record).await);
            }
        }
        Err(Early::Broken(format!("lane `{}` does not settle: it changes what it has just changed", lane.name)))
    }

    /// Runs a lane in a room; gives what came of it, and the tree that it left, unless it ran in the workspace itself.
    async fn run(
        &self,
        lane: &Lane,
        name: &str,
        tree: &TreeId,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
    ) -> Result<(LaneOutcome, Option<TreeId>), Early> {
        let logs = self.logs(name);
        if lane.room == RoomKind::InPlace {
            return Ok((self.site.run(lane, self.site.in_place(logs), self.stop, on_step).await, None));
        }
        let caches = self.caches(lane).await?;
        // A lane that only the gate knows may put its own tests among the others.
        let kept = if lane.env.contains_key(HOLDOUT) { &[][..] } else { &self.gate.kept };
        let wanted = Wanted { lane, tree, base: self.gate.base(), caches: caches.as_ref(), kept };
        let room = CleanRoom::make(self.site, name, wanted, self.stop).await?;
        let outcome = self.site.run(lane, room.room(self.site, logs), self.stop, on_step).await;
        let after = self.site.trees.retake(tree, &room.files(), lane.writes, &lane.cache, self.stop).await?;
        room.close().await;
        Ok((outcome, Some(after)))
    }

    fn logs(&self, name: &str) -> PathBuf {
        self.site.logs.join(format!("attempt-{}", self.attempt)).join(name)
    }

    async fn caches(&self, lane: &Lane) -> Result<Option<Caches>, Early> {
        if !Caches::are_wanted(lane) {
            return Ok(None);
        }
        Ok(self.base().await?.caches(lane))
    }

    /// Takes down what a lane said; anything but a pass ends the gate run.
    async fn hear(&self, lane: &Lane, outcome: LaneOutcome, record: &mut Record) -> Result<(), Early> {
        base::show(&outcome, &mut record.evidence);
        let is_flaky = outcome.steps.iter().any(|step| step.status == StepStatus::Flaky);
        record.steps.retain(|step| step.lane != lane.name);
        record.steps.extend(outcome.steps);
        match outcome.ruling {
            LaneRuling::Passed if is_flaky && lane.flaky == Flaky::Fail => {
                let why = format!("lane `{}` passed, but not at the first try, and it says `flaky: fail`", lane.name);
                Err(self.fell_short(record, &why))
            }
            LaneRuling::Passed => Ok(()),
            LaneRuling::Failed => Err(self.failed(record).await),
            LaneRuling::Errored => Err(Early::Broken(feedback::could_not_run(&record.steps))),
            LaneRuling::Cancelled => Err(Early::Broken("the gate was stopped".into())),
            LaneRuling::NothingRan => Err(Early::Broken(nothing_ran(lane))),
        }
    }

    /// Whether as many tests ran as on the base, where that is known.
    fn evidence(&self, record: &Record) -> Result<(), Early> {
        let Some(base) = self.gate.judged.get() else { return Ok(()) };
        let shortfalls = record.evidence.shortfalls(&base.evidence);
        match shortfalls.is_empty() {
            true => Ok(()),
            false => Err(self.fell_short(record, &shortfalls.join("\n"))),
        }
    }

    /// Runs a lane once more with a planted failure, which it must see.
    async fn canary(&self, lane: &Lane, tree: &TreeId, record: &Record) -> Result<(), Early> {
        let caches = self.caches(lane).await?;
        let logs = self.logs(&format!("{}-canary", lane.name));
        if planted::is_seen(self.gate, self.site, lane, tree, caches.as_ref(), logs, self.stop).await? {
            return Ok(());
        }
        let why = format!("lane `{}` did not see a failing test that was planted: its tests are silenced", lane.name);
        Err(self.fell_short(record, &why))
    }

    /// Runs the lanes that only the gate knows. Of what they say nothing is told but that one of them failed.
    async fn held_out(&self, tree: &TreeId, record: &mut Record) -> Result<(), Early> {
        for lane in &self.gate.held_out {
            let name = format!("held-out-{}", lane.name);
            let (outcome, _) = self.run(lane, &name, tree, &|_| {}).await?;
            match outcome.ruling {
                LaneRuling::Passed => {}
                LaneRuling::Failed => {
                    let verdict = Verdict {
                        feedback: "every check of the project passed, but a hold-out check failed: the work is not right in general".into(),
                        signature: "hold-out".into(),
                        ..self.verdict(Ruling::Failed, record)
                    };
                    return Err(Early::Said(Box::new(verdict)));
                }
                LaneRuling::Errored => {
                    return Err(Early::Broken(format!("hold-out {}", feedback::could_not_run(&outcome.steps))));
                }
                LaneRuling::Cancelled => return Err(Early::Broken("the gate was stopped".into())),
                LaneRuling::NothingRan => return Err(Early::Broken(format!("hold-out: {}", nothing_ran(lane)))),
            }
        }
        Ok(())
    }

    /// What the gate said of the base: judged now, if it was not.
    async fn base(&self) -> Result<Arc<Base>, Early> {
        let judge = || async { base::judge(self.gate, self.site, self.stop, &|_| {}).await.map(Arc::new) };
        let judged = self.gate.judged.get_or_try_init(judge);
        Ok(judged.await.cloned()?)
    }

    /// The lanes failed. What failed on the base too is labelled so, for which the base is judged now if it was not.
    async fn failed(&self, record: &Record) -> Early {
        let mut limit = FEEDBACK_LIMIT;
        let mut known = String::new();
        if self.site.may_judge_base && self.gate.lanes.iter().all(|lane| lane.room == RoomKind::Clean) {
            match self.base().await {
                Ok(base) => {
                    let knew = base.knew(&record.steps);
                    if !knew.is_empty() {
                        known = format!("failed before any change, too: {}\n", knew.join(", "));
                        known.truncate(known.floor_char_boundary(FEEDBACK_LIMIT / 8));
                    }
                }
                Err(Early::Broken(why)) if self.stop.is_cancelled() => return Early::Broken(why),
                // The failure is real; only the label is missing.
                Err(_) => {}
            }
        }
        limit -= known.len();
        let feedback = feedback::of(&record.steps, limit) + &known;
        let signature = feedback::signature(&record.steps);
        Early::Said(Box::new(Verdict { feedback, signature, ..self.verdict(Ruling::Failed, record) }))
    }

    /// Every step passed, and what that rests on does not hold.
    fn fell_short(&self, record: &Record, why: &str) -> Early {
        let signature = format!("evidence: {why}");
        let feedback = format!("every step passed, but that is not enough:\n{why}\n");
        Early::Said(Box::new(Verdict { feedback, signature, ..self.verdict(Ruling::Failed, record) }))
    }

    /// A lane changed files of the tree and does not say that it may.
    async fn wrote(&self, lane: &Lane, before: &TreeId, after: &TreeId, record: &Record) -> Early {
        let changes = match self.site.trees.changes(before, after, self.stop).await {
            Ok(changes) => changes,
            Err(fault) => return fault.into(),
        };
        let names: Vec<&str> = changes.iter().take(10).map(|change| change.path.as_str()).collect();
        let why = format!(
            "lane `{}` changed files that it judges ({}): what it writes there belongs into the work, or the lane says `writes: true`",
            lane.name,
            names.join(", ")
        );
        self.fell_short(record, &why)
    }

    fn room_word(&self) -> &'static str {
        let is_clean = self.gate.lanes.iter().all(|lane| lane.room == RoomKind::Clean);
        if is_clean { RoomKind::Clean.word() } else { RoomKind::InPlace.word() }
    }

    fn verdict(&self, ruling: Ruling, record: &Record) -> Verdict {
        Verdict {
            ruling,
            steps: record.steps.clone(),
            findings: Vec::new(),
            duration_ms: milliseconds(self.started.read()),
            feedback: String::new(),
            signature: String::new(),
            notes: record.notes.clone(),
            proof: None,
        }
    }

    fn errored(&self, record: &Record, why: String) -> Verdict {
        Verdict { feedback: why, ..self.verdict(Ruling::Errored, record) }
    }

    fn tampered(&self, difference: Difference) -> Verdict {
        let Difference { findings, left } = difference;
        Verdict { findings, notes: left, ..self.verdict(Ruling::Tampered, &Record::default()) }
    }

    /// Looks at protected files on a thread that may block.
    async fn look<T: Send + 'static>(&self, work: impl FnOnce(&Seal) -> T + Send + 'static) -> Result<T, String> {
        let seal = Arc::clone(&self.gate.seal);
        let looked = tokio::task::spawn_blocking(move || work(&seal)).await;
        looked.map_err(|_| "looking at protected files panicked".into())
    }
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
        verdict.proof = None;
    }
    verdict.notes.push(note);
    verdict.notes.extend(left);
    verdict
}

/// That a lane in which nothing ran proves nothing.
pub(super) fn nothing_ran(lane: &Lane) -> String {
    format!("nothing ran in lane `{}`: that proves nothing", lane.name)
}
