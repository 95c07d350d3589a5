//! Event loop over the runs of a batch. One thread drives all runs. The loop carries out the steps
//! of the scheduler and reports what happens; it does not choose the next job.

use super::job_scheduler::{BatchScheduler, SchedulerStep};
use super::outcome::{FinishedJob, JobEnding, NotRunReason, RunSummary};
use crate::driver::{Agent, DriverSettings, EventRecord, StopToken};
use crate::duration::milliseconds;
use crate::elapsed::Elapsed;
use crate::error_chain::chain;
use crate::id::RunId;
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
pub struct PreparedJob {
    /// The task.
    pub task: Task,
    /// The settings of the agent.
    pub settings: DriverSettings,
    /// The run to use.
    pub run: RunIdentity,
    /// The cost of that run that the scheduler already counts, in millionths of a US dollar.
    pub paid: u64,
}

/// The run in which a job is done.
#[derive(Debug, Clone, PartialEq)]
pub enum RunIdentity {
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
pub struct JobRefusal {
    /// The reason, which determines the exit code.
    pub reason: Reason,
    /// The explanation, in one line.
    pub message: String,
}

/// Supplies the jobs of a batch and stores their outcomes.
pub trait JobSource {
    /// Prepares a job to run. Its run may cost at most `usd_micros`.
    ///
    /// # Errors
    /// When the job cannot begin. The other jobs continue.
    fn prepare(
        &self,
        job: usize,
        tries: u32,
        usd_micros: Option<u64>,
    ) -> impl Future<Output = Result<PreparedJob, JobRefusal>>;

    /// Stores the outcome of a job that has ended and will not run again.
    ///
    /// # Errors
    /// When the outcome cannot be stored. This ends the batch.
    fn keep_outcome(&self, job: usize, outcome: &FinishedJob) -> impl Future<Output = Result<(), JobRefusal>>;

