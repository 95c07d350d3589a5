//! What there is: runs that wait, run, or are over, one list of all of them, the newest first.

use super::work::said;
use super::{Engine, EngineFault, Wish, now_ms};
use crate::driver::story;
use crate::duration::milliseconds;
use crate::id::RunId;
use crate::queue::{BuryReason, JobId, JobRow, Queue, State};
use crate::report::runs::{rfc3339, row as row_as_json, story_as_json};
use crate::store::{Filter, Only, RunRow, Store, StoreError};
use crate::verdict::Reason;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Wishes without a run that are looked through for a name.
const MOST_WAITING: u32 = 10_000;

/// Which runs are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say it")]
pub enum Which {
    Queued,
    Running,
    Interrupted,
    Ended,
    Verified,
    Failed,
}

/// What is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// At most so many.
    pub limit: u32,
    /// Those behind: what [`Page::next`] said, or the id of a run.
    pub before: Option<String>,
    /// Only those that are so.
    pub which: Option<Which>,
    /// Only those with this text in their title.
    pub title: Option<String>,
}

/// A part of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Runs, the newest first.
    pub runs: Vec<Value>,
    /// Where the next part begins; nothing where there is none.
    pub next: Option<String>,
}

/// Where a part of the list begins: among the wishes without a run, and among the runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Place {
    wish: Option<u64>,
    run: Option<RunId>,
}

impl Place {
    fn read(text: Option<&str>) -> Self {
        let Some(text) = text else { return Self::default() };
        match text.split_once('~') {
            Some((wish, run)) => {
                Self { wish: wish.parse().ok(), run: Some(run).filter(|run| !run.is_empty()).map(RunId::new) }
            }
            None => Self { wish: Some(0), run: Some(RunId::new(text)) },
        }
    }

    fn said(&self) -> String {
        let wish = self.wish.map(|wish| wish.to_string()).unwrap_or_default();
        format!("{wish}~{}", self.run.as_ref().map(RunId::as_str).unwrap_or_default())
    }
}

/// One in the list.
#[derive(Debug)]
enum Listed {
    /// A wish that is no run.
    Wish {
        place: u64,
        at_ms: i64,
        data: Value,
    },
    Run {
        at_ms: i64,
        id: RunId,
        data: Value,
    },
}

impl Listed {
    fn at_ms(&self) -> i64 {
        match self {
            Self::Wish { at_ms, .. } | Self::Run { at_ms, .. } => *at_ms,
        }
    }
}

impl Engine {
    /// A part of the list of all runs.
    ///
    /// # Errors
    /// When what is kept cannot be read.
    pub async fn list(&self, listing: &Listing) -> Result<Page, EngineFault> {
        let mut place = Place::read(listing.before.as_deref());
        let wishes = self.wishes(listing, &place).await?;
        let rows = self.rows(listing, &place).await?;
        let mut all: Vec<Listed> = wishes.into_iter().chain(rows).collect();
        all.sort_by_key(|listed| std::cmp::Reverse(listed.at_ms())); // stable: wishes and runs keep their orders
        let has_more = all.len() > listing.limit as usize;
        all.truncate(listing.limit as usize);
        for listed in &all {
            match listed {
                Listed::Wish { place: wish, .. } => place.wish = Some(*wish),
                Listed::Run { id, .. } => place.run = Some(id.clone()),
            }
        }
        let next = has_more.then(|| place.said());
        let runs = all.into_iter().map(|listed| match listed {
            Listed::Wish { data, .. } => data,
            Listed::Run { id, data, .. } => self.with_now(&id, data),
        });
        Ok(Page { runs: runs.collect(), next })
    }

