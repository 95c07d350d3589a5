//! All output of one run of a lane: text on standard error, JSON on standard output, and files.

use super::super::failure::CliError;
use super::super::live::LiveView;
use super::super::output::hear_out;
use super::super::paint;
use super::super::results::below_checkout;
use super::data::{JsonForm, LaneData};
use super::files::{LaneResultFiles, LaneResultFormat, OutputPlace, in_place};
use super::screen::{LaneEnding, LaneScreen, LaneScreenStyle, LaneUpdate, OutputOf, RunningSteps};
use crate::config::EnvironmentLayer;
use crate::driver::{EventWatcher, StopToken};
use crate::duration::{milliseconds, parse_duration};
use crate::lane::Lane;
use crate::lane_runner::{LaneOutcome, LaneRuling, OutputInterest};
use crate::process::{Backpressure, Stopwatch};
use crate::report::lane::{LaneResult, github};
use crate::verdict::{Reason, StepProgress, StepReport, StopCause};
use clap::Args;
use serde_json::Value;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct LaneOutputArguments {
    /// Never prompt, and draw no live lines
    #[arg(long, alias = "non-interactive")]
    ni: bool,
    /// Show the output of these steps [default: failures; all in GitHub Actions]
    #[arg(long, value_name = "WHOSE", value_enum)]
    output: Option<OutputOf>,
    /// Print JSON to standard output [default form: object]
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "object"
    )]
    pub(super) json: Option<JsonForm>,
    /// Write a JUnit report to FILE, with a test for each step; `-` for standard output
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a summary to FILE, as Markdown; `-` for standard output
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Write the failures to FILE as SARIF, for code scanning; `-` for standard output
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Write the failures to FILE as a GitLab code quality report; `-` for standard output
    #[arg(long, value_name = "FILE")]
    code_quality: Option<PathBuf>,
    /// Longest silence without a terminal before the running steps are named
    #[arg(long, value_name = "TIME", hide = true, default_value = "30s", allow_hyphen_values = true, value_parser = parse_duration)]
    silence: Duration,
}

impl LaneOutputArguments {
    /// Returns the files to write at the end of the lane.
    ///
    /// # Errors
    /// When a file cannot be written, or two texts go to standard output.
    pub(super) fn places(&self, environment: &EnvironmentLayer) -> Result<LaneResultFiles, CliError> {
        let files = self.all(environment);
        files.check(self.json.is_some())?;
        Ok(files)
    }

    /// Returns the files that can be written, for a message that others cannot.
    pub(super) fn sound_places(&self, environment: &EnvironmentLayer) -> LaneResultFiles {
        self.all(environment).sound(self.json.is_some())
    }

    fn all(&self, environment: &EnvironmentLayer) -> LaneResultFiles {
        let job_summary = environment.get("GITHUB_STEP_SUMMARY").map(PathBuf::from);
        let job_summary = job_summary.filter(|_| paint::is_runner(environment));
        LaneResultFiles { wanted: self.wanted(), job_summary }
    }

    /// Returns the absolute paths of the files to write.
    pub(super) fn files(&self, environment: &EnvironmentLayer) -> Vec<PathBuf> {
        let job_summary = environment.get("GITHUB_STEP_SUMMARY").map(PathBuf::from);
        let wanted = self.wanted().into_iter().map(|(_, path)| path);
        wanted.chain(job_summary).map(|path| in_place(&std::path::absolute(&path).unwrap_or(path))).collect()
    }

    fn wanted(&self) -> Vec<(LaneResultFormat, PathBuf)> {
        let all = [
            (LaneResultFormat::Junit, &self.junit),
            (LaneResultFormat::Summary, &self.summary),
            (LaneResultFormat::Sarif, &self.sarif),
            (LaneResultFormat::CodeQuality, &self.code_quality),
        ];
        all.into_iter().filter_map(|(form, path)| Some((form, path.clone()?))).collect()
    }
}

/// The output of one run.
#[derive(Debug)]
pub(super) struct LaneOutput {
    lane: String,
    live: LiveView,
    running: RunningSteps,
    screen: EventWatcher<LaneUpdate>,
    data: LaneData,
    files: LaneResultFiles,
    /// Failed tries that were followed by another.
    retried: Mutex<Vec<StepReport>>,
    /// True if a runner of GitHub Actions reads the output.
    in_folds: bool,
    /// The path of the project below the checkout of GitHub Actions.
    below: PathBuf,
    silence: Duration,
}

