//! Output of a running lane for people. A terminal shows live lines. Elsewhere, each step gets a
//! block when it ends, and a long silence gets a message. GitHub Actions gets folds. At the end,
//! the root failures are shown.
//!
//! The screen has its own thread, so a slow terminal delays no step.

use super::super::live::{LiveView, clock};
use super::super::paint::{self, Tone};
use super::super::signals::STOPPING;
use super::super::step_log;
use super::super::steps::{self, ShownTail, StepHistory};
use crate::duration::milliseconds;
use crate::lane::NOT_SELECTED;
use crate::process::Stopwatch;
use crate::report::lane::github;
use crate::report::seconds;
use crate::verdict::{StepReport, StepStatus};
use clap::ValueEnum;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The maximum number of lines of a step's output in a fold.
const FOLDED: usize = 2000;
/// The maximum number of lines of output after which a step's result line is still in sight.
const IN_SIGHT: usize = 20;

/// The steps whose output is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputOf {
    /// Failed steps: the part that explains the failure
    Failures,
    /// All steps: the whole output
    All,
    /// No steps
    None,
}

/// The settings of the screen.
#[derive(Debug, Clone)]
pub(super) struct LaneScreenStyle {
    pub(super) lane: String,
    pub(super) live: LiveView,
    /// The choice of the user, if any.
    pub(super) output: Option<OutputOf>,
    /// True if the first failure ends the lane. It is then explained only once, at the end, which
    /// is near.
    pub(super) fails_fast: bool,
    /// True if a runner of GitHub Actions reads the output.
    pub(super) in_folds: bool,
    /// The longest silence without live lines.
    pub(super) silence: Duration,
}

/// News for the screen.
#[derive(Debug)]
pub(super) enum LaneUpdate {
    /// A failed try, which is followed by another.
    Retried(StepReport),
    Ended(StepReport),
    /// Time has passed.
    Tick,
    /// A person asked to stop.
    Interrupted,
    /// A text for standard error.
    Text(String),
    Over(LaneEnding),
}

/// The end of a lane.
#[derive(Debug)]
pub(super) struct LaneEnding {
    /// The result, as a word that follows the lane's name.
    pub(super) word: &'static str,
    pub(super) passed: bool,
    /// True if the user stopped the lane.
    pub(super) was_stopped: bool,
    /// The duration in milliseconds.
    pub(super) ms: u64,
    /// Commands for the runner of GitHub Actions.
    pub(super) commands: Vec<String>,
}

/// The running steps, oldest first. The receiver of a start adds the step directly, not through the
/// screen's queue, because a start prints nothing.
pub(super) type RunningSteps = Arc<Mutex<Vec<(String, Stopwatch)>>>;

/// The screen of one run of a lane.
#[derive(Debug)]
pub(super) struct LaneScreen {
    look: LaneScreenStyle,
    story: StepHistory,
    running: RunningSteps,
    /// The time since the last line.
    quiet: Stopwatch,
}

impl LaneScreen {
    pub(super) fn new(look: LaneScreenStyle, running: RunningSteps) -> Self {
        Self { look, story: StepHistory::default(), running, quiet: Stopwatch::start() }
    }

    /// Shows one piece of news.
    pub(super) fn show(&mut self, news: LaneUpdate) {
        match news {
            LaneUpdate::Retried(report) => {
                self.end_step(&report);
                self.story.interrupted();
                self.block(&report, steps::retried(&report), true);
            }
            LaneUpdate::Ended(report) if report.status == StepStatus::Skipped && report.note == NOT_SELECTED => {
                self.story.counted(report); // the user left it out
            }
            LaneUpdate::Ended(report) => {
                self.end_step(&report);
                let told = self.block(&report, steps::result(&report), false);
                self.story.ended(report, told);
            }
            LaneUpdate::Tick => self.sign_of_life(),
            LaneUpdate::Interrupted if self.running().is_empty() => {}
            LaneUpdate::Interrupted => {
                paint::line(&[(Tone::Warn, STOPPING)]);
                self.story.interrupted();
            }
            LaneUpdate::Text(text) => paint::log(&text),
            LaneUpdate::Over(ending) => self.close(&ending),
        }
    }

    fn end_step(&mut self, StepReport { lane, step, .. }: &StepReport) {
        self.look.live.end(&format!("{lane}/{step}"));
        let mut running = self.running();
        // Take the first step of this name, because the step may have started again.
        if let Some(at) = running.iter().position(|(running, _)| running == step) {
            running.remove(at);
        }
    }

