//! What people and programs see of a batch while it runs: a live line for each run on a terminal, plain lines elsewhere, JSON where it is
//! asked for. It has a thread of its own, so that a slow reader holds up no run and no stop.

use super::super::drive::VoiceArguments;
use super::super::failure::Failure;
use super::super::live::Live;
use super::super::paint::{self, Tone};
use super::super::signals::STOPPING;
use super::super::{no_output, print_json};
use super::ending::Ending;
use super::page::{counted, padded};
use super::row::{Row, ending};
use super::voice::Heard;
use crate::batch::plan::Job;
use crate::batch::{BATCH_SCHEMA_VERSION, Outcome, Summary};
use crate::config::Environment;
use crate::driver::EventRecord;
use crate::report::{self, money, seconds};
use crate::run::AgentEvent;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Cells of the longest name of a job in a live line.
const LONGEST_NAME: usize = 32;
/// The line above those of the runs. No job has a colon in its name.
const ALL: &str = "all:";

/// The screen of one batch.
#[derive(Debug)]
pub(super) struct Screen {
    look: Look,
    batch: Arc<str>,
    names: Arc<[String]>,
    ending: Arc<Ending>,
    state: Mutex<State>,
    failed: Arc<Mutex<Option<Failure>>>,
}

#[derive(Debug, Clone, Copy)]
struct Look {
    live: Live,
    is_quiet: bool,
    is_json: bool,
    /// Cells of the names in live lines.
    width: usize,
}

#[derive(Debug, Default)]
struct State {
    running: BTreeMap<usize, Row>,
    over: usize,
    bad: usize,
    usd_micros: u64,
    /// Why a line of JSON could not be written.
    unwritten: Option<std::io::Error>,
}

