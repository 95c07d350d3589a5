//! Benchmark of the queue in a file: submitting, claiming and completing by one and by many on one
//! thread, and waiting.
//!
//! Prints times and asserts nothing. A number as argument sets the number of jobs. Syncs depend on
//! the disk: `TMPDIR` selects it. CPU times are those of the whole process, with the kernel.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and its arguments")]
#![expect(clippy::print_stdout, reason = "its figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use fledge::queue::{BatchId, JobId, JobSpec, PoolName, Priority, Queue, ResultText, Worker, WorkerId};
use fledge::store::SqliteQueue;
use std::fs;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(3600);

fn main() {
    let jobs = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(10_000);
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(all(jobs));
}

async fn all(jobs: u32) {
    let home = tempfile::tempdir().unwrap();
    let queue = SqliteQueue::open(&home.path().join("queue.db")).unwrap();
    let of = |run: &str| (0..jobs).map(|at| spec(&format!("{run}-{at}"))).collect::<Vec<_>>();
    let (first, one_by_one) = (of("all"), spec("single"));
    measure("submit, all at once", jobs, async || drop(queue.submit(&first).await.unwrap())).await;
    measure("submit again what is there", jobs, async || drop(queue.submit(&first).await.unwrap())).await;
    measure("submit, one by one", jobs / 10, async || {
        for at in 0..jobs / 10 {
            let id = JobId::parse(format!("single-{at}")).unwrap();
            queue.submit(&[JobSpec { id, ..one_by_one.clone() }]).await.unwrap();
        }
    })
    .await;
    let held = queue.claim(&worker(), &[pool()], Duration::ZERO).await.unwrap().unwrap();
    measure("renew", jobs, async || {
        for _ in 0..jobs {
            queue.renew(&held).await.unwrap();
        }
    })
    .await;
    let half = jobs / 2;
    measure("claim and complete, one", half, async || work(&queue, half).await).await;
    let other = jobs - half;
    measure("claim and complete, 64 on one thread", other, async || {
        futures_util::future::join_all((0..64).map(|_| work(&queue, other / 64))).await;
    })
    .await;
    measure("status", 100, async || {
        for _ in 0..100 {
            queue.status(None).await.unwrap();
        }
    })
    .await;
    let nothing = [PoolName::parse("empty").unwrap()];
    measure("wait for nothing, 64 for 2 s", 64, async || {
        let (queue, worker) = (&queue, &worker());
        futures_util::future::join_all((0..64).map(|_| queue.claim(worker, &nothing, Duration::from_secs(2)))).await;
    })
    .await;
}

async fn work(queue: &SqliteQueue, jobs: u32) {
    for _ in 0..jobs {
        let lease = queue.claim(&worker(), &[pool()], LONG).await.unwrap().unwrap();
        queue.complete(&lease, &ResultText(lease.job.to_string())).await.unwrap();
    }
}

fn spec(name: &str) -> JobSpec {
    JobSpec {
        id: JobId::parse(name).unwrap(),
        batch: BatchId::parse("bench").unwrap(),
        pool: pool(),
        priority: Priority::Normal,
        payload: "x".repeat(300),
        deliveries: NonZeroU32::MIN,
        delay: Duration::ZERO,
    }
}

fn pool() -> PoolName {
    PoolName::parse("p").unwrap()
}

fn worker() -> Worker {
    Worker { id: WorkerId::parse("w").unwrap(), term: LONG, batch: None }
}

/// Does the work once. Prints the operations a second, and the CPU time of each.
async fn measure(name: &str, times: u32, work: impl AsyncFnOnce()) {
    let (start, cpu) = (Instant::now(), ticks());
    work().await;
    let (took, cpu) = (start.elapsed(), (ticks() - cpu) * 10.0);
    let each = f64::from(times.max(1));
    println!("{name}: {:.0}/s, {:.3} ms of CPU each", each / took.as_secs_f64(), cpu / each);
}

/// Returns the CPU time of this process, in hundredths of a second (`utime` and `stime`,
/// proc_pid_stat(5)).
fn ticks() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()
}