    fn running(&self) -> MutexGuard<'_, Vec<(String, Stopwatch)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a step's line and the requested part of its output. Foreign text always follows
    /// fledge's own marks.
    fn block(&mut self, report: &StepReport, line: steps::StyledLine, is_tried_again: bool) -> ShownTail {
        let default = if self.look.in_folds { OutputOf::All } else { OutputOf::Failures };
        let output = self.look.output.unwrap_or(default);
        let is_bad = report.status.is_failure() || report.status == StepStatus::AllowedFailure;
        self.quiet = Stopwatch::start();
        let is_wanted = output == OutputOf::All || (output == OutputOf::Failures && is_bad);
        match (&report.log, is_wanted) {
            (Some(log), true) if self.look.in_folds => {
                paint::command(&github::group(report, is_tried_again));
                say_if_unread(written(|lines| {
                    step_log::both_ends(Path::new(log), FOLDED, |line| lines.line(&steps::output(line)))
                }));
                paint::line(&[(Tone::Faint, &format!("    log: {log}"))]);
                paint::command(github::ENDGROUP);
                return ShownTail::Folded;
            }
            (Some(log), true) if output == OutputOf::All => {
                paint::line(&line);
                let shown =
                    written(|lines| step_log::each_line(Path::new(log), |line| lines.line(&steps::output(line))));
                let in_sight = shown.as_ref().is_ok_and(|count| *count <= IN_SIGHT);
                say_if_unread(shown);
                if !is_bad {
                    return ShownTail::Result;
                }
                written(|lines| steps::explanation(report, false).iter().for_each(|line| lines.line(line)));
                return if in_sight { ShownTail::Explained } else { ShownTail::Folded };
            }
            (Some(_) | None, _) => paint::line(&line),
        }
        let is_due = !self.look.fails_fast || report.status == StepStatus::AllowedFailure;
        if !(is_wanted && is_bad && is_due) {
            return ShownTail::Result;
        }
        written(|lines| steps::explanation(report, true).iter().for_each(|line| lines.line(line)));
        ShownTail::Explained
    }

    /// Prints the running steps. Without a terminal, a long silence looks like a hung program.
    fn sign_of_life(&mut self) {
        if self.look.live.is_wanted() || self.running().is_empty() || self.quiet.read() < self.look.silence {
            return;
        }
        let one = |(step, since): &(String, Stopwatch)| {
            format!("{} ({})", paint::one_line(step), clock(milliseconds(since.read())))
        };
        let all: Vec<String> = self.running().iter().map(one).collect();
        paint::line(&[(Tone::Faint, format!("  still running: {}", all.join(", ")))]);
        self.story.interrupted();
        self.quiet = Stopwatch::start();
    }

    fn close(&mut self, LaneEnding { word, passed, was_stopped, ms, commands }: &LaneEnding) {
        self.look.live.clear();
        commands.iter().for_each(|command| paint::command(command));
        if !commands.is_empty() {
            self.story.interrupted();
        }
        let with_excerpt = self.look.output != Some(OutputOf::None);
        if !self.look.in_folds {
            // In GitHub Actions, the fold shows the output and the annotation explains the failure.
            written(|lines| self.story.closing(with_excerpt).iter().for_each(|line| lines.line(line)));
        }
        let causes = self.story.causes();
        let counts = self.story.counts(self.look.fails_fast && !was_stopped);
        let rest = if causes.is_empty() { counts.clone() } else { steps::named(&causes) };
        if !causes.is_empty() && !self.story.is_all_causes() {
            paint::line(&[(Tone::Faint, format!("  {counts}"))]);
        }
        let tone = if *passed { Tone::Good } else { Tone::Bad };
        let result = format!("lane {} {word}", self.look.lane);
        paint::line(&[
            (tone, result),
            (Tone::Faint, format!(" ({})", seconds(*ms))),
            (Tone::Plain, format!(": {}", &rest)),
        ]);
    }
}

fn written<T>(say: impl FnOnce(&mut paint::LineBuffer) -> T) -> T {
    let mut lines = paint::LineBuffer::default();
    let said = say(&mut lines);
    lines.write();
    said
}

fn say_if_unread<T>(read: std::io::Result<T>) {
    if let Err(error) = read {
        paint::line(&[(Tone::Warn, format!("    cannot read the log: {error}"))]);
    }
}