impl Screen {
    pub(super) fn new(
        voice: VoiceArguments,
        environment: &Environment,
        batch: &str,
        jobs: &[Job],
        ending: Arc<Ending>,
    ) -> Self {
        let VoiceArguments { json, quiet, ni } = voice;
        let live = Live::new(!ni && !quiet && paint::can_draw(environment));
        let names: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).clamp(ALL.len(), LONGEST_NAME);
        let look = Look { live, is_quiet: quiet, is_json: json, width };
        Self { look, batch: batch.into(), names: names.into(), ending, state: Mutex::default(), failed: Arc::default() }
    }

    /// Says what begins; so many jobs are over already.
    fn begin(&self, before: usize) {
        self.json("batch_started", None, json!({ "jobs": self.names.iter().collect::<Vec<_>>(), "over": before }));
        self.state().over = before;
        if before > 0 && !self.look.is_quiet {
            let text = format!("{} of {} are finished already", before, self.names.len());
            paint::line(&[(Tone::Faint, &text)]);
        }
        self.look.live.begin(&padded(ALL, self.look.width), "");
        self.count(&self.state());
    }

    /// The end: the table, files, and for programs all of it.
    fn close(&self, summary: &Summary) -> Result<(), Failure> {
        self.look.live.clear();
        let (name, data) = self.ending.data(summary);
        self.json(name, None, data);
        if !(self.look.is_quiet && self.ending.code(summary) == 0) {
            self.ending.lines(summary).iter().for_each(|line| paint::line(line));
        }
        self.ending.write(summary)?;
        self.state().unwritten.take().map_or(Ok(()), |error| Err(no_output(error)))
    }

    /// Where what could not be written at the end is found.
    pub(super) fn failed(&self) -> Arc<Mutex<Option<Failure>>> {
        Arc::clone(&self.failed)
    }

    /// Shows what is new.
    pub(super) fn show(&self, heard: Heard) {
        match heard {
            Heard::Begun { before } => self.begin(before),
            Heard::Stopping if self.look.is_quiet => {}
            Heard::Stopping => paint::line(&[(Tone::Warn, STOPPING)]),
            Heard::Closed(summary) => {
                let failure = self.close(&summary).err();
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failure;
            }
            Heard::Started { job, tries } => {
                self.json("job_started", Some(job), json!({ "tries": tries }));
                let again = if tries > 1 { format!(", run {tries}") } else { String::new() };
                if !self.look.live.is_wanted() {
                    self.line(job, &[(Tone::Faint, format!("started{again}"))]);
                }
                self.look.live.begin(&self.row_name(job), "");
                let mut state = self.state();
                state.running.insert(job, Row::default());
                self.count(&state);
            }
            Heard::Record { job, mut record } => {
                record.job = Some(self.names[job].clone());
                self.record(job, &record);
            }
            Heard::Again { job, tries, after, outcome } => {
                let wait_ms = crate::duration::milliseconds(after);
                let data = json!({ "tries": tries, "wait_ms": wait_ms, "outcome": &*outcome });
                self.json("job_retried", Some(job), data);
                let text = format!("{}; run {tries} follows in {}", outcome.says(), seconds(wait_ms));
                self.line(job, &[(Tone::Warn, text)]);
                self.gone(job, None);
            }
            Heard::Over { job, outcome, result } => {
                let (standing, says) = (outcome.standing(), outcome.says());
                let data = json!({ "standing": standing, "exit_code": outcome.exit_code(), "says": says, "outcome": &*outcome });
                self.json("job_finished", Some(job), data);
                if let Some(result) = result {
                    self.ending.annotate(&result);
                }
                self.line(job, &ending(&outcome));
                self.gone(job, Some(&outcome));
            }
        }
    }

    /// A job has no run any more.
    fn gone(&self, job: usize, outcome: Option<&Outcome>) {
        self.look.live.end(&self.row_name(job));
        let mut state = self.state();
        let row = state.running.remove(&job).unwrap_or_default();
        state.usd_micros = state.usd_micros.saturating_add(row.usd_micros);
        if let Some(outcome) = outcome {
            state.over += 1;
            state.bad += usize::from(!outcome.is_verified());
        }
        self.count(&state);
    }

    fn record(&self, job: usize, record: &EventRecord) {
        if self.look.is_json {
            self.print(&serde_json::to_string(record).unwrap_or_default());
        }
        if record.of.is_some() {
            return;
        }
        match &record.event {
            AgentEvent::VerifyResult { success: false, failed_steps, attempt, duration_ms, .. } => {
                let steps =
                    if failed_steps.is_empty() { String::new() } else { format!(": {}", failed_steps.join(", ")) };
                let text = format!("attempt {attempt}: the gate says no{steps} ({})", seconds(*duration_ms));
                self.line(job, &[(Tone::Plain, text)]);
            }
            AgentEvent::Tamper { findings } => {
                self.line(job, &[(Tone::Warn, format!("protected: {}", counted(findings.len() as u64, "finding")))]);
            }
            AgentEvent::Retry { what, tries, wait_ms, error } => {
                let text = format!("{what} failed ({error}); try {} in {}", tries + 1, seconds(*wait_ms));
                self.line(job, &[(Tone::Warn, text)]);
            }
            AgentEvent::Warning(message) => self.line(job, &[(Tone::Warn, message.clone())]),
            AgentEvent::Committed { commit, branch } => {
                let said = report::committed(commit, branch.as_deref());
                self.line(job, &[(Tone::Plain, format!("committed {said}"))]);
            }
            _ => {}
        }
        let mut state = self.state();
        let Some(row) = state.running.get_mut(&job) else { return };
        if row.heed(&record.event) {
            let said = row.said();
            self.look.live.note(&self.row_name(job), said);
            self.count(&state);
        }
    }

    /// The line above the others.
    fn count(&self, state: &State) {
        if !self.look.live.is_wanted() {
            return;
        }
        let cost = state.running.values().fold(state.usd_micros, |sum, row| sum.saturating_add(row.usd_micros));
        let waiting = self.names.len().saturating_sub(state.over + state.running.len());
        let mut parts = vec![format!("{} of {} over", state.over, self.names.len())];
        parts.extend((state.bad > 0).then(|| format!("{} not verified", state.bad)));
        parts.push(format!("{} running, {waiting} waiting", state.running.len()));
        parts.extend((cost > 0).then(|| money(cost)));
        self.look.live.note(&padded(ALL, self.look.width), parts.join(" · "));
    }

    fn row_name(&self, job: usize) -> String {
        padded(&self.names[job], self.look.width)
    }

    /// A line about a job.
    fn line(&self, job: usize, pieces: &[(Tone, String)]) {
        if self.look.is_quiet {
            return;
        }
        let name = (Tone::Faint, format!("[{}] ", self.names[job]));
        let pieces = pieces.iter().map(|(tone, text)| (*tone, paint::one_line(text)));
        paint::line(&[name].into_iter().chain(pieces).collect::<Vec<_>>());
    }

    fn json(&self, kind: &str, job: Option<usize>, data: Value) {
        if !self.look.is_json {
            return;
        }
        let mut line =
            json!({ "schema_version": BATCH_SCHEMA_VERSION, "batch": &*self.batch, "type": kind, "data": data });
        if let (Some(job), Some(line)) = (job, line.as_object_mut()) {
            line.insert("job".into(), self.names[job].clone().into());
        }
        self.print(&line.to_string());
    }

    fn print(&self, line: &str) {
        if let Err(error) = print_json(line) {
            self.state().unwritten.get_or_insert(error);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
