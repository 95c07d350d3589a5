//! Drives a lane's course with real processes. What is to be done is decided by [`crate::lane::Course`]; here it is done, and
//! what came of it is told. When [`run_lane`] returns or is dropped, nothing of the lane is left running.

mod excerpt;
mod explain;
mod found;
mod junit;
mod lines;
mod listen;
mod lookout;
mod place;
mod recall;
mod report;
mod test_report;
mod unrun;

pub use crate::lane::LaneRuling;
pub use junit::{JunitReport, Malformed};
pub use listen::Listen;
pub use lookout::AfterStep;
pub use recall::{recall, remember};
pub use test_report::TestReportFault;

pub(crate) use excerpt::excerpt;

use crate::lane::{Course, Lane, Next, Order, Step};
use crate::limits::{GRACE, LINGER, LOG_LIMIT};
use crate::process::wall::{Holes, Wall, WallKind};
use crate::process::{self, End, Ended, Invocation, Pace, Variables};
use crate::verdict::{StepProgress, StepReport, StepStatus};
use found::Found;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use listen::Teller;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use test_report::{ReportRoot, forget_junit, read_junit};
use tokio_util::sync::CancellationToken;

/// Where and how a lane runs.
#[derive(Debug, Clone)]
pub struct Room {
    /// The directory that steps start in, and that their `dir` is relative to.
    pub root: PathBuf,
    /// The environment of every step; the lane's and the step's own variables win over it. Nothing else is inherited.
    pub env: Variables,
    /// The directory for the logs, one file for each try of a step.
    pub log_dir: PathBuf,
    /// How many steps may run at a time, if the lane does not say.
    pub jobs: usize,
    /// Why steps are left out, by their number; see [`Lane::left_out`]. Those beyond its end run.
    pub left_out: Vec<Option<String>>,
    /// How long steps are thought to take, by their number: the longest that may start starts first.
    pub expected: Vec<Duration>,
    /// What is told of the output of steps while they run.
    pub listen: Listen,
    /// Shut by a listener that is behind: steps are held up for a while by their full pipes then.
    pub pace: Option<Pace>,
    /// What stands around the steps; `None`: nothing.
    pub behind: Option<Behind>,
    /// What is called whenever a step has ended.
    pub after_step: Option<AfterStep>,
}

/// A wall around the steps of a lane.
#[derive(Debug, Clone)]
pub struct Behind {
    /// The wall.
    pub wall: Wall,
    /// What it lets through.
    pub holes: Holes,
    /// Where the room's folder is found behind it.
    pub at: PathBuf,
}

impl Room {
    /// A room in which every step runs, none is known to take longer than another, and every line is told.
    pub fn new(root: PathBuf, env: Vec<(String, String)>, log_dir: PathBuf, jobs: usize) -> Self {
        let (left_out, expected) = (Vec::new(), Vec::new());
        let (listen, env) = (Listen::Lines, env.into());
        Self { root, env, log_dir, jobs, left_out, expected, listen, pace: None, behind: None, after_step: None }
    }

    /// The text of an error, with the room's folder as its steps find it.
    fn as_seen(&self, error: &dyn std::error::Error) -> String {
        let text = error.to_string();
        let own = self.root.to_string_lossy();
        self.behind.as_ref().map_or_else(|| text.clone(), |it| text.replace(&*own, &it.at.to_string_lossy()))
    }

    /// Tells package managers that there is no network, where there is none: they use what they have in place of an error. A variable that
    /// is set already stays.
    pub fn stay_offline(&mut self) {
        let is_cut_off = |behind: &Behind| behind.wall.kind() != WallKind::Off && !behind.holes.network;
        if self.behind.as_ref().is_some_and(is_cut_off) {
            let unset = OFFLINE.iter().filter(|(name, _)| self.env.get(name).is_none());
            let unset: Vec<(String, String)> = unset.map(|(name, value)| ((*name).into(), (*value).into())).collect();
            self.env = self.env.with(unset.iter().map(|(name, value)| (name, value)));
        }
    }
}

