//! Event loop over the runs of a batch. One thread drives all runs. The loop carries out the steps
//! of the course and reports what happens; it does not choose the next job.

use super::course::{Course, Step};
use super::outcome::{End, NotRun, Outcome, Ran};
use crate::causes::chain;
use crate::driver::{Agent, EventRecord, Settings, Stop};
use crate::duration::milliseconds;
use crate::id::RunId;
use crate::moment::Moment;
use crate::process::Stopwatch;
use crate::run::TaskResult;
use crate::task::Task;
use crate::verdict::Reason;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// The time that the end of a stopped run waits for slow readers of its events.
const LAST_WORDS_IN_HASTE: Duration = Duration::from_millis(300);

/// A job that is ready to run. It is built only when its turn comes, to save memory.
#[derive(Debug)]
pub struct Errand {
    /// The task.
    pub task: Task,
    /// The settings of the agent.
    pub settings: Settings,
    /// The run to use.
    pub run: As,
    /// The cost of that run that the course already counts, in millionths of a US dollar.
    pub paid: u64,
}

/// The run in which a job is done.
#[derive(Debug, Clone, PartialEq)]
pub enum As {
    /// A new run, with this key if it has one.
    New(Option<String>),
    /// An interrupted run, which is resumed within the budget of the task.
    Resumed(RunId),
    /// A run that has ended, but whose result was not recorded.
    Over(Box<TaskResult>),
}

/// A job that cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The reason, which determines the exit code.
    pub reason: Reason,
    /// The explanation, in one line.
    pub message: String,
}

/// Supplies the jobs of a batch and stores their outcomes.
pub trait Source {
    /// Prepares a job to run. Its run may cost at most `usd_micros`.
    ///
    /// # Errors
    /// When the job cannot begin. The other jobs continue.
    fn errand(&self, job: usize, tries: u32, usd_micros: Option<u64>) -> impl Future<Output = Result<Errand, Refusal>>;

    /// Stores the outcome of a job that has ended and will not run again.
    ///
    /// # Errors
    /// When the outcome cannot be stored. This ends the batch.
    fn over(&self, job: usize, outcome: &Outcome) -> impl Future<Output = Result<(), Refusal>>;

    /// Runs in parallel with the runs of the batch. It returns only if the batch must end.
    fn beside(&self) -> impl Future<Output = Refusal> {
        std::future::pending()
    }
}

