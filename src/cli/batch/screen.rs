//! Output of a batch while it runs: a live line for each run on a terminal, plain lines elsewhere,
//! and JSON on request. It has its own thread, so a slow reader delays no run and no stop.

use super::super::drive::OutputArguments;
use super::super::failure::CliError;
use super::super::live::{self, LiveView};
use super::super::output::json_line;
use super::super::output_buffer::OutputBuffer;
use super::super::paint::{self, Tone};
use super::super::signals::STOPPING;
use super::ending::BatchEnding;
use super::output::ScreenEvent;
use super::page::{counted, padded};
use super::row::{JobLine, ending};
use crate::batch::plan::{BatchJob, slots};
use crate::batch::{BATCH_SCHEMA_VERSION, BatchEvent, BatchRecord, BatchSummary, FinishedJob};
use crate::config::EnvironmentLayer;
use crate::driver::EventRecord;
use crate::report::{self, money, seconds};
use crate::run::AgentEvent;
use crate::verdict::as_judged;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The longest job name in a live line, in cells.
const LONGEST_NAME: usize = 32;
/// The maximum number of waiting jobs for which the summary line names what they need.
const MOST_NEEDING: usize = 8;
/// The name of the summary line above the runs. Job names contain no colon.
const ALL: &str = "all:";

/// The output of one batch.
#[derive(Debug)]
pub(super) struct BatchScreen {
    look: Look,
    batch: Arc<str>,
    names: Arc<[String]>,
    /// The needs of each job, as groups of jobs. One job of each group must be verified.
    needs: Vec<Vec<Vec<usize>>>,
    ending: Arc<BatchEnding>,
    /// The lines of JSON.
    buffer: OutputBuffer,
    state: Mutex<ScreenState>,
    failed: Arc<Mutex<Option<CliError>>>,
}

#[derive(Debug, Clone, Copy)]
struct Look {
    live: LiveView,
    rings: bool,
    is_quiet: bool,
    is_json: bool,
    /// The width of names in live lines, in cells.
    width: usize,
}

#[derive(Debug, Default)]
struct ScreenState {
    running: BTreeMap<usize, JobLine>,
    /// Ended jobs, with true for each verified one.
    over: BTreeMap<usize, bool>,
    usd_micros: u64,
    /// Names of jobs whose end was shown.
    told: BTreeSet<String>,
    /// Warnings, with the jobs that had them.
    warned: BTreeMap<String, BTreeSet<usize>>,
    /// The number of requests that wait because of the models' rate limits.
    paced: usize,
}

