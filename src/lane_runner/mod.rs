//! Execution of a lane with real processes. [`crate::lane::LaneMachine`] decides the next actions;
//! this module executes them and reports the results. When [`run_lane`] returns or is dropped, no
//! process of the lane is left.

mod excerpt;
mod existing_reports;
mod explain;
mod junit;
mod lines;
mod listen;
mod place;
mod recall;
mod report;
mod reporters;
mod test_report;
mod unrun;

pub use crate::lane::{JunitReport, LaneOutcome, LaneRuling, ReportedState, RunnerReport, StepSpan};
pub use junit::JunitError;
pub use listen::OutputInterest;
pub use recall::{recall, remember};
pub use test_report::TestReportError;

pub(crate) use excerpt::excerpt;
#[cfg(feature = "cli")]
pub(crate) use report::not_run;

use crate::lane::{Lane, LaneMachine, LaneOrder, RetryDecision, Step};
use crate::limits::{GRACE, LINGER, LOG_LIMIT};
use crate::process::sandbox::{PathRules, Sandbox, SandboxKind};
use crate::process::{self, Backpressure, EndedProcess, Invocation, ProcessEnd, Variables};
use crate::verdict::{StepProgress, StepReport, StepStatus};
use existing_reports::ExistingReports;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use listen::{OutputLine, OutputSender};
use reporters::Reporters;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use test_report::{ReportRoot, forget_junit, read_junit};
use tokio_util::sync::CancellationToken;

/// The directories, environment and limits with which a lane runs.
#[derive(Debug, Clone)]
pub struct LaneRoom {
    /// The directory in which steps start. The `dir` of a step is relative to it.
    pub root: PathBuf,
    /// The environment of every step. Variables of the lane and of the step override it. Steps
    /// inherit no other variables.
    pub env: Variables,
    /// The directory for logs, with one file for each try of a step.
    pub log_dir: PathBuf,
    /// The maximum number of parallel steps, unless the lane sets one.
    pub jobs: usize,
    /// The reasons for leaving steps out, by step number; see [`Lane::left_out`]. Steps beyond the
    /// end of the list run.
    pub left_out: Vec<Option<String>>,
    /// The expected durations of steps, by step number. Of the steps that are ready, the longest
    /// starts first.
    pub expected: Vec<Duration>,
    /// The output that the listener receives while steps run.
    pub listen: OutputInterest,
    /// A gate that a slow listener closes. Full pipes then delay the steps.
    pub pace: Option<Backpressure>,
    /// The sandbox around the steps; `None` for no sandbox.
    pub behind: Option<SandboxedSteps>,
    /// A callback that runs after each step.
    pub after_step: Option<AfterStep>,
    /// The folder for the reporters of test runners. `None` if runners report no tests.
    pub reporters: Option<PathBuf>,
}

/// A callback that runs after each try of a step, with the name of the step. The lane waits for it.
#[derive(Clone)]
pub struct AfterStep(Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>);

impl AfterStep {
    /// Creates the callback from a function.
    pub fn new(look: impl Fn(String) -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look))
    }

    async fn look(&self, step: &str) {
        (self.0)(step.to_owned()).await;
    }
}

impl fmt::Debug for AfterStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AfterStep")
    }
}

/// The sandbox around the steps of a lane.
#[derive(Debug, Clone)]
pub struct SandboxedSteps {
    /// The sandbox.
    pub sandbox: Sandbox,
    /// The access that the sandbox allows.
    pub rules: PathRules,
    /// The path of the room's folder inside the sandbox.
    pub at: PathBuf,
}

impl LaneRoom {
    /// Creates a room in which every step runs, no duration is known, and the listener receives
    /// every line.
    pub fn new(root: PathBuf, env: Vec<(String, String)>, log_dir: PathBuf, jobs: usize) -> Self {
        let (left_out, expected) = (Vec::new(), Vec::new());
        let (listen, env) = (OutputInterest::Lines, env.into());
        let (pace, behind, after_step, reporters) = (None, None, None, None);
        Self { root, env, log_dir, jobs, left_out, expected, listen, pace, behind, after_step, reporters }
    }