/// Variables that tell package managers not to ask the network.
const OFFLINE: [(&str, &str); 9] = [
    ("CARGO_NET_OFFLINE", "true"),
    // rustup uses what is installed where `rust-toolchain.toml` names more components.
    ("RUSTUP_AUTO_INSTALL", "0"),
    ("GOPROXY", "off"),
    ("MAVEN_ARGS", "-o"),
    ("MISE_OFFLINE", "1"),
    ("UV_OFFLINE", "1"),
    ("YARN_ENABLE_NETWORK", "0"),
    ("COREPACK_ENABLE_NETWORK", "0"),
    ("npm_config_offline", "true"),
];

/// A lane that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneOutcome {
    /// What it said.
    pub ruling: LaneRuling,
    /// All steps in the order of the lane, with those that were not started.
    pub steps: Vec<StepReport>,
    /// When each of them ran, in the same order; `None` for those that did not.
    pub spans: Vec<Option<Span>>,
    /// The test report that each of them wrote, in the same order, where it names one that can be read.
    #[serde(skip)]
    pub test_reports: Vec<Option<JunitReport>>,
    /// The tests of the reports that Maven and Gradle wrote in each of them without being asked, in the same order, where it names none.
    #[serde(skip)]
    pub found_reports: Vec<Option<JunitReport>>,
    /// From the first order to the end of the last step.
    pub duration: Duration,
}

/// When a step ran, from its first start to its last end, counted from the start of its lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The start.
    pub begin: Duration,
    /// The end; that of the last try when there were more.
    pub end: Duration,
}

/// Runs a lane to its end. Needs a tokio runtime with I/O and time.
pub async fn run_lane(
    lane: &Lane,
    room: &Room,
    stop: &CancellationToken,
    on_event: &(dyn Fn(StepProgress) + Send + Sync),
) -> LaneOutcome {
    let watch = process::Stopwatch::start();
    let stops: Vec<CancellationToken> = lane.steps.iter().map(|_| CancellationToken::new()).collect();
    let mut reports: Vec<StepReport> = lane.steps.iter().map(|step| report::not_run(lane, step)).collect();
    let mut spans = vec![None::<Span>; lane.steps.len()];
    let (mut test_reports, mut found_reports) = (vec![None; lane.steps.len()], vec![None; lane.steps.len()]);
    let jobs = process::room_for(lane.jobs.map_or(room.jobs, NonZeroUsize::get).min(lane.steps.len()));
    let mut course = Course::new(lane, jobs, &room.left_out, &room.expected);
    let (mut running, mut resting) = (FuturesUnordered::new(), FuturesUnordered::new());
    let mut explaining = FuturesUnordered::new();
    let mut deadline = std::pin::pin!(tokio::time::sleep(lane.timeout));

    let (mut is_stopped, mut is_late, mut done) = (stop.is_cancelled(), false, None);
    let mut orders = if is_stopped { course.cancel() } else { course.start() };
    let (ruling, duration) = loop {
        for order in orders {
            match order {
                Order::Start(number) => {
                    spans[number].get_or_insert(Span { begin: watch.read(), end: watch.read() });
                    let tries = reports[number].tries + 1;
                    running.push(run_step(lane, number, tries, room, &stops[number], on_event));
                }
                Order::Rest(number, pause) => resting.push(rest(number, pause)),
                Order::GiveUp(number) => on_event(StepProgress::Ended(report::given_up(&mut reports[number]))),
                Order::Stop(number) => stops[number].cancel(),
                Order::Leave(number, status, why) => {
                    (reports[number].status, reports[number].note) = (status, why);
                    on_event(StepProgress::Ended(reports[number].clone()));
                }
                Order::Done(ruling) => done = Some((ruling, watch.read())),
            }
        }
        if let (Some(done), true) = (done, explaining.is_empty()) {
            break done;
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
            Some((number, tried)) = running.next() => {
                if let Some(span) = &mut spans[number] {
                    span.end = watch.read();
                }
                let report = report::ended(lane, number, &tried, &reports[number], course.status_of_stopped());
                let (status, next, orders) = course.ended(number, report.status);
                reports[number] = StepReport { status, ..report };
                (test_reports[number], found_reports[number]) = (tried.tests.and_then(Result::ok), tried.found);
                let log = explain::is_worth_its_log(status, &tried.ended).then_some(tried.log);
                match (next, log) {
                    (Next::Again, _) => on_event(StepProgress::Retried(reports[number].clone())),
                    // Only now, and while others go on: what is to be stopped because of it does not wait for a long log.
                    (Next::Over, Some(log)) => explaining.push(explain::from_log(number, log, stop)),
                    (Next::Over, None) => on_event(StepProgress::Ended(reports[number].clone())),
                }
                orders
            }
            Some(number) = resting.next() => course.rested(number),
            Some((number, excerpt)) = explaining.next() => {
                excerpt.into_iter().for_each(|excerpt| reports[number].excerpt = excerpt);
                on_event(StepProgress::Ended(reports[number].clone()));
                Vec::new()
            }
        };
    };
    LaneOutcome { ruling, steps: reports, spans, test_reports, found_reports, duration }
}

