//! A worker in a separate process: it claims jobs, renews leases, works as the job says, and
//! returns results. It logs each action in a line, before or after its call to the queue, so that
//! the time between two lines is within the lease. It repeats a failed call once.

use crate::queue::stage::{Stage, calmly, job, pool, worker};
use fledge::queue::{Completed, JobLease, JobSpec, Queue, QueueError, Released, Renewed, ResultText, Retry, Worker};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::time::sleep;

const ORDERS: &str = "FLEDGE_QUEUE_WORKER";

/// The instructions of a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    address: String,
    log: PathBuf,
    worker: Worker,
    /// True if the worker first submits the story.
    pub(crate) tells: bool,
}

/// The log of all workers. Each line is `word job attempt token worker`, in order of time.
pub(crate) struct Log {
    home: TempDir,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) word: String,
    pub(crate) job: String,
    pub(crate) attempt: u32,
    pub(crate) token: u64,
    pub(crate) worker: String,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { home: crate::support::temp_dir() }
    }

    fn path(&self) -> PathBuf {
        self.home.path().join("log")
    }

    /// Releases the workers that wait at the gate.
    pub(crate) fn open_gate(&self) {
        fs::write(self.home.path().join("gate"), "").unwrap();
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        let text = fs::read_to_string(self.path()).unwrap_or_default();
        text.lines().map(line).collect()
    }

    /// Returns the number of lines with this word.
    pub(crate) fn count(&self, word: &str) -> usize {
        self.lines().iter().filter(|line| line.word == word).count()
    }
}

fn line(text: &str) -> Line {
    let words: Vec<&str> = text.split(' ').collect();
    let [word, job, attempt, token, worker] = words.as_slice() else { panic!("{text}") };
    let (attempt, token) = (attempt.parse().unwrap(), token.parse().unwrap());
    Line { word: (*word).into(), job: (*job).into(), attempt, token, worker: (*worker).into() }
}

/// A worker process. Dropping it kills the process.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Kills the process.
    pub(crate) fn end(&mut self) {
        let _it_may_have_ended = self.0.kill();
        self.0.wait().unwrap();
    }

    /// Waits for the process to end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

pub(crate) fn orders<S: Stage>(stage: &S, log: &Log, name: &str, term: Duration) -> Orders {
    let worker = Worker { term, ..worker(name) };
    Orders { address: stage.address(), log: log.path(), worker, tells: false }
}

/// Starts a worker that works until no job is open.
pub(crate) fn start<S: Stage>(stage: &S, log: &Log, name: &str, term: Duration) -> Process {
    start_so::<S>(&orders(stage, log, name, term), "")
}

/// Starts a worker in the same way, with an instruction to fail at some place.
pub(crate) fn start_so<S: Stage>(orders: &Orders, fail: &str) -> Process {
    let test = format!("queue::{}::works_in_a_process_of_its_own", S::NAME);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&test, "--exact", "--nocapture", "--test-threads=1"]).stdout(Stdio::null()).stdin(Stdio::null());
    if !fail.is_empty() {
        command.env("FLEDGE_FAIL", fail).stderr(Stdio::null());
    }
    Process(command.env(ORDERS, serde_json::to_string(orders).unwrap()).spawn().unwrap())
}

/// Does the work of a worker process. In any other process it does nothing.
pub(crate) fn work_if_asked<S: Stage>() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let orders: Orders = serde_json::from_str(&orders).unwrap();
    calmly(async { work(&S::at(&orders.address).open().await, &orders).await });
}

/// Returns jobs that together cover everything that can happen to a job.
pub(crate) fn story() -> Vec<JobSpec> {
    let told = |(name, payload): (&str, &str)| JobSpec {
        payload: payload.into(),
        deliveries: NonZeroU32::new(50).unwrap(),
        ..job(name)
    };
    [("long", "work 250"), ("again", "fail-once"), ("never", "refuse"), ("short", "work 0")].map(told).into()
}

/// Works until no job is open.
pub(crate) async fn work(queue: &impl Queue, orders: &Orders) {
    if orders.tells {
        twice(async || queue.submit(&story()).await).await;
    }
    loop {
        let lease = twice(async || queue.claim(&orders.worker, &[pool("p")], Duration::from_millis(100)).await).await;
        match lease {
            Some(lease) => one(queue, orders, &lease).await,
            None if queue.status(None).await.unwrap().open() == 0 => return,
            None => {}
        }
    }
}

async fn one(queue: &impl Queue, orders: &Orders, lease: &JobLease) {
    let say = |word: &str| {
        let mut log = OpenOptions::new().create(true).append(true).open(&orders.log).unwrap();
        let line = format!("{word} {} {} {} {}\n", lease.job, lease.attempt, lease.token, lease.worker);
        log.write_all(line.as_bytes()).unwrap();
    };
    let is_first = lease.attempt == 1;
    say("begin");
    let has_ended = match lease.payload.split(' ').collect::<Vec<_>>().as_slice() {
        ["die"] => std::process::abort(),
        ["refuse"] => {
            twice(async || queue.bury(lease, "no").await).await;
            return say("buried");
        }
        ["fail-once"] if is_first => {
            let retry = Retry::After { delay: Duration::from_millis(10), why: "once".into() };
            twice(async || queue.release(lease, &retry).await).await;
            return say("released");
        }
        ["hang"] if is_first => std::future::pending().await,
        ["gate"] if is_first => {
            at_gate(orders).await;
            true
        }
        ["gate-renewing"] if is_first => held(queue, lease, at_gate(orders), &say).await,
        ["work", ms] => held(queue, lease, sleep(Duration::from_millis(ms.parse().unwrap())), &say).await,
        _ => true,
    };
    if has_ended {
        say("end");
        let manifest = ResultText(format!("{} by {}", lease.job, lease.worker));
        match twice(async || queue.complete(lease, &manifest).await).await {
            Completed::First => say("result"),
            Completed::AlreadyDone | Completed::Lost => say("refused"),
        }
    }
}

async fn twice<T>(call: impl AsyncFn() -> Result<T, QueueError>) -> T {
    match call().await {
        Ok(done) => done,
        Err(_) => call().await.unwrap(),
    }
}

async fn at_gate(orders: &Orders) {
    while !orders.log.with_file_name("gate").exists() {
        sleep(Duration::from_millis(5)).await;
    }
}

/// Works and renews the lease. Returns true if the work ended while the lease was held.
async fn held(queue: &impl Queue, lease: &JobLease, work: impl Future<Output = ()>, say: &impl Fn(&str)) -> bool {
    let mut work = std::pin::pin!(work);
    let mut renewed = Instant::now();
    loop {
        // If a busy machine makes both due at once, the worker renews first, as it does on time.
        tokio::select! {
            biased;
            () = sleep(lease.beat()) => {}
            () = &mut work => return true,
        }
        if renewed.elapsed() > lease.fence() {
            say("late"); // the machine was too busy for this process
        }
        renewed = Instant::now();
        match twice(async || queue.renew(lease).await).await {
            Renewed::Kept => {}
            Renewed::Lost => {
                say("lost");
                return false;
            }
            Renewed::Cancelled => {
                assert_eq!(queue.release(lease, &Retry::Unused).await.unwrap(), Released::Cancelled);
                say("stop");
                return false;
            }
        }
    }
}