impl LaneOutput {
    /// Begins the output about a lane.
    ///
    /// # Errors
    /// When a file cannot be written, or two texts go to standard output.
    pub(super) fn new(
        lane: &Lane,
        wanted: &LaneOutputArguments,
        root: &Path,
        environment: &EnvironmentLayer,
    ) -> Result<Self, CliError> {
        let in_folds = paint::is_runner(environment);
        let is_quiet = wanted.ni || in_folds || environment.flag("FLEDGE_NON_INTERACTIVE").map_err(CliError::input)?;
        let files = wanted.places(environment)?;
        let data = LaneData::new(wanted.json, files.are_wanted());
        let look = LaneScreenStyle {
            lane: lane.name.clone(),
            live: LiveView::new(!is_quiet && paint::can_draw(environment)),
            output: wanted.output,
            fails_fast: lane.fail_fast,
            in_folds,
            silence: wanted.silence,
        };
        let running = RunningSteps::default();
        let (live, mut screen) = (look.live, LaneScreen::new(look, running.clone()));
        let screen = EventWatcher::new(|_| size_of::<LaneUpdate>(), move |news, _| screen.show(news));
        data.started(&lane.name, &lane.steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>());
        let (lane, retried) = (lane.name.clone(), Mutex::default());
        let below = below_checkout(environment, root);
        Ok(Self { lane, live, running, screen, data, files, retried, in_folds, below, silence: wanted.silence })
    }

    /// Returns the lines of output that are needed: all of them for JSON events, the newest for
    /// live lines.
    pub(super) fn listens(&self) -> OutputInterest {
        if self.data.tells_lines() { OutputInterest::Lines } else { OutputInterest::LastLine }
    }

    /// Returns the pace that holds back the output of steps while the reader of events is behind.
    pub(super) fn pace(&self) -> Option<Backpressure> {
        self.data.pace()
    }

    /// Handles the progress of a step.
    pub(super) fn show_step(&self, progress: StepProgress) {
        self.data.step(&progress);
        match progress {
            // These two bypass the screen's queue: storing them for the next drawing costs next to
            // nothing.
            StepProgress::Started { lane, step, command } => {
                self.live.start(&format!("{lane}/{step}"), &command);
                lock(&self.running).push((step, Stopwatch::start()));
            }
            StepProgress::Output { lane, step, line } | StepProgress::Partial { lane, step, line } => {
                self.live.note(&format!("{lane}/{step}"), line);
            }
            StepProgress::Retried(report) => {
                lock(&self.retried).push(report.clone());
                self.screen.send(LaneUpdate::Retried(report), false);
            }
            StepProgress::Ended(report) => self.screen.send(LaneUpdate::Ended(report), false),
        }
    }

    /// Sends the screen ticks, and the user's request to stop. Never returns.
    pub(super) async fn tick(&self, stop: &StopToken) -> Infallible {
        let time = async {
            loop {
                tokio::time::sleep(self.silence.min(Duration::from_secs(1))).await;
                self.screen.send(LaneUpdate::Tick, true);
            }
        };
        let stop_request = async {
            stop.token().cancelled().await;
            if stop.cause() == StopCause::Interrupt {
                self.screen.send(LaneUpdate::Interrupted, false);
            }
            std::future::pending().await
        };
        tokio::select! {
            never = time => never,
            never = stop_request => never,
        }
    }

    /// Waits until the output so far is read. The caller reports the end in another way.
    pub(super) async fn break_off(self, stop: &StopToken) {
        hear_out(stop, async {
            self.screen.wait_until_idle().await;
            self.data.wait_until_written().await;
        })
        .await;
    }

    /// Reports the end, and the reason if no step gives one; returns the exit code. `object` builds
    /// the complete result.
    ///
    /// # Errors
    /// When the lane passed, but the output could not be written.
    pub(super) async fn close(
        self,
        outcome: &LaneOutcome,
        (word, why): (&'static str, &str),
        code: u8,
        object: impl FnOnce() -> Value,
        stop: &StopToken,
    ) -> Result<u8, CliError> {
        let retried = self.retried.into_inner().unwrap_or_else(PoisonError::into_inner);
        let duration_ms = milliseconds(outcome.duration);
        let passed = code == 0;
        let result = LaneResult {
            lane: &self.lane,
            word,
            passed,
            duration_ms,
            steps: &outcome.steps,
            retried: &retried,
            why,
            before: "",
            at: None,
        };
        self.data.ended(&outcome.steps, object);
        let commands = if self.in_folds { github::annotations(&result, &self.below) } else { Vec::new() };
        let was_stopped = outcome.ruling == LaneRuling::Cancelled;
        self.screen.send(LaneUpdate::Over(LaneEnding { word, passed, was_stopped, ms: duration_ms, commands }), false);
        for (place, text) in self.files.texts(&result) {
            match place {
                OutputPlace::Stderr => self.screen.send(LaneUpdate::Text(text), false),
                OutputPlace::Stdout | OutputPlace::File(_) | OutputPlace::EndOf(_) => self.data.text(place, text),
            }
        }
        let was_heard = hear_out(stop, async {
            self.screen.wait_until_idle().await;
            self.data.wait_until_written().await;
        })
        .await;
        match self.data.failure() {
            Some(failure) if passed => Err(failure),
            Some(failure) => {
                failure.show();
                Ok(code)
            }
            None if passed && !was_heard => Ok(Reason::Cancelled.exit_code(Some(stop.cause()))),
            None => Ok(code),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