impl BatchScreen {
    pub(super) fn new(
        voice: OutputArguments,
        environment: &EnvironmentLayer,
        batch: &str,
        jobs: &[BatchJob],
        ending: Arc<BatchEnding>,
    ) -> Self {
        let OutputArguments { json, quiet, ni, rings } = voice;
        let live = LiveView::new(!ni && !quiet && paint::can_draw(environment));
        let names: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).clamp(ALL.len(), LONGEST_NAME);
        let rings = rings && paint::can_draw(environment);
        let look = Look { live, rings, is_quiet: quiet, is_json: json, width };
        let needs = slots(jobs).into_iter().map(|slot| slot.needs).collect();
        let (batch, names, state) = (batch.into(), names.into(), Mutex::default());
        Self { look, batch, names, needs, ending, buffer: OutputBuffer::default(), state, failed: Arc::default() }
    }

    /// Returns the buffer with the lines of JSON.
    pub(super) fn buffer(&self) -> OutputBuffer {
        self.buffer.clone()
    }

    /// Shows the start of the batch. `before` holds the jobs that have already ended.
    fn start(&self, before: BTreeMap<usize, bool>) {
        let over = before.len();
        self.json(None, || BatchEvent::BatchStarted { jobs: &self.names, over });
        self.state().over = before;
        if over > 0 && !self.look.is_quiet {
            let text = format!("{over} of {} have finished already", self.names.len());
            paint::line(&[(Tone::Faint, &text)]);
        }
        self.look.live.start(&padded(ALL, self.look.width), "");
        self.count(&self.state());
    }

    /// Shows the end of the batch: its table and the last event. Also writes its files.
    fn close(&self, summary: &BatchSummary) -> Result<(), CliError> {
        self.look.live.clear();
        self.json(None, || self.ending.event(summary));
        self.repeated();
        let lines = match (self.look.is_quiet, self.ending.code(summary)) {
            (true, 0) => Vec::new(),
            (true, _) => self.ending.failures(summary),
            (false, _) => self.ending.lines(summary, &self.state().told),
        };
        lines.iter().for_each(|line| paint::line(line));
        if self.look.rings {
            live::ring(&self.batch, &summary.counts.words());
        }
        self.ending.write(summary)
    }

    /// Shows how many jobs had each warning, if several had it. The warning itself was shown for
    /// the first of them only.
    fn repeated(&self) {
        let warned = std::mem::take(&mut self.state().warned);
        for (message, jobs) in warned.iter().filter(|(_, jobs)| jobs.len() > 1 && !self.look.is_quiet) {
            let name = (Tone::Faint, format!("[{}] ", counted(jobs.len() as u64, "job")));
            paint::line(&[name, (Tone::Warn, paint::one_line(message))]);
        }
    }

    /// Shows a warning, unless another job had the same one.
    fn warn(&self, job: usize, message: &str) {
        let is_new = {
            let mut state = self.state();
            let jobs = state.warned.entry(message.to_owned()).or_default();
            jobs.insert(job) && jobs.len() == 1
        };
        if is_new {
            self.line(job, &[(Tone::Warn, message.to_owned())]);
        }
    }

    /// Returns the shared place for an error at the end.
    pub(super) fn failed(&self) -> Arc<Mutex<Option<CliError>>> {
        Arc::clone(&self.failed)
    }

    /// Shows one piece of news.
    pub(super) fn show(&self, heard: ScreenEvent) {
        match heard {
            ScreenEvent::Begun { before } => self.start(before),
            ScreenEvent::Paced(count) => {
                let mut state = self.state();
                state.paced = count;
                self.count(&state);
            }
            ScreenEvent::Stopping if self.look.is_quiet => {}
            ScreenEvent::Stopping => paint::line(&[(Tone::Warn, STOPPING)]),
            ScreenEvent::Closed(summary) => {
                let failure = self.close(&summary).err();
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failure;
            }
            ScreenEvent::Started { job, tries } => {
                self.json(Some(job), || BatchEvent::JobStarted { tries });
                let again = if tries > 1 { format!(", run {tries}") } else { String::new() };
                if !self.look.live.is_wanted() {
                    self.line(job, &[(Tone::Faint, format!("started{again}"))]);
                }
                let row = JobLine::default();
                self.look.live.start(&self.row_name(job), &row.text());
                let mut state = self.state();
                state.running.insert(job, row);
                self.count(&state);
            }
            ScreenEvent::Record { job, mut record } => {
                record.job = Some(self.names[job].clone());
                self.record(job, &record);
            }
            ScreenEvent::Again { job, tries, after, outcome } => {
                let wait_ms = crate::duration::milliseconds(after);
                self.json(Some(job), || BatchEvent::JobRetried { tries, wait_ms, outcome: &outcome });
                let text = format!("{}; run {tries} follows in {}", outcome.says(), seconds(wait_ms));
                self.line(job, &[(Tone::Warn, text)]);
                self.gone(job, None);
            }
            ScreenEvent::Over { job, outcome, result } => {
                self.json(Some(job), || {
                    let (standing, exit_code, says) = (outcome.standing(), outcome.exit_code(), outcome.says());
                    BatchEvent::JobFinished { standing, exit_code, says, outcome: &outcome }
                });
                if let Some(result) = result {
                    self.ending.annotate(&result);
                }
                self.line(job, &ending(&outcome));
                self.gone(job, Some(&outcome));
            }
        }
    }

    /// Removes the line of a job whose run has ended.
    fn gone(&self, job: usize, outcome: Option<&FinishedJob>) {
        self.look.live.end(&self.row_name(job));
        let mut state = self.state();
        let row = state.running.remove(&job).unwrap_or_default();
        state.usd_micros = state.usd_micros.saturating_add(row.usd_micros);
        if let Some(outcome) = outcome {
            state.over.insert(job, outcome.is_verified());
            state.told.insert(self.names[job].clone());
        }
        self.count(&state);
    }

    fn record(&self, job: usize, record: &EventRecord) {
        if self.look.is_json {
            self.buffer.push(&json_line(&serde_json::to_string(record).unwrap_or_default()));
        }
        if record.of.is_some() {
            return;
        }
        match &record.event {
            AgentEvent::VerifyResult { unchanged_since: Some(judged), attempt, .. } => {
                let text = format!("attempt {attempt}: not judged again, {}", as_judged(*judged));
                self.line(job, &[(Tone::Plain, text)]);
            }
            AgentEvent::VerifyResult { success: false, failed_steps, attempt, duration_ms, .. } => {
                let steps =
                    if failed_steps.is_empty() { String::new() } else { format!(": {}", failed_steps.join(", ")) };
                let text = format!("attempt {attempt}: the gate failed{steps} ({})", seconds(*duration_ms));
                self.line(job, &[(Tone::Plain, text)]);
            }
            AgentEvent::Tamper { findings } => {
                self.line(job, &[(Tone::Warn, format!("protected: {}", counted(findings.len() as u64, "finding")))]);
            }
            AgentEvent::Retry { what, tries, wait_ms, error } => {
                let text = format!("{what} failed ({error}); try {} in {}", tries + 1, seconds(*wait_ms));
                self.line(job, &[(Tone::Warn, text)]);
            }
            AgentEvent::Warning(message) => self.warn(job, message),
            AgentEvent::Committed { commit, branch } => {
                let said = report::committed(commit, branch.as_deref());
                self.line(job, &[(Tone::Plain, format!("committed {said}"))]);
            }
            _ => {}
        }
        let mut state = self.state();
        let Some(row) = state.running.get_mut(&job) else { return };
        if row.update(&record.event) {
            let said = row.text();
            self.look.live.note(&self.row_name(job), said);
            self.count(&state);
        }
    }

    /// Updates the summary line.
    fn count(&self, state: &ScreenState) {
        if self.look.live.is_wanted() {
            self.look.live.note(&padded(ALL, self.look.width), self.counted(state));
        }
    }

    fn counted(&self, state: &ScreenState) -> String {
        let cost = state.running.values().fold(state.usd_micros, |sum, row| sum.saturating_add(row.usd_micros));
        let mut parts = vec![format!("{} of {} finished", state.over.len(), self.names.len())];
        let bad = state.over.values().filter(|is_verified| !**is_verified).count();
        parts.extend((bad > 0).then(|| format!("{bad} not verified")));
        let waiting =
            (0..self.names.len()).filter(|job| !state.over.contains_key(job) && !state.running.contains_key(job));
        let waiting: Vec<usize> = waiting.collect();
        parts.push(format!("{} running, {} waiting", state.running.len(), waiting.len()));
        parts.extend(
            (state.paced > 0)
                .then(|| format!("{} held back by a model's limits", counted(state.paced as u64, "request"))),
        );
        parts.extend((cost > 0).then(|| money(cost)));
        // Last: if the line is too long, these are cut off.
        let needing =
            waiting.iter().filter_map(|job| Some(format!("{} needs {}", self.names[*job], self.needed(*job, state)?)));
        parts.extend(needing.take(MOST_NEEDING));
        parts.join(" · ")
    }

    /// Returns a job that is needed and not verified yet.
    fn needed(&self, job: usize, state: &ScreenState) -> Option<String> {
        let is_met = |group: &&Vec<usize>| group.iter().any(|need| state.over.get(need) == Some(&true));
        let group = self.needs[job].iter().find(|group| !is_met(group))?;
        group.first().map(|need| self.names[*need].clone())
    }

    fn row_name(&self, job: usize) -> String {
        padded(&self.names[job], self.look.width)
    }

    /// Prints a line about a job.
    fn line(&self, job: usize, pieces: &[(Tone, String)]) {
        if self.look.is_quiet {
            return;
        }
        let name = (Tone::Faint, format!("[{}] ", self.names[job]));
        let pieces = pieces.iter().map(|(tone, text)| (*tone, paint::one_line(text)));
        paint::line(&[name].into_iter().chain(pieces).collect::<Vec<_>>());
    }

    fn json<'r>(&'r self, job: Option<usize>, event: impl FnOnce() -> BatchEvent<'r>) {
        if self.look.is_json {
            let (job, event) = (job.map(|job| self.names[job].as_str()), event());
            let record = BatchRecord { schema_version: BATCH_SCHEMA_VERSION, batch: &self.batch, job, event };
            self.buffer.push(&json_line(&serde_json::to_string(&record).unwrap_or_default()));
        }
    }

    fn state(&self) -> MutexGuard<'_, ScreenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Isolation, ParamValues};

    fn job(name: &str, needs: &[usize]) -> BatchJob {
        BatchJob {
            name: name.into(),
            title: name.into(),
            task: 0,
            repository: 0,
            params: ParamValues::new(),
            needs: needs.to_vec(),
            usd_micros: None,
            isolation: Isolation::Worktree,
            candidates: None,
            of: name.into(),
            race: None,
            models: Vec::new(),
        }
    }

    #[test]
    fn the_line_above_all_says_what_jobs_wait_for() {
        let jobs = [job("a", &[]), job("b", &[0]), job("c", &[0, 1]), job("d", &[])];
        let environment = EnvironmentLayer::from_vars([("PATH", "")]);
        let voice = OutputArguments { json: false, quiet: false, ni: true, rings: false };
        let screen =
            BatchScreen::new(voice, &environment, "b-1", &jobs, Arc::new(BatchEnding::of_nothing(&environment)));
        let mut state = ScreenState { paced: 1, ..ScreenState::default() };
        state.running.insert(0, JobLine::default());
        let said = screen.counted(&state);
        assert_eq!(
            said,
            "0 of 4 finished · 1 running, 3 waiting · 1 request held back by a model's limits · b needs a · c needs a"
        );
        (state.running, state.paced) = (BTreeMap::new(), 0);
        state.over.insert(0, true);
        assert_eq!(screen.counted(&state), "1 of 4 finished · 0 running, 3 waiting · c needs b");
        assert_eq!(JobLine::default().text(), "waiting for its turn");
    }
}
