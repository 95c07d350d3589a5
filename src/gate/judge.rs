//! One gate run, from the workspace as the agent left it to a verdict that names a tree.
//!
//! It checks the files that define the gate, takes the tree and compares it with the base, and runs
//! the lanes in rooms made of that tree. Then it checks the evidence: the tests that ran, a planted
//! failure that must be seen, and hold-out lanes.

mod again;
mod canaries;
mod early;
mod held_out;
mod hidden;
mod inside;
mod ready;
mod settle;
mod short;
mod standing;

pub use again::inherit_failed_trees;

use super::base::{self, BaseError, BaseVerdict};
use super::candidate::{self, Candidate};
use super::evidence::{Evidence, NO_TESTS};
use super::install::Installation;
use super::policy::Policy;
use super::seal::{self, Seal};
use super::unfetched::{self, AddedDependency};
use super::{Gate, GateSite, feedback, logs};
use crate::duration::milliseconds;
use crate::error_chain::chain;
use crate::id::TreeId;
use crate::lane::{FlakyPolicy, Lane, RoomKind};
use crate::lane_runner::{LaneOutcome, LaneRuling};
use crate::limits::FEEDBACK_LIMIT;
use crate::process::Stopwatch;
use crate::task::OnTamper;
use crate::verdict::{Proof, Ruling, StepProgress, StepReport, StepStatus, TamperFinding, Verdict};
use early::EarlyEnd;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The input of one gate run.
pub(super) struct GateRun<'a> {
    pub(super) gate: &'a Gate,
    pub(super) site: &'a GateSite,
    pub(super) attempt: u32,
    /// True if the run judges the base, before any agent.
    pub(super) is_base: bool,
    /// True if a person asked for the verdict. The workspace then stays as it is.
    pub(super) is_by_hand: bool,
    pub(super) stop: &'a CancellationToken,
    pub(super) on_step: &'a (dyn Fn(StepProgress) + Send + Sync),
    pub(super) started: Stopwatch,
}

/// The state of a gate run so far.
#[derive(Debug, Default)]
struct JudgeRecord {
    steps: Vec<StepReport>,
    evidence: Evidence,
    notes: Vec<String>,
    /// Dependencies that the base does not have.
    added: Vec<AddedDependency>,
    /// The newest tree whose dependencies were checked, with the installation for it.
    installed: Option<(TreeId, Option<Arc<Installation>>)>,
    /// The paths that could not be written in the newest room.
    kept: Vec<String>,
    /// Lanes that changed the tree.
    writers: BTreeSet<String>,
    /// The number of lanes that reported planted failures.
    canaries: u64,
    /// For each lane in which nothing was planted although its tests are counted, the reason.
    without_canary: BTreeMap<String, String>,
}