    /// Formats an error, with the room's folder as its steps see it.
    fn as_seen(&self, error: &dyn std::error::Error) -> String {
        let text = error.to_string();
        let own = self.root.to_string_lossy();
        self.behind.as_ref().map_or_else(|| text.clone(), |it| text.replace(&*own, &it.at.to_string_lossy()))
    }

    /// Sets variables that tell package managers to work offline, if the sandbox has no network.
    /// The package managers then use their caches instead of failing. Variables that are set
    /// already keep their values.
    pub fn stay_offline(&mut self) {
        let is_cut_off = |behind: &SandboxedSteps| behind.sandbox.kind() != SandboxKind::Off && !behind.rules.network;
        if self.behind.as_ref().is_some_and(is_cut_off) {
            let unset = OFFLINE.iter().filter(|(name, _)| self.env.get(name).is_none());
            let unset: Vec<(String, String)> = unset.map(|(name, value)| ((*name).into(), (*value).into())).collect();
            self.env = self.env.with(unset.iter().map(|(name, value)| (name, value)));
        }
    }
}

/// Variables that tell package managers not to use the network.
pub const OFFLINE: [(&str, &str); 11] = [
    ("CARGO_NET_OFFLINE", "true"),
    ("COMPOSER_DISABLE_NETWORK", "1"),
    // rustup uses the installed components if `rust-toolchain.toml` names more.
    ("RUSTUP_AUTO_INSTALL", "0"),
    ("GOPROXY", "off"),
    ("HEX_OFFLINE", "1"),
    ("MAVEN_ARGS", "-o"),
    ("MISE_OFFLINE", "1"),
    ("UV_OFFLINE", "1"),
    ("YARN_ENABLE_NETWORK", "0"),
    ("COREPACK_ENABLE_NETWORK", "0"),
    ("npm_config_offline", "true"),
];

