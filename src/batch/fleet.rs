//! The loop over the runs of a batch: all of them are driven by one thread, side by side. It does what the course says and tells what
//! happens; which job has its turn is not decided here.

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

/// How long the end of a run that was stopped waits for who is told of it.
const LAST_WORDS_IN_HASTE: Duration = Duration::from_millis(300);

/// What a job is made of when its turn comes: before that it takes no more than its name.
#[derive(Debug)]
pub struct Errand {
    /// What is to be done.
    pub task: Task,
    /// With what.
    pub settings: Settings,
    /// As which run.
    pub run: As,
    /// What of that run's cost the course knows of from before, in millionths of a US dollar.
    pub paid: u64,
}

/// As which run a job is done.
#[derive(Debug, Clone, PartialEq)]
pub enum As {
    /// As a new one, of this key where it has one.
    New(Option<String>),
    /// As one that was interrupted: it goes on, and may cost what the task may.
    Resumed(RunId),
    /// As one that is over, of which only nobody has heard: this is what it came to.
    Over(Box<TaskResult>),
}

/// A job that cannot be begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The reason whose exit code says it.
    pub reason: Reason,
    /// Why, in one line.
    pub message: String,
}

/// Where jobs come from, and where it is kept what they came to.
pub trait Source {
    /// A job whose turn has come: its run may cost no more than this.
    ///
    /// # Errors
    /// When it cannot be begun; the others go on.
    fn errand(&self, job: usize, tries: u32, usd_micros: Option<u64>) -> impl Future<Output = Result<Errand, Refusal>>;

    /// A job is over, and is not begun again.
    ///
    /// # Errors
    /// When that cannot be kept: the batch ends there.
    fn over(&self, job: usize, outcome: &Outcome) -> impl Future<Output = Result<(), Refusal>>;

    /// What goes on beside the runs, for as long as there are any; it ends only where they must end too.
    fn beside(&self) -> impl Future<Output = Refusal> {
        std::future::pending()
    }
}

/// What is told of a batch while it runs.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum News<'n> {
    /// A run begins for a job.
    Started { job: usize, tries: u32 },
    /// Something happened in a run. Told by another thread, in the run's order.
    Record { job: usize, record: &'n EventRecord },
    /// A job is tried once more, after a pause: this is what the run came to.
    Again { job: usize, tries: u32, after: Duration, outcome: &'n Outcome },
    /// A job is over; of one with a run there is the whole result.
    Over { job: usize, outcome: &'n Outcome, result: Option<&'n TaskResult> },
}

/// Who is told.
#[derive(Clone)]
pub struct Tell(Arc<dyn Fn(News<'_>) + Send + Sync>);

impl Tell {
    /// Has `hear` told of everything.
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

/// What a run came to.
struct Done {
    job: usize,
    end: End,
    result: Option<TaskResult>,
    /// What of its cost was known before.
    paid: u64,
}

/// The runs under way.
struct Fleet<'f, S> {
    source: &'f S,
    tell: &'f Tell,
    stop: &'f Stop,
    running: FuturesUnordered<LocalBoxFuture<'f, Done>>,
    /// Those that have ended while something else was waited for.
    ended: VecDeque<Done>,
    /// What stops each of them.
    stops: BTreeMap<usize, Stop>,
    /// What goes on beside them, while it does.
    beside: Option<LocalBoxFuture<'f, Refusal>>,
    /// What ends the batch.
    broken: Option<Refusal>,
}

/// Runs all jobs of a course to their ends; what they came to is in the course. The stop ends all that run, each within two seconds, and no
/// other begins.
///
/// # Errors
/// When it cannot be kept what a job came to: nothing runs any more when this returns.
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

    /// The next run that ends; nothing where something else has happened.
    async fn next(&mut self) -> Option<Done> {
        if self.ended.is_empty() {
            self.go_on().await;
        }
        self.ended.pop_front()
    }

    /// Has all of them go on until one ends, or what is beside them does.
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

    /// Waits for something while all of them go on: they may hold what it waits for.
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

    /// First kept, then told.
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

/// Has an agent do a job, to its end.
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
        // What is told of its end comes behind all that it has told itself, however slow the reader is.
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