impl GateRun<'_> {
    /// Judges the workspace.
    pub(super) async fn judge(&self) -> Verdict {
        let mut record = JudgeRecord::default();
        let (sandbox, manifests) = (self.site.sandbox.kind(), self.manifests_here());
        let also = manifests.clone();
        let (taken, looked) = tokio::join!(
            candidate::take_candidate(self.gate, self.site, self.stop),
            self.with_seal(move |seal| seal.found_stamped(sandbox, &also))
        );
        let (mut findings, before) = match looked {
            Ok(looked) => looked,
            Err(why) => return self.errored(&record, why),
        };
        let mut may_differ = Vec::new();
        if let Ok(candidate) = &taken {
            candidate.add_to(&mut findings);
            may_differ.clone_from(&candidate.may_differ);
        }
        if !findings.is_empty() {
            return self.tampered(findings).await;
        }
        let result = match taken {
            Ok(candidate) => self.judge_unless_failed(candidate, &mut record).await,
            Err(fault) => Err(fault.into()),
        };
        let verdict = self.conclude(result, &record);
        let backup = self.restores_files().then(|| self.backup());
        let look = move |seal: &Seal| {
            let (mut changed, after) = seal.found_stamped(sandbox, &manifests);
            let touched = seal.touched(&before, &after);
            changed.retain(|finding| !candidate::is_in(&may_differ, &finding.path));
            (seal.caused_in(sandbox, touched), backup.map_or(Vec::new(), |backup| seal.restore(&changed, &backup)))
        };
        match self.with_seal(look).await {
            Ok((touched, left)) => written_meanwhile(verdict, touched, left),
            Err(why) => self.errored(&record, why),
        }
    }

    /// Judges the workspace without the seal, and changes nothing there.
    pub(super) async fn judge_by_hand(&self) -> Verdict {
        let mut record = JudgeRecord::default();
        let result = match candidate::take_candidate(self.gate, self.site, self.stop).await {
            Ok(candidate) if !candidate.findings.is_empty() => {
                let verdict = self.verdict(Ruling::Tampered, &record);
                let (findings, notes) = (candidate.findings, candidate.notes);
                return Verdict { findings, notes, ..verdict };
            }
            Ok(candidate) => self.judge_candidate(candidate, &mut record).await,
            Err(fault) => Err(fault.into()),
        };
        self.conclude(result, &record)
    }

    fn conclude(&self, result: Result<Verdict, EarlyEnd>, record: &JudgeRecord) -> Verdict {
        match result {
            Ok(verdict) => verdict,
            Err(EarlyEnd::Ruled(verdict)) => *verdict,
            Err(EarlyEnd::Broken(_)) if self.stop.is_cancelled() => self.errored(record, "the gate was stopped".into()),
            Err(EarlyEnd::Broken(why)) => self.errored(record, why),
        }
    }

    async fn judge_candidate(&self, candidate: Candidate, record: &mut JudgeRecord) -> Result<Verdict, EarlyEnd> {
        let Candidate { tree: candidate, notes, added, .. } = candidate;
        record.notes.extend(notes);
        record.notes.extend(self.setup_notes());
        record.added = added;
        let tree = self.run_lanes(&candidate, record).await?;
        let tests_before = self.evidence(&tree, record).await?;
        self.must_report_tests(&tree, record).await?;
        self.tests_of_base(&tree, record).await?;
        for lane in &self.gate.lanes {
            self.canary(lane, &tree, record).await?;
        }
        self.held_out(&tree, record).await?;
        let whole = self.hidden_tests(&tree, record).await?;
        self.apply_lane_changes(&candidate, &tree, record).await?;
        let hidden = self.gate.hidden.as_ref();
        let proof = Proof {
            base: hidden.map_or_else(|| self.gate.base().clone(), |hidden| hidden.base.clone()),
            tree: whole,
            hidden: hidden.map_or(0, |hidden| hidden.paths.len() as u64),
            lanes: self.gate.digest.clone(),
            room: self.room_word().into(),
            sandbox: self.site.sandbox.kind().name().into(),
            tests: record.evidence.ran(),
            tests_before,
            tests_by_name: record.evidence.named(),
            canaries: record.canaries,
            without_canary: record.without_canary.clone(),
            held_out: self.gate.held_out.len() as u64,
        };
        Ok(Verdict { proof: Some(Box::new(proof)), ..self.verdict(Ruling::Passed, record) })
    }

    fn logs(&self, name: &str) -> PathBuf {
        self.site.logs.join(format!("attempt-{}", self.attempt)).join(name)
    }

    /// Returns the folder that keeps removed and overwritten files.
    fn backup(&self) -> PathBuf {
        self.site.logs.with_file_name("set-aside").join(format!("attempt-{}", self.attempt))
    }

    fn restores_files(&self) -> bool {
        self.site.on_tamper == OnTamper::Restore
    }

    /// Records the outcome of a lane. Anything but a pass ends the gate run.
    async fn record_outcome(
        &self,
        lane: &Lane,
        outcome: LaneOutcome,
        record: &mut JudgeRecord,
    ) -> Result<(), EarlyEnd> {
        base::show(&outcome, self.site.names_tests(lane), &mut record.evidence).await;
        let is_flaky = outcome.steps.iter().any(|step| step.status == StepStatus::Flaky);
        record.steps.retain(|step| step.lane != lane.name);
        record.steps.extend(outcome.steps);
        match outcome.ruling {
            LaneRuling::Passed if is_flaky && lane.flaky == FlakyPolicy::Fail => Err(self.fell_short(
                record,
                &format!("lane `{}` passed only after a retry, and it has `flaky: fail`", lane.name),
            )),
            LaneRuling::Passed => Ok(()),
            LaneRuling::Failed => Err(self.failed(record).await),
            LaneRuling::Errored => Err(EarlyEnd::Broken(feedback::could_not_run(&record.steps))),
            LaneRuling::Cancelled => Err(EarlyEnd::Broken("the gate was stopped".into())),
            LaneRuling::NothingRan => Err(EarlyEnd::Broken(feedback::nothing_ran(lane))),
        }
    }

    /// Checks that at least as many tests ran as on the base, where the result of the base is known
    /// or can be made. Returns the number of tests that ran on the base.
    async fn evidence(&self, tree: &TreeId, record: &mut JudgeRecord) -> Result<Option<u64>, EarlyEnd> {
        if record.evidence.is_without_tests() {
            return Err(self.fell_short(record, NO_TESTS));
        }
        let may_be_judged = self.site.may_judge_base && self.gate.is_clean();
        let is_known = || self.site.may_judge_base && base::kept(self.gate, self.site).is_some();
        let base = match self.gate.judged.get() {
            Some(base) => Arc::clone(base),
            None if self.is_base && tree == self.gate.base() && !is_known() => return Ok(record.evidence.ran()),
            None if (may_be_judged && self.gate.rests_on_base()) || is_known() => self.base().await?,
            None => return self.must_agree(record),
        };
        self.must_differ(&base, tree, record)?;
        let shortfalls = record.evidence.shortfalls(&base.evidence);
        if shortfalls.is_empty() {
            self.compare_counts(&base.evidence, tree, record).await?;
        } else {
            self.excuse(shortfalls, tree, record).await?;
        }
        Ok(base.evidence.ran())
    }

    /// Returns the result of the base. Judges the base now if the result is not known.
    async fn base(&self) -> Result<Arc<BaseVerdict>, BaseError> {
        let is_known = self.gate.judged.initialized() || base::kept(self.gate, self.site).is_some();
        if !is_known && !self.gate.is_clean() {
            return Err(BaseError::TooLate);
        }
        let judge = || async { base::judge(self.gate, self.site, self.stop, &|_| {}).await.map(Arc::new) };
        let judged = self.gate.judged.get_or_try_init(judge);
        judged.await.cloned()
    }

    /// Returns the verdict for failed lanes. Labels the failures that the base has too. For that it
    /// judges the base now if its result is not known.
    async fn failed(&self, record: &JudgeRecord) -> EarlyEnd {
        let mut limit = FEEDBACK_LIMIT;
        let (mut known, mut before) = (String::new(), Vec::new());
        if !self.is_base && self.site.may_judge_base && self.gate.is_clean() {
            match self.base().await {
                Ok(base) => {
                    before = base.failed_before(&record.steps);
                }
                Err(fault) if self.stop.is_cancelled() => return fault.into(),
                // Otherwise the failure is real, and only the label is missing.
                Err(fault) => {
                    if matches!(fault, BaseError::Unable(_)) && self.gate.unable(&record.steps, self.site).is_some() {
                        return fault.into();
                    }
                }
            }
        }
        let labelled = Verdict { failed_before: before, ..self.verdict(Ruling::Failed, record) };
        if let Some(mut line) = labelled.failed_before_line() {
            line.truncate(line.floor_char_boundary(FEEDBACK_LIMIT / 8));
            known = line + "\n";
        }
        known.push_str(&feedback::unwritable(&record.steps, &record.kept));
        let missing = unfetched::line(&record.steps, &record.added);
        known.extend(missing.iter().map(|line| format!("{line}\n")));
        if self.site.pages_logs && logs::are_shown_in_part(&record.steps) {
            known.push_str("read more of the output with the tool `lane-log`\n");
        }
        limit -= known.len();
        let feedback = feedback::failing_steps(&record.steps, limit) + &known;
        let signature = feedback::signature(&record.steps);
        let mut verdict = Verdict { feedback, signature, ..labelled };
        verdict.notes.extend(verdict.failed_before_line().into_iter().chain(missing));
        EarlyEnd::Ruled(Box::new(verdict))
    }

    /// Returns the verdict for work that passed every step but lacks the evidence for a pass.
    fn fell_short(&self, record: &JudgeRecord, why: &str) -> EarlyEnd {
        let signature = format!("evidence: {why}");
        let feedback = format!("every step passed, but that is not enough:\n{why}\n");
        EarlyEnd::Ruled(Box::new(Verdict { feedback, signature, ..self.verdict(Ruling::Failed, record) }))
    }

    fn room_word(&self) -> &'static str {
        if self.gate.is_clean() { RoomKind::Clean.word() } else { RoomKind::InPlace.word() }
    }

    fn verdict(&self, ruling: Ruling, record: &JudgeRecord) -> Verdict {
        Verdict {
            ruling,
            steps: record.steps.clone(),
            findings: Vec::new(),
            duration_ms: milliseconds(self.started.read()),
            feedback: String::new(),
            signature: String::new(),
            notes: record.notes.clone(),
            installed: record.installed.as_ref().and_then(|(_, it)| Some(Box::new(it.as_ref()?.report.clone()))),
            failed_before: Vec::new(),
            unchanged_since: None,
            proof: None,
        }
    }

    fn errored(&self, record: &JudgeRecord, why: String) -> Verdict {
        Verdict { feedback: why, ..self.verdict(Ruling::Errored, record) }
    }

    /// Puts changed files back, where the configuration asks for that, and reports the result.
    async fn tampered(&self, findings: Vec<TamperFinding>) -> Verdict {
        let verdict = self.verdict(Ruling::Tampered, &JudgeRecord::default());
        if !self.restores_files() {
            return Verdict { findings, feedback: "fledge restored no file.\n".into(), ..verdict };
        }
        let (backup, changed) = (self.backup(), findings.clone());
        let kept = backup.clone();
        let work = move |seal: &Seal| {
            let mut left = seal.set_aside(&changed, &backup);
            left.extend(seal.restore(&changed, &backup));
            left
        };
        let mut notes = self.with_seal(work).await.unwrap_or_else(|why| vec![why]);
        let paths: Vec<String> = findings.iter().map(|finding| finding.path.clone()).collect();
        let is_in_trees = |path: &&String| !self.gate.seal.is_git(Path::new(path));
        let own: Vec<String> = paths.iter().filter(is_in_trees).cloned().collect();
        for path in own.chunks(own.len().max(1)).chain(own.chunks(1)) {
            // All paths together. If one of them prevents that, one by one.
            match self.site.trees.put_back(self.gate.base(), Some(path), self.stop).await {
                Ok(_) if path.len() == own.len() => break,
                Ok(_) => {}
                Err(fault) if path.len() > 1 || own.len() == 1 => {
                    notes.push(format!("cannot restore changed files: {}", chain(&fault)))
                }
                Err(_) => {}
            }
        }
        let sandbox = self.site.sandbox.kind();
        let mut still = self.with_seal(move |seal| seal.found(sandbox)).await.unwrap_or_else(|why| {
            notes.push(why);
            findings.clone()
        });
        match candidate::take_candidate(self.gate, self.site, self.stop).await {
            Ok(candidate) => candidate.add_to(&mut still),
            Err(fault) => notes.push(format!("cannot check the restored files: {}", chain(&fault))),
        }
        if kept.exists() {
            notes.push(format!("the changes to protected files are kept in {}", kept.display()));
        }
        let still: BTreeSet<&str> = still.iter().map(|finding| finding.path.as_str()).collect();
        let feedback = feedback::put_back(&paths, &still, Policy::is_manifest);
        Verdict { findings, feedback, notes, ..verdict }
    }

    /// Returns the manifests that nothing may write in the workspace while the gate runs. There are
    /// none where all lanes have rooms.
    fn manifests_here(&self) -> BTreeSet<String> {
        if self.gate.is_clean() { BTreeSet::new() } else { self.gate.watched_manifests(&self.gate.lanes) }
    }

    /// Runs a blocking operation on the protected files.
    async fn with_seal<T: Send + 'static>(&self, work: impl FnOnce(&Seal) -> T + Send + 'static) -> Result<T, String> {
        let seal = Arc::clone(&self.gate.seal);
        let done = tokio::task::spawn_blocking(move || work(&seal)).await;
        done.map_err(|_| "an operation on protected files panicked".into())
    }
}

/// Returns the verdict of a gate run during which protected files may have been written. If any
/// were, a pass becomes an error, because the writer is unknown.
fn written_meanwhile(mut verdict: Verdict, touched: Vec<TamperFinding>, left: Vec<String>) -> Verdict {
    if touched.is_empty() {
        return verdict;
    }
    let names: Vec<&str> = touched.iter().map(|finding| finding.path.as_str()).collect();
    let note = format!("protected paths were written while the gate ran: {}", names.join(", "));
    if verdict.passed() {
        verdict.ruling = Ruling::Errored;
        verdict.feedback = format!("{note}; if a step must write there, {}", seal::remedy(&touched));
        verdict.findings = touched;
        verdict.proof = None;
    }
    verdict.notes.push(note);
    verdict.notes.extend(left);
    verdict
}