/// Runs a lane to its end. Needs a tokio runtime with I/O and time.
pub async fn run_lane(
    lane: &Lane,
    room: &LaneRoom,
    stop: &CancellationToken,
    on_event: &(dyn Fn(StepProgress) + Send + Sync),
) -> LaneOutcome {
    let watch = process::Stopwatch::start();
    let stops: Vec<CancellationToken> = lane.steps.iter().map(|_| CancellationToken::new()).collect();
    let mut reports: Vec<StepReport> = lane.steps.iter().map(|step| report::not_run(lane, step)).collect();
    let mut spans = vec![None::<StepSpan>; lane.steps.len()];
    let mut tests: Vec<StepTests> = vec![(None, (None, None)); lane.steps.len()];
    let jobs = process::room_for(lane.jobs.map_or(room.jobs, NonZeroUsize::get).min(lane.steps.len()));
    let mut machine = LaneMachine::new(lane, jobs, &room.left_out, &room.expected);
    let (mut running, mut resting) = (FuturesUnordered::new(), FuturesUnordered::new());
    let mut explaining = FuturesUnordered::new();
    let mut deadline = std::pin::pin!(tokio::time::sleep(lane.timeout));

    let (mut is_stopped, mut is_late, mut done) = (stop.is_cancelled(), false, None);
    let mut orders = if is_stopped { machine.cancel() } else { machine.start() };
    let (ruling, duration) = loop {
        for order in orders {
            match order {
                LaneOrder::Start(number) => {
                    spans[number].get_or_insert(StepSpan { begin: watch.read(), end: watch.read() });
                    let tries = reports[number].tries + 1;
                    running.push(run_step(lane, number, tries, room, &stops[number], on_event));
                }
                LaneOrder::Rest(number, pause) => resting.push(rest(number, pause)),
                LaneOrder::GiveUp(number) => on_event(StepProgress::Ended(report::given_up(&mut reports[number]))),
                LaneOrder::Stop(number) => stops[number].cancel(),
                LaneOrder::Leave(number, status, why) => {
                    (reports[number].status, reports[number].note) = (status, why);
                    on_event(StepProgress::Ended(reports[number].clone()));
                }
                LaneOrder::Done(ruling) => done = Some((ruling, watch.read())),
            }
        }
        if let (Some(done), true) = (done, explaining.is_empty()) {
            break done;
        }
        orders = tokio::select! {
            biased;
            () = stop.cancelled(), if !is_stopped => {
                is_stopped = true;
                machine.cancel()
            }
            () = &mut deadline, if !is_late => {
                is_late = true;
                machine.expire()
            }
            Some((number, tried)) = running.next() => {
                if let Some(span) = &mut spans[number] {
                    span.end = watch.read();
                }
                let report = report::ended(lane, number, &tried, &reports[number], machine.status_of_stopped());
                let (status, next, orders) = machine.ended(number, report.status);
                reports[number] = StepReport { status, ..report };
                tests[number] = (tried.tests.and_then(Result::ok), (tried.found, tried.reported));
                let log = explain::is_worth_its_log(status, &tried.ended).then_some(tried.log);
                match (next, log) {
                    (RetryDecision::Again, _) => on_event(StepProgress::Retried(reports[number].clone())),
                    // The log is read after the other orders and in parallel: stopping other steps
                    // must not wait for a long log.
                    (RetryDecision::Over, Some(log)) => explaining.push(explain::from_log(number, log, stop)),
                    (RetryDecision::Over, None) => on_event(StepProgress::Ended(reports[number].clone())),
                }
                orders
            }
            Some(number) = resting.next() => machine.rested(number),
            Some((number, excerpt)) = explaining.next() => {
                excerpt.into_iter().for_each(|excerpt| reports[number].excerpt = excerpt);
                on_event(StepProgress::Ended(reports[number].clone()));
                Vec::new()
            }
        };
    };
    lane_outcome(ruling, reports, spans, tests, duration)
}

/// The reports of a step: the named one, those of builds, and that of test runners.
type StepTests = (Option<JunitReport>, (Option<JunitReport>, Option<RunnerReport>));

fn lane_outcome(
    ruling: LaneRuling,
    steps: Vec<StepReport>,
    spans: Vec<Option<StepSpan>>,
    tests: Vec<StepTests>,
    duration: Duration,
) -> LaneOutcome {
    let (test_reports, (found_reports, runner_reports)) = tests.into_iter().unzip();
    LaneOutcome { ruling, steps, spans, test_reports, found_reports, runner_reports, duration }
}

/// Waits before another try of a step; returns the step's number.
async fn rest(number: usize, pause: Duration) -> usize {
    tokio::time::sleep(pause).await;
    number
}

/// A finished try of a step.
struct Tried {
    tries: u32,
    ended: EndedProcess,
    log: PathBuf,
    /// The test report that the step names, or the reason why it is missing.
    tests: Option<Result<JunitReport, String>>,
    /// The tests from reports of builds, if the step names no report.
    found: Option<JunitReport>,
    /// The tests that test runners reported to fledge.
    reported: Option<RunnerReport>,
    /// The status and the reason, if the step or a program in it could not start.
    unrun: Option<(StepStatus, String)>,
}