    /// The wishes that are no runs.
    async fn wishes(&self, listing: &Listing, place: &Place) -> Result<Vec<Listed>, EngineFault> {
        let states: &[State] = match listing.which {
            None => &[State::Queued, State::Running, State::Dead, State::Cancelled],
            Some(Which::Queued) => &[State::Queued, State::Running],
            Some(Which::Ended | Which::Failed) => &[State::Dead, State::Cancelled],
            Some(Which::Running | Which::Interrupted | Which::Verified) => return Ok(Vec::new()),
        };
        let wanted = listing.title.as_ref().map(|title| title.to_ascii_lowercase());
        let mut found: Vec<Listed> = Vec::new();
        let mut before = place.wish;
        while found.len() <= listing.limit as usize {
            let page = self.shop.queue.newest(&self.shop.pool, states, before, listing.limit + 1).await?;
            let is_last = page.len() <= listing.limit as usize;
            before = page.last().map(|(job, _)| job.place);
            let page: Vec<(JobRow, Wish)> =
                page.into_iter().filter_map(|(job, wish)| Some((job, serde_json::from_str(&wish).ok()?))).collect();
            let page = self.unbegun(page).await?;
            let fits = |(_, wish): &(JobRow, Wish)| {
                wanted.as_ref().is_none_or(|wanted| wish.title.to_ascii_lowercase().contains(wanted.as_str()))
            };
            found.extend(page.into_iter().filter(fits).map(|(job, wish)| Listed::Wish {
                place: job.place,
                at_ms: wish.at_ms,
                data: self.wish_as_json(&job, &wish),
            }));
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// Those of them that never became a run.
    async fn unbegun(&self, wishes: Vec<(JobRow, Wish)>) -> Result<Vec<(JobRow, Wish)>, EngineFault> {
        self.shop
            .stored(move |store| {
                let mut unbegun = Vec::new();
                for (job, wish) in wishes {
                    match store.run(&RunId::new(job.id.as_str())) {
                        Ok(_) => {}
                        Err(StoreError::Unknown { .. }) => unbegun.push((job, wish)),
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(unbegun)
            })
            .await
    }

    async fn rows(&self, listing: &Listing, place: &Place) -> Result<Vec<Listed>, EngineFault> {
        let only = match listing.which {
            None => None,
            Some(Which::Queued) => return Ok(Vec::new()),
            Some(Which::Running) => Some(Only::Running),
            Some(Which::Interrupted) => Some(Only::Interrupted),
            Some(Which::Ended) => Some(Only::Ended),
            Some(Which::Verified) => Some(Only::Verified),
            Some(Which::Failed) => Some(Only::Failed),
        };
        let filter = Filter { limit: listing.limit + 1, before: place.run.clone(), only, title: listing.title.clone() };
        self.shop
            .stored(move |store| {
                let listed = |row: RunRow| {
                    let data = as_json(store, &row)?;
                    Ok(Listed::Run { at_ms: row.head.started_at_ms, id: row.head.id, data })
                };
                store.runs(&filter)?.into_iter().map(listed).collect()
            })
            .await
    }

    /// The run that goes by an id, the start of one, or a key.
    ///
    /// # Errors
    /// When there is none or more than one, or what is kept cannot be read.
    pub async fn find(&self, name: &str) -> Result<RunId, EngineFault> {
        let wanted = name.to_owned();
        let found = self.shop.stored(move |store| Ok(store.find(&wanted)?)).await;
        let Err(EngineFault::Store(StoreError::Unknown { name })) = found else { return found };
        if let Ok(job) = JobId::parse(name.as_str())
            && self.shop.queue.job(&job).await?.is_some()
        {
            return Ok(RunId::new(name));
        }
        let states = [State::Queued, State::Running, State::Dead, State::Cancelled];
        let all = self.shop.queue.newest(&self.shop.pool, &states, None, MOST_WAITING).await?;
        let starts = |job: &JobRow| !name.is_empty() && job.id.as_str().starts_with(&name);
        let mut candidates: Vec<RunId> =
            all.iter().filter(|(job, _)| starts(job)).map(|(job, _)| RunId::new(job.id.as_str())).collect();
        match (candidates.pop(), candidates.is_empty()) {
            (Some(run), true) => Ok(run),
            (Some(run), false) => {
                candidates.push(run);
                candidates.truncate(5);
                Err(StoreError::Ambiguous { name, candidates }.into())
            }
            (None, _) => Err(StoreError::Unknown { name }.into()),
        }
    }

    /// A run as data: its row.
    ///
    /// # Errors
    /// When there is none, or what is kept cannot be read.
    pub async fn row(&self, run: &RunId) -> Result<Value, EngineFault> {
        let wanted = run.clone();
        let found = self.shop.stored(move |store| Ok(as_json(store, &store.run(&wanted)?)?)).await;
        match found {
            Ok(data) => Ok(self.with_now(run, data)),
            Err(EngineFault::Store(StoreError::Unknown { .. })) => self.wish(run).await,
            Err(fault) => Err(fault),
        }
    }

    /// The same with its story.
    ///
    /// # Errors
    /// As those of [`Engine::row`].
    pub async fn whole(&self, run: &RunId) -> Result<Value, EngineFault> {
        let wanted = run.clone();
        let found = self.shop.stored(move |store| {
            let row = store.run(&wanted)?;
            let (story, fault) = story(store, &row);
            if let Some(fault) = fault {
                return Err(fault.into());
            }
            let mut whole = story_as_json(&row, &store.short(&wanted)?, &story);
            let mut data = whole["run"].take();
            for part in ["story", "course", "time", "turns", "result"] {
                data[part] = whole[part].take();
            }
            Ok(data)
        });
        match found.await {
            Ok(data) => Ok(self.with_now(run, data)),
            Err(EngineFault::Store(StoreError::Unknown { .. })) => {
                let mut data = self.wish(run).await?;
                let nothing = json!({ "story": [], "course": [], "time": null, "turns": 0, "result": null });
                data.as_object_mut()
                    .into_iter()
                    .for_each(|data| data.extend(nothing.as_object().cloned().unwrap_or_default()));
                Ok(data)
            }
            Err(fault) => Err(fault),
        }
    }

    /// How a run ended; nothing where it did not yet.
    pub(super) async fn outcome(&self, run: &RunId) -> Result<Option<Value>, EngineFault> {
        let row = self.row(run).await?;
        Ok(Some(row["outcome"].clone()).filter(|outcome| !outcome.is_null()))
    }

    async fn wish(&self, run: &RunId) -> Result<Value, EngineFault> {
        let unknown = || StoreError::Unknown { name: run.to_string() };
        let job = JobId::parse(run.as_str()).map_err(|_| unknown())?;
        let (job, payload) = self.shop.queue.job_and_payload(&job).await?.ok_or_else(unknown)?;
        let unclear = |source| EngineFault::Unclear { run: run.clone(), source };
        let wish: Wish = serde_json::from_str(&payload).map_err(unclear)?;
        Ok(self.wish_as_json(&job, &wish))
    }

    /// What is known of a run only while it is driven here.
    fn with_now(&self, run: &RunId, mut data: Value) -> Value {
        let live = self.shop.live_run(run);
        data["pending"] = json!(live.as_ref().map_or(0, |live| live.questions.count()));
        data["doing"] = json!(live.and_then(|live| live.doing()));
        data["machine"] = Value::Null;
        data
    }

    /// A wish that is no run, in the form of a row.
    fn wish_as_json(&self, job: &JobRow, wish: &Wish) -> Value {
        let ended_at = || rfc3339(now_ms().saturating_sub(i64::try_from(milliseconds(job.since)).unwrap_or(0)));
        let end = |reason: String, exit_code: u8, is_cancelled: bool, summary: String| {
            json!({
                "ended_at": ended_at(), "reason": reason, "exit_code": exit_code, "verified": false, "cancelled": is_cancelled,
                "attempts": 0, "turns": 0, "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost_micros": null,
                "summary": summary,
            })
        };
        let outcome = match (job.state, &job.why) {
            (State::Queued | State::Running, _) => Value::Null,
            (State::Cancelled, _) => {
                let code = Reason::Cancelled.exit_code(Some(crate::verdict::StopCause::Token));
                end(Reason::Cancelled.to_string(), code, true, "cancelled before it began".into())
            }
            (State::Dead | State::Done, Some(BuryReason::Refused(why))) => {
                let (reason, message) = why.split_once(": ").unwrap_or(("internal", why));
                let known = Reason::ALL.into_iter().find(|known| known.to_string() == reason);
                let code = known.unwrap_or(Reason::Internal).exit_code(Some(crate::verdict::StopCause::Token));
                end(reason.into(), code, known == Some(Reason::Cancelled), message.into())
            }
            (State::Dead | State::Done, _) => {
                end(Reason::Internal.to_string(), Reason::Internal.exit_code(None), false, "it never began".into())
            }
        };
        json!({
            "id": job.id,
            "short_id": job.id,
            "run_key": wish.key,
            "parent": null,
            "title": wish.title,
            "source": wish.source,
            "task_digest": wish.task_digest,
            "workspace": self.shop.project.display().to_string(),
            "models": [],
            "fledge": env!("CARGO_PKG_VERSION"),
            "journal_version": crate::driver::JOURNAL_SCHEMA_VERSION,
            "started_at": rfc3339(wish.at_ms),
            "state": if outcome.is_null() { "queued" } else { "ended" },
            "holder": null,
            "outcome": outcome,
            "pending": 0,
            "doing": null,
            "machine": null,
        })
    }

    /// Runs that wait, and those that are driven here.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub async fn figures(&self) -> Result<BTreeMap<&'static str, u64>, EngineFault> {
        let status = self.shop.queue.status(None).await?;
        let running = self.running() as u64;
        Ok(BTreeMap::from([("queued", status.open().saturating_sub(running)), ("running", running)]))
    }
}

fn as_json(store: &Store, row: &RunRow) -> Result<Value, StoreError> {
    Ok(row_as_json(row, &store.short(&row.head.id)?))
}

impl EngineFault {
    /// What went wrong, with its causes, in one line.
    pub fn said(&self) -> String {
        said(self)
    }
}