/// A report from a running batch.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum News<'n> {
    /// A run begins for a job.
    Started { job: usize, tries: u32 },
    /// An event of a run. Another thread reports these, in the order of the run.
    Record { job: usize, record: &'n EventRecord },
    /// A job will be tried again after a pause. `outcome` is the result of its last run.
    Again { job: usize, tries: u32, after: Duration, outcome: &'n Outcome },
    /// A job ended. `result` is the full result, if there was a run.
    Over { job: usize, outcome: &'n Outcome, result: Option<&'n TaskResult> },
}

/// A receiver of the reports of a batch.
#[derive(Clone)]
pub struct Tell(Arc<dyn Fn(News<'_>) + Send + Sync>);

impl Tell {
    /// Creates a receiver that calls `hear` for every report.
    pub fn new(hear: impl Fn(News<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    fn tell(&self, news: News<'_>) {
        (self.0)(news);
    }
}

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

/// A job whose run ended or could not begin.
struct Done {
    job: usize,
    end: End,
    result: Option<TaskResult>,
    /// The part of its cost that was already counted.
    paid: u64,
}

/// The running jobs of a batch.
struct Fleet<'f, S> {
    source: &'f S,
    tell: &'f Tell,
    stop: &'f Stop,
    running: FuturesUnordered<LocalBoxFuture<'f, Done>>,
    /// Runs that ended while the loop waited for something else.
    ended: VecDeque<Done>,
    /// The stop handle of each running job.
    stops: BTreeMap<usize, Stop>,
    /// The parallel work of the source, until it ends.
    beside: Option<LocalBoxFuture<'f, Refusal>>,
    /// The reason to end the batch.
    broken: Option<Refusal>,
}

/// Runs all jobs of a course to their ends; their outcomes are in the course. `stop` ends every
/// running job within two seconds and prevents further ones.
///
/// # Errors
/// When the source cannot store an outcome, or its parallel work ends. All runs have ended by then.
pub async fn run<S: Source>(
    course: &mut Course,
    names: &[(String, String)],
    source: &S,
    stop: &Stop,
    tell: &Tell,
) -> Result<(), Refusal> {
    let whole = stop.part();
    let clock = Stopwatch::start();
    let now = || Moment(milliseconds(clock.read()));
    let mut fleet = Fleet::new(source, tell, &whole);
    let mut is_stopping = false;
    loop {
        for step in course.next(now()) {
            fleet.take(step).await;
        }
        if fleet.broken.is_some() && !whole.token().is_cancelled() {
            whole.token().cancel();
        }
        if fleet.is_idle() && course.is_over() {
            break;
        }
        let due = course.due(now()).map(|moment| moment.since(now()));
        let pause = async {
            match due {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = whole.token().cancelled(), if !is_stopping => {
                is_stopping = true;
                course.stop(whole.cause());
            }
            done = fleet.next() => {
                let Some(Done { job, end, result, paid }) = done else { continue };
                fleet.stops.remove(&job);
                let (name, title) = names.get(job).cloned().unwrap_or_default();
                let cost = result.as_ref().and_then(|result| result.usage.total.cost_micros).unwrap_or(0);
                let usd_micros = cost.saturating_sub(paid);
                course.ended(job, Outcome { job: name, title, tries: 0, usd_micros, beaten: false, end }, now());
                if let Some(outcome) = course.outcome(job) {
                    fleet.over(job, outcome, result.as_ref()).await;
                }
            }
            () = pause => {}
        }
    }
    fleet.broken.map_or(Ok(()), Err)
}

impl<'f, S: Source> Fleet<'f, S> {
    fn new(source: &'f S, tell: &'f Tell, stop: &'f Stop) -> Self {
        Self {
            source,
            tell,
            stop,
            running: FuturesUnordered::new(),
            ended: VecDeque::new(),
            stops: BTreeMap::new(),
            beside: Some(Box::pin(source.beside())),
            broken: None,
        }
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.ended.is_empty()
    }

    /// Returns the next run that ends, or `None` if something else happened.
    async fn next(&mut self) -> Option<Done> {
        if self.ended.is_empty() {
            self.go_on().await;
        }
        self.ended.pop_front()
    }

    /// Drives all runs until one ends, or the parallel work of the source ends.
    async fn go_on(&mut self) {
        let Self { running, ended, beside, broken, stop, .. } = self;
        let refused = async {
            match beside {
                Some(beside) => beside.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(done) = running.next() => ended.push_back(done),
            refusal = refused => {
                *beside = None;
                if !stop.token().is_cancelled() {
                    broken.get_or_insert(refusal);
                }
            }
        }
    }

    /// Waits for `work` while driving all runs, since a run may hold what `work` waits for.
    async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.go_on() => {}
            }
        }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Start { job, tries, usd_micros } => {
                let stop = self.stop.part();
                self.stops.insert(job, stop.clone());
                let (source, tell) = (self.source, self.tell);
                tell.tell(News::Started { job, tries });
                self.running.push(Box::pin(async move {
                    let errand = tokio::select! {
                        biased;
                        () = stop.token().cancelled() => {
                            let end = End::NotRun(NotRun::Stopped(stop.cause()));
                            return Done { job, end, result: None, paid: 0 };
                        }
                        errand = source.errand(job, tries, usd_micros) => errand,
                    };
                    match errand {
                        Err(refusal) => refused(job, refusal),
                        Ok(errand) => done(job, errand, stop, tell.clone()).await,
                    }
                }));
            }
            Step::Cancel { job } => {
                if let Some(stop) = self.stops.get(&job) {
                    stop.token().cancel();
                }
            }
            Step::Over(job, outcome) => self.over(job, &outcome, None).await,
            Step::Again { job, tries, after, outcome } => {
                self.tell.tell(News::Again { job, tries, after, outcome: &outcome });
            }
        }
    }

    /// Stores an outcome, then reports it.
    async fn over(&mut self, job: usize, outcome: &Outcome, result: Option<&TaskResult>) {
        let source = self.source;
        if let Err(refusal) = self.during(source.over(job, outcome)).await {
            self.broken.get_or_insert(refusal);
        }
        self.tell.tell(News::Over { job, outcome, result });
    }
}

fn refused(job: usize, Refusal { reason, message }: Refusal) -> Done {
    Done { job, end: End::NotRun(NotRun::Refused { reason, message }), result: None, paid: 0 }
}

/// Runs an agent on a job until it ends.
async fn done(job: usize, errand: Errand, stop: Stop, tell: Tell) -> Done {
    let Errand { task, settings, run, paid } = errand;
    let mut agent = Agent::new(settings).with_stop(stop.clone()).with_bound(task.budget.usd_micros);
    agent.on_record(move |record| tell.tell(News::Record { job, record }));
    if let As::New(key) = &run {
        agent = agent.with_run_key(key.clone());
    }
    let work = async {
        let ended = match run {
            As::New(_) => agent.run_task(task).await,
            As::Resumed(run) => agent.resume_or_end(&run).await,
            As::Over(result) => return Ok(*result),
        };
        // All events of the run are reported before its end, even to a slow reader.
        tokio::select! {
            () = agent.settle(Duration::MAX) => {}
            () = in_haste(&stop) => {}
        }
        ended
    };
    let Ok(ended) = AssertUnwindSafe(work).catch_unwind().await else {
        return refused(job, Refusal { reason: Reason::Internal, message: Reason::Internal.row().meaning.into() });
    };
    let result = match ended {
        Ok(result) => result,
        Err(error) => match error.result() {
            Some(result) => result.clone(),
            None => return refused(job, Refusal { reason: error.reason(), message: chain(&error) }),
        },
    };
    Done { job, end: End::Ran(Box::new(Ran::of(&result))), result: Some(result), paid }
}

async fn in_haste(stop: &Stop) {
    stop.token().cancelled().await;
    tokio::time::sleep(LAST_WORDS_IN_HASTE).await;
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