/// Runs one try of a step; returns the step's number.
async fn run_step(
    lane: &Lane,
    number: usize,
    tries: u32,
    room: &LaneRoom,
    stop: &CancellationToken,
    on_event: &(dyn Fn(StepProgress) + Send + Sync),
) -> (usize, Tried) {
    let step = &lane.steps[number];
    let (lane_name, name) = (&lane.name, &step.name);
    on_event(StepProgress::Started { lane: lane_name.clone(), step: name.clone(), command: step.run.clone() });
    let tell = |line| {
        let (lane, step) = (lane_name.clone(), name.clone());
        on_event(match line {
            OutputLine::Whole(line) => StepProgress::Output { lane, step, line },
            OutputLine::Partial(line) => StepProgress::Partial { lane, step, line },
        });
    };
    let teller = OutputSender::new(room.listen, &tell);
    let again = if tries > 1 { format!("-try{tries}") } else { String::new() };
    let log = format!("{}-{:02}-{}{again}.log", file_name(lane_name), number + 1, file_name(name));
    let log = room.log_dir.join(log);
    let report = step.junit.as_ref().map(|junit| place::of_report(step, junit));
    let root = ReportRoot::new(room);
    let forgotten = report.as_ref().map_or(Ok(()), |path| forget_junit(&root, path));
    let found = ExistingReports::look(room, &root, step).await;
    let mut invocation = invocation(lane, step, room, &log);
    let variables = invocation.env.clone();
    let mut reporters = Reporters::open(room, step);
    reporters.iter().for_each(|reporters| reporters.add_to(step, &mut invocation));
    let ended = match place::unfit(room, step) {
        Some(why) => EndedProcess::at_once(ProcessEnd::NotStarted(why), Duration::ZERO),
        None => run_heard(room, invocation, &teller, &mut reporters, stop).await,
    };
    let reported = reporters.map(Reporters::finish);
    teller.finish();
    if let Some(after) = &room.after_step {
        after.look(name).await;
    }
    let unrun = unrun::judge(room, step, &variables, &ended);
    let read = |path: String| {
        let read = forgotten.and_then(|()| read_junit(&root, &path)).map_err(|fault| room.as_seen(&fault));
        read.map(|report| place::in_root(step, report))
    };
    let tests = report.map(read);
    let found = match found {
        Some(found) => found.read().await,
        None => None,
    };
    (number, Tried { tries, ended, log, tests, found, reported, unrun })
}

/// Runs a program, inside the sandbox of the room if there is one. Meanwhile, passes on its output
/// and reads the reports of test runners.
async fn run_heard(
    room: &LaneRoom,
    invocation: Invocation,
    teller: &OutputSender<'_>,
    reporters: &mut Option<Reporters>,
    stop: &CancellationToken,
) -> EndedProcess {
    let behind = room.behind.as_ref().map(|behind| {
        let mut rules = behind.rules.clone();
        reporters.iter().for_each(|reporters| reporters.show(&mut rules));
        (&behind.sandbox, rules)
    });
    let on_output = |bytes: &[u8]| teller.push(bytes);
    let running = async {
        match &behind {
            Some((sandbox, rules)) => sandbox.run_at(room.pace.as_ref(), rules, invocation, stop, &on_output).await,
            None => process::run_at(room.pace.as_ref(), invocation, stop, &on_output).await,
        }
    };
    tokio::select! {
        biased;
        ended = running => ended,
        never = teller.run() => match never {},
        never = reporters::read(reporters) => match never {},
    }
}

fn invocation(lane: &Lane, step: &Step, room: &LaneRoom, log: &Path) -> Invocation {
    let mut words = step.shell.iter().cloned();
    let root = room.behind.as_ref().map_or(&room.root, |behind| &behind.at);
    Invocation {
        program: words.next().unwrap_or_else(|| "/bin/sh".into()),
        args: words.chain([step.run.clone()]).collect(),
        dir: step.dir.as_ref().map_or_else(|| root.clone(), |dir| root.join(dir)),
        env: room.env.with(lane.env.iter().chain(&step.env)),
        timeout: step.timeout,
        grace: GRACE,
        linger: LINGER,
        log: Some(log.to_owned()),
        log_limit: LOG_LIMIT,
    }
}

/// Turns a name into a part of a file name.
fn file_name(name: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() || "-_".contains(char) { char } else { '-' };
    name.chars().take(40).map(plain).collect()
}

#[cfg(test)]
mod tests;