/// Waits before another try of a step; gives its number.
async fn rest(number: usize, pause: Duration) -> usize {
    tokio::time::sleep(pause).await;
    number
}

/// One try of a step, over.
struct Tried {
    tries: u32,
    ended: Ended,
    log: PathBuf,
    /// Its own test report, where the step names one, or why there is none.
    tests: Option<Result<JunitReport, String>>,
    /// The tests of the reports that its builds wrote, where it names none.
    found: Option<JunitReport>,
    /// What it comes to, and why, where it or something in it could not be started.
    unrun: Option<(StepStatus, String)>,
}

/// Tries a step; gives its number.
async fn run_step(
    lane: &Lane,
    number: usize,
    tries: u32,
    room: &Room,
    stop: &CancellationToken,
    on_event: &(dyn Fn(StepProgress) + Send + Sync),
) -> (usize, Tried) {
    let step = &lane.steps[number];
    let (lane_name, name) = (&lane.name, &step.name);
    on_event(StepProgress::Started { lane: lane_name.clone(), step: name.clone(), command: step.run.clone() });
    let tell = |line| on_event(StepProgress::Output { lane: lane_name.clone(), step: name.clone(), line });
    let teller = Teller::new(room.listen, &tell);
    let again = if tries > 1 { format!("-try{tries}") } else { String::new() };
    let log = format!("{}-{:02}-{}{again}.log", file_name(lane_name), number + 1, file_name(name));
    let log = room.log_dir.join(log);
    let report = step.junit.as_ref().map(|junit| place::of_report(step, junit));
    let root = ReportRoot::new(room);
    let forgotten = report.as_ref().map_or(Ok(()), |path| forget_junit(&root, path));
    let found = Found::look(room, &root, step).await;
    let invocation = invocation(lane, step, room, &log);
    let variables = invocation.env.clone();
    let on_output = |bytes: &[u8]| teller.take(bytes);
    let ended = match place::unfit(room, step) {
        Some(why) => Ended::at_once(End::NotStarted(why), Duration::ZERO),
        None => tokio::select! {
            biased;
            ended = run_behind(room, invocation, stop, &on_output) => ended,
            never = teller.run() => match never {},
        },
    };
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
    (number, Tried { tries, ended, log, tests, found, unrun })
}

/// Runs a program behind the room's wall, where there is one.
async fn run_behind(
    room: &Room,
    invocation: Invocation,
    stop: &CancellationToken,
    on_output: &(dyn Fn(&[u8]) + Send + Sync),
) -> Ended {
    let Some(Behind { wall, holes, .. }) = &room.behind else {
        return process::run_at(room.pace.as_ref(), invocation, stop, on_output).await;
    };
    wall.run_at(room.pace.as_ref(), holes, invocation, stop, on_output).await
}

fn invocation(lane: &Lane, step: &Step, room: &Room, log: &Path) -> Invocation {
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

/// A name as part of a file's name.
fn file_name(name: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() || "-_".contains(char) { char } else { '-' };
    name.chars().take(40).map(plain).collect()
}

#[cfg(test)]
mod tests;