    /// Runs in parallel with the runs of the batch. It returns only if the batch must end.
    fn beside(&self) -> impl Future<Output = JobRefusal> {
        std::future::pending()
    }
}

/// A report from a running batch.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum BatchUpdate<'n> {
    /// A run begins for a job.
    Started { job: usize, tries: u32 },
    /// An event of a run. Another thread reports these, in the order of the run.
    Record { job: usize, record: &'n EventRecord },
    /// A job will be tried again after a pause. `outcome` is the result of its last run.
    Again { job: usize, tries: u32, after: Duration, outcome: &'n FinishedJob },
    /// A job ended. `result` is the full result, if there was a run.
    Over { job: usize, outcome: &'n FinishedJob, result: Option<&'n TaskResult> },
}

/// A receiver of the reports of a batch.
#[derive(Clone)]
pub struct BatchListener(Arc<dyn Fn(BatchUpdate<'_>) + Send + Sync>);

impl BatchListener {
    /// Creates a receiver that calls `listener` for every report.
    pub fn new(listener: impl Fn(BatchUpdate<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    fn send(&self, news: BatchUpdate<'_>) {
        (self.0)(news);
    }
}

impl fmt::Debug for BatchListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

/// A job whose run ended or could not begin.
struct Done {
    job: usize,
    end: JobEnding,
    result: Option<TaskResult>,
    /// The part of its cost that was already counted.
    paid: u64,
}

/// The running jobs of a batch.
struct RunningJobs<'f, S> {
    source: &'f S,
    tell: &'f BatchListener,
    stop: &'f StopToken,
    running: FuturesUnordered<LocalBoxFuture<'f, Done>>,
    /// Runs that ended while the loop waited for something else.
    ended: VecDeque<Done>,
    /// The stop handle of each running job.
    stops: BTreeMap<usize, StopToken>,
    /// The parallel work of the source, until it ends.
    beside: Option<LocalBoxFuture<'f, JobRefusal>>,
    /// The reason to end the batch.
    broken: Option<JobRefusal>,
}

/// Runs all jobs to their ends; their outcomes are in the scheduler. `stop` ends every running job
/// within two seconds and prevents further ones.
///
/// # Errors
/// When the source cannot store an outcome, or its parallel work ends. All runs have ended by then.
pub async fn run<S: JobSource>(
    scheduler: &mut BatchScheduler,
    names: &[(String, String)],
    source: &S,
    stop: &StopToken,
    tell: &BatchListener,
) -> Result<(), JobRefusal> {
    let whole = stop.part();
    let clock = Stopwatch::start();
    let now = || Elapsed(milliseconds(clock.read()));
    let mut fleet = RunningJobs::new(source, tell, &whole);
    let mut is_stopping = false;
    loop {
        for step in scheduler.next(now()) {
            fleet.perform(step).await;
        }
        if fleet.broken.is_some() && !whole.token().is_cancelled() {
            whole.token().cancel();
        }
        if fleet.is_idle() && scheduler.is_over() {
            break;
        }
        let due = scheduler.due(now()).map(|moment| moment.since(now()));
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
                scheduler.stop(whole.cause());
            }
            done = fleet.next() => {
                let Some(Done { job, end, result, paid }) = done else { continue };
                fleet.stops.remove(&job);
                let (name, title) = names.get(job).cloned().unwrap_or_default();
                let cost = result.as_ref().and_then(|result| result.usage.total.cost_micros).unwrap_or(0);
                let usd_micros = cost.saturating_sub(paid);
                scheduler.ended(job, FinishedJob { job: name, title, tries: 0, usd_micros, beaten: false, end }, now());
                if let Some(outcome) = scheduler.outcome(job) {
                    fleet.finish_job(job, outcome, result.as_ref()).await;
                }
            }
            () = pause => {}
        }
    }
    fleet.broken.map_or(Ok(()), Err)
}

impl<'f, S: JobSource> RunningJobs<'f, S> {
    fn new(source: &'f S, tell: &'f BatchListener, stop: &'f StopToken) -> Self {
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

    async fn perform(&mut self, step: SchedulerStep) {
        match step {
            SchedulerStep::Start { job, tries, usd_micros } => {
                let stop = self.stop.part();
                self.stops.insert(job, stop.clone());
                let (source, tell) = (self.source, self.tell);
                tell.send(BatchUpdate::Started { job, tries });
                self.running.push(Box::pin(async move {
                    let prepare = tokio::select! {
                        biased;
                        () = stop.token().cancelled() => {
                            let end = JobEnding::NotRun(NotRunReason::Stopped(stop.cause()));
                            return Done { job, end, result: None, paid: 0 };
                        }
                        prepare = source.prepare(job, tries, usd_micros) => prepare,
                    };
                    match prepare {
                        Err(refusal) => refused(job, refusal),
                        Ok(prepare) => done(job, prepare, stop, tell.clone()).await,
                    }
                }));
            }
            SchedulerStep::Cancel { job } => {
                if let Some(stop) = self.stops.get(&job) {
                    stop.token().cancel();
                }
            }
            SchedulerStep::Over(job, outcome) => self.finish_job(job, &outcome, None).await,
            SchedulerStep::Again { job, tries, after, outcome } => {
                self.tell.send(BatchUpdate::Again { job, tries, after, outcome: &outcome });
            }
        }
    }

    /// Stores an outcome, then reports it.
    async fn finish_job(&mut self, job: usize, outcome: &FinishedJob, result: Option<&TaskResult>) {
        let source = self.source;
        if let Err(refusal) = self.during(source.keep_outcome(job, outcome)).await {
            self.broken.get_or_insert(refusal);
        }
        self.tell.send(BatchUpdate::Over { job, outcome, result });
    }
}

fn refused(job: usize, JobRefusal { reason, message }: JobRefusal) -> Done {
    Done { job, end: JobEnding::NotRun(NotRunReason::Refused { reason, message }), result: None, paid: 0 }
}

/// Runs an agent on a job until it ends.
async fn done(job: usize, prepare: PreparedJob, stop: StopToken, tell: BatchListener) -> Done {
    let PreparedJob { task, settings, run, paid } = prepare;
    let mut agent = Agent::new(settings).with_stop(stop.clone()).with_bound(task.budget.usd_micros);
    agent.on_record(move |record| tell.send(BatchUpdate::Record { job, record }));
    if let RunIdentity::New(key) = &run {
        agent = agent.with_run_key(key.clone());
    }
    let work = async {
        let ended = match run {
            RunIdentity::New(_) => agent.run_task(task).await,
            RunIdentity::Resumed(run) => agent.resume_or_end(&run).await,
            RunIdentity::Over(result) => return Ok(*result),
        };
        // All events of the run are reported before its end, even to a slow reader.
        tokio::select! {
            () = agent.wait_for_watchers(Duration::MAX) => {}
            () = in_haste(&stop) => {}
        }
        ended
    };
    let Ok(ended) = AssertUnwindSafe(work).catch_unwind().await else {
        return refused(job, JobRefusal { reason: Reason::Internal, message: Reason::Internal.row().meaning.into() });
    };
    let result = match ended {
        Ok(result) => result,
        Err(error) => match error.result() {
            Some(result) => result.clone(),
            None => return refused(job, JobRefusal { reason: error.reason(), message: chain(&error) }),
        },
    };
    Done { job, end: JobEnding::Ran(Box::new(RunSummary::from_result(&result))), result: Some(result), paid }
}

async fn in_haste(stop: &StopToken) {
    stop.token().cancelled().await;
    tokio::time::sleep(LAST_WORDS_IN_HASTE).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::job_scheduler::{BatchLimits, JobSlot, KnownJob};
    use crate::test_support::PATIENCE;
    use tokio::sync::Mutex;

    /// A source with one lock, which both `prepare` and `keep_outcome` need.
    #[derive(Default)]
    struct OneDoor {
        door: Mutex<()>,
    }

    impl JobSource for OneDoor {
        async fn prepare(&self, job: usize, _: u32, _: Option<u64>) -> Result<PreparedJob, JobRefusal> {
            for _ in 0..100 {
                drop(self.door.lock().await);
                tokio::task::yield_now().await;
            }
            Err(JobRefusal { reason: Reason::BadInput, message: format!("no {job}") })
        }

        async fn keep_outcome(&self, _: usize, _: &FinishedJob) -> Result<(), JobRefusal> {
            for _ in 0..100 {
                let held = self.door.lock().await;
                tokio::task::yield_now().await;
                drop(held);
            }
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn runs_go_on_while_it_is_kept_what_another_one_came_to() {
        let slot = |name: &str| JobSlot { name: name.into(), title: name.into(), ..JobSlot::default() };
        let names: Vec<(String, String)> = ["a", "b", "c"].map(|name| (name.to_owned(), name.to_owned())).into();
        let mut scheduler = BatchScheduler::new(
            BatchLimits { jobs: 3, ..BatchLimits::default() },
            vec![slot("a"), slot("b"), slot("c")],
            |_| KnownJob::Nothing,
        );
        let (stop, tell, source) = (StopToken::default(), BatchListener::new(|_| {}), OneDoor::default());
        let ran = run(&mut scheduler, &names, &source, &stop, &tell);
        let ran = tokio::time::timeout(PATIENCE, ran).await;
        assert_eq!(ran, Ok(Ok(())));
        assert_eq!(scheduler.outcomes().count(), 3);
    }
}
