//! Random calls, each compared with the model; after each call all jobs are compared as well.

use crate::queue::model::{Model, seen};
use crate::queue::stage::{LONG, Stage, batch, id, job, pool, row, rows, until, with, worker};
use crate::support::{Dice, amount, dice};
use fledge::queue::{CancelScope, JobLease, JobSpec, PoolName, Priority, Queue, QueueState, ResultText, Retry, Worker};
use std::num::NonZeroU32;
use std::time::Duration;

const POOLS: [&str; 2] = ["p", "q"];
const BATCHES: [&str; 2] = ["b", "c"];
const STEPS: usize = 60;

pub(crate) fn histories_by_chance_go_as_the_model_says<S: Stage>() {
    for number in 0..amount(15, 1000) {
        println!("history {number}");
        with(async |_: &S, queue| {
            let mut history = History {
                queue,
                dice: dice(&format!("history {number}")),
                model: Model::default(),
                leases: Vec::new(),
            };
            for _ in 0..STEPS {
                history.step::<S>().await;
                let found: Vec<_> = rows(&history.queue).await.iter().map(seen).collect();
                assert_eq!(found, history.model.seen());
            }
        });
    }
}

struct History<Q> {
    queue: Q,
    dice: Dice,
    model: Model,
    /// All leases so far.
    leases: Vec<JobLease>,
}

impl<Q: Queue> History<Q> {
    async fn step<S: Stage>(&mut self) {
        match self.dice.index(100) {
            0..20 => self.submit().await,
            20..45 => self.claim::<S>().await,
            45..75 if !self.leases.is_empty() => self.say().await,
            75..82 => self.cancel().await,
            82..88 => {
                let name = self.name();
                assert_eq!(self.queue.revive(&id(&name)).await.unwrap(), self.model.revive(&name));
            }
            88..92 => {
                let (of, most) = (self.one_of(POOLS), [None, Some(0), Some(1), Some(2)][self.dice.index(4)]);
                self.queue.limit(&pool(of), most).await.unwrap();
                self.model.limit(of, most);
            }
            92..97 => self.pause().await,
            97..99 => assert_eq!(self.queue.gc(Duration::ZERO).await.unwrap(), self.model.gc()),
            _ => assert_eq!(self.queue.gc(LONG).await.unwrap(), 0),
        }
    }

    async fn submit(&mut self) {
        let specs: Vec<JobSpec> = (0..=self.dice.index(3)).map(|_| self.spec()).collect();
        assert_eq!(self.queue.submit(&specs).await.unwrap(), self.model.submit(&specs), "{specs:?}");
    }

    fn spec(&mut self) -> JobSpec {
        let name = self.name();
        JobSpec {
            batch: batch(self.one_of(BATCHES)),
            pool: pool(self.one_of(POOLS)),
            priority: self.one_of([Priority::High, Priority::Normal, Priority::Low]),
            deliveries: NonZeroU32::new(1 + self.dice.index(3) as u32).unwrap(),
            delay: self.delay(),
            ..job(&name)
        }
    }

    async fn claim<S: Stage>(&mut self) {
        let vanishes = self.dice.percent(30);
        let term = if vanishes { S::SHORTEST } else { LONG };
        let of = [None, None, None, Some(batch(self.one_of(BATCHES)))][self.dice.index(4)].clone();
        let worker = Worker { term, batch: of, ..worker(self.one_of(["v", "w"])) };
        let pools = [&POOLS[..], &POOLS[..1], &POOLS[1..]][self.dice.index(3)];
        let names: Vec<PoolName> = pools.iter().map(|name| pool(name)).collect();
        let lease = self.queue.claim(&worker, &names, Duration::ZERO).await.unwrap();
        let found = lease.as_ref().map(|lease| (lease.job.to_string(), lease.attempt));
        assert_eq!(found, self.model.next(&worker, pools), "{worker:?} {pools:?}");
        let Some(lease) = lease else { return };
        self.model.claimed(&lease);
        if vanishes {
            until(async || row(&self.queue, lease.job.as_str()).await.state != QueueState::Running).await;
            self.model.outlived(&lease);
        }
        self.leases.push(lease);
    }

    /// Makes a random call with a lease, valid or not.
    async fn say(&mut self) {
        let recent = self.leases.len().saturating_sub(4);
        let from = if self.dice.percent(70) { recent } else { 0 };
        let lease = self.leases[from + self.dice.index(self.leases.len() - from)].clone();
        let (queue, model) = (&self.queue, &mut self.model);
        match self.dice.index(8) {
            0..2 => assert_eq!(queue.renew(&lease).await.unwrap(), model.renew(&lease), "{lease:?}"),
            2..5 => {
                let manifest = ResultText(["one", "two"][self.dice.index(2)].into());
                assert_eq!(
                    queue.complete(&lease, &manifest).await.unwrap(),
                    model.complete(&lease, &manifest),
                    "{lease:?}"
                );
            }
            5 => assert_eq!(queue.bury(&lease, "no").await.unwrap(), model.bury(&lease, "no"), "{lease:?}"),
            6 => {
                let unused = Retry::Unused;
                assert_eq!(queue.release(&lease, &unused).await.unwrap(), model.release(&lease, &unused), "{lease:?}");
            }
            _ => {
                let retry = Retry::After { delay: self.delay(), why: "busy".into() };
                let (queue, model) = (&self.queue, &mut self.model);
                assert_eq!(queue.release(&lease, &retry).await.unwrap(), model.release(&lease, &retry), "{lease:?}");
            }
        }
    }

    async fn cancel(&mut self) {
        let of = self.one_of(BATCHES);
        let scope =
            if self.dice.percent(60) { CancelScope::Job(id(&self.name())) } else { CancelScope::Batch(batch(of)) };
        assert_eq!(self.queue.cancel(&scope).await.unwrap(), self.model.cancel(&scope), "{scope:?}");
    }

    async fn pause(&mut self) {
        let (of, is_paused) = (self.one_of(POOLS), self.dice.percent(40));
        match is_paused {
            true => self.queue.pause(&pool(of), LONG).await.unwrap(),
            false => self.queue.resume(&pool(of)).await.unwrap(),
        }
        self.model.pause(of, is_paused);
    }

    fn name(&mut self) -> String {
        format!("job-{}", self.dice.index(6))
    }

    fn delay(&mut self) -> Duration {
        if self.dice.percent(20) { LONG } else { Duration::ZERO }
    }

    fn one_of<T, const N: usize>(&mut self, all: [T; N]) -> T {
        let at = self.dice.index(N);
        all.into_iter().nth(at).unwrap()
    }
}
