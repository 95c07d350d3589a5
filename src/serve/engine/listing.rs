//! The list of all runs: waiting, running and ended, the newest first.

use super::glance::{as_json, show_as_queued};
use super::{Engine, EngineError, RunRequest, now_ms};
use crate::id::RunId;
use crate::queue::{Queue, QueueState, QueuedJob};
use crate::store::{RunListFilter, RunProperty, RunRow, StoreError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A filter by state or outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say it")]
pub enum RunFilter {
    Queued,
    Running,
    Interrupted,
    Lost,
    Ended,
    Verified,
    Failed,
}

/// A query for a page of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunListing {
    /// The largest number of runs on the page.
    pub limit: u32,
    /// The start of the page: [`RunPage::next`] of the page before, or the id of a run.
    pub before: Option<String>,
    /// The state or outcome of the listed runs.
    pub which: Option<RunFilter>,
    /// Words that the title, task, model, id, key, reason, branch or starter must contain.
    pub text: Option<String>,
}

/// A page of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPage {
    /// Runs, the newest first.
    pub runs: Vec<Value>,
    /// The start of the next page; `None` on the last page.
    pub next: Option<String>,
}

/// The start of a page: a position among the requests without a run, and one among the runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Place {
    request: Option<u64>,
    run: Option<RunId>,
}

impl Place {
    fn read(text: Option<&str>) -> Self {
        let Some(text) = text else { return Self::default() };
        match text.split_once('~') {
            Some((request, run)) => {
                Self { request: request.parse().ok(), run: Some(run).filter(|run| !run.is_empty()).map(RunId::new) }
            }
            None => Self { request: Some(0), run: Some(RunId::new(text)) },
        }
    }

    fn describe(&self) -> String {
        let request = self.request.map(|request| request.to_string()).unwrap_or_default();
        format!("{request}~{}", self.run.as_ref().map(RunId::as_str).unwrap_or_default())
    }
}

/// An entry of the list.
#[derive(Debug)]
enum Listed {
    /// A request without a run.
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

/// Merges both lists, the newest first. Each list keeps its own order, because the next page begins
/// by that order.
fn merged(wishes: Vec<Listed>, runs: Vec<Listed>) -> Vec<Listed> {
    let (mut wishes, mut runs) = (wishes.into_iter().peekable(), runs.into_iter().peekable());
    let mut all = Vec::new();
    loop {
        let next = match (wishes.peek(), runs.peek()) {
            (Some(request), Some(run)) if request.at_ms() < run.at_ms() => runs.next(),
            (Some(_), _) => wishes.next(),
            (None, _) => runs.next(),
        };
        match next {
            Some(next) => all.push(next),
            None => return all,
        }
    }
}

impl Engine {
    /// Returns a page of the list of all runs.
    ///
    /// # Errors
    /// If the store or the queue cannot be read.
    pub async fn list(&self, listing: &RunListing) -> Result<RunPage, EngineError> {
        let mut place = Place::read(listing.before.as_deref());
        let wishes = self.wishes(listing, &place).await?;
        let rows = self.rows(listing, &place).await?;
        let mut all = merged(wishes, rows);
        let has_more = all.len() > listing.limit as usize;
        all.truncate(listing.limit as usize);
        for listed in &all {
            match listed {
                Listed::Wish { place: request, .. } => place.request = Some(*request),
                Listed::Run { id, .. } => place.run = Some(id.clone()),
            }
        }
        let next = has_more.then(|| place.describe());
        let runs = all.into_iter().map(|listed| match listed {
            Listed::Wish { data, .. } => data,
            Listed::Run { id, data, .. } => self.with_now(&id, data),
        });
        Ok(RunPage { runs: runs.collect(), next })
    }

    /// Lists the requests without a run.
    async fn wishes(&self, listing: &RunListing, place: &Place) -> Result<Vec<Listed>, EngineError> {
        let states: &[QueueState] = match listing.which {
            None => &[QueueState::Queued, QueueState::Running, QueueState::Dead, QueueState::Cancelled],
            Some(RunFilter::Queued) => &[QueueState::Queued, QueueState::Running],
            Some(RunFilter::Ended | RunFilter::Failed) => &[QueueState::Dead, QueueState::Cancelled],
            Some(RunFilter::Running | RunFilter::Interrupted | RunFilter::Lost | RunFilter::Verified) => {
                return Ok(Vec::new());
            }
        };
        let wanted = listing.text.as_ref().map(|text| text.to_ascii_lowercase()).unwrap_or_default();
        let mut found: Vec<Listed> = Vec::new();
        let mut before = place.request;
        while found.len() <= listing.limit as usize {
            let page =
                self.engine_state.queue.newest(&self.engine_state.pool, states, before, listing.limit + 1).await?;
            let is_last = page.len() <= listing.limit as usize;
            before = page.last().map(|(job, _)| job.place);
            let page: Vec<(QueuedJob, RunRequest)> = page
                .into_iter()
                .filter_map(|(job, request)| Some((job, serde_json::from_str(&request).ok()?)))
                .collect();
            let page = self.unbegun(page).await?;
            let fits = |(job, request): &(QueuedJob, RunRequest)| {
                let texts =
                    [&request.title, &request.source, job.id.as_str(), request.key.as_deref().unwrap_or_default()];
                let texts = texts.into_iter().chain(request.overrides.models.iter().map(String::as_str));
                let texts: Vec<_> = texts.map(str::to_ascii_lowercase).collect();
                wanted.split_whitespace().all(|word| texts.iter().any(|text| text.contains(word)))
            };
            found.extend(page.into_iter().filter(fits).map(|(job, request)| Listed::Wish {
                place: job.place,
                at_ms: request.at_ms,
                data: self.wish_as_json(&job, &request),
            }));
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the requests that have no run.
    async fn unbegun(&self, wishes: Vec<(QueuedJob, RunRequest)>) -> Result<Vec<(QueuedJob, RunRequest)>, EngineError> {
        self.engine_state
            .stored(move |store| {
                let mut unbegun = Vec::new();
                for (job, request) in wishes {
                    match store.run(&RunId::new(job.id.as_str())) {
                        Ok(_) => {}
                        Err(StoreError::Unknown { .. }) => unbegun.push((job, request)),
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(unbegun)
            })
            .await
    }

    /// Lists the runs of the store. An ended run whose resume waits counts as a queued run.
    async fn rows(&self, listing: &RunListing, place: &Place) -> Result<Vec<Listed>, EngineError> {
        let waiting = self.waiting_resumes(listing.limit).await?;
        let only = match listing.which {
            None => None,
            Some(RunFilter::Queued) if waiting.is_empty() => return Ok(Vec::new()),
            Some(RunFilter::Queued | RunFilter::Ended) => Some(RunProperty::Ended),
            Some(RunFilter::Running) => Some(RunProperty::Running),
            Some(RunFilter::Interrupted) => Some(RunProperty::Interrupted),
            Some(RunFilter::Lost) => Some(RunProperty::Lost),
            Some(RunFilter::Verified) => Some(RunProperty::Verified),
            Some(RunFilter::Failed) => Some(RunProperty::Failed),
        };
        let (limit, text) = (listing.limit + 1, listing.text.clone());
        let ids = (listing.which == Some(RunFilter::Queued)).then(|| waiting.clone());
        let mut filter = RunListFilter { limit, before: place.run.clone(), only, ids, text, now_ms: now_ms() };
        let mut found = Vec::new();
        while found.len() < limit as usize {
            let wanted = filter.clone();
            let page = self.engine_state.stored(move |store| {
                let listed = |row: RunRow| Ok((as_json(store, &row)?, row.head.started_at_ms, row.head.id));
                store.runs(&wanted)?.into_iter().map(listed).collect::<Result<Vec<_>, EngineError>>()
            });
            let page = page.await?;
            let is_last = page.len() < limit as usize;
            filter.before = page.last().map(|(_, _, id)| id.clone());
            for (mut data, at_ms, id) in page {
                let waits = data["state"] == "ended" && waiting.contains(&id);
                if waits {
                    show_as_queued(&mut data);
                }
                let fits = listing.which.is_none() || (listing.which == Some(RunFilter::Queued)) == waits;
                found.extend(fits.then_some(Listed::Run { at_ms, id, data }));
            }
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the ids of open requests whose runs have not begun, or have not begun again.
    async fn waiting_resumes(&self, page_size: u32) -> Result<BTreeSet<RunId>, EngineError> {
        let (mut found, mut before) = (BTreeSet::new(), None);
        loop {
            let (queue, states) = (&self.engine_state.queue, [QueueState::Queued, QueueState::Running]);
            let page = queue.newest(&self.engine_state.pool, &states, before, page_size).await?;
            before = page.last().map(|(job, _)| job.place);
            let is_last = page.len() < page_size as usize;
            let runs: Vec<RunId> = page.iter().map(|(job, _)| RunId::new(job.id.as_str())).collect();
            found.extend(runs.into_iter().filter(|run| {
                let live = self.engine_state.live_run(run);
                live.is_none_or(|live| !live.has_begun())
            }));
            if is_last {
                return Ok(found);
            }
        }
    }

    /// Returns the numbers of waiting runs and of runs that this server drives.
    ///
    /// # Errors
    /// If the queue cannot be read.
    pub async fn figures(&self) -> Result<BTreeMap<&'static str, u64>, EngineError> {
        let status = self.engine_state.queue.status(None).await?;
        let running = self.running() as u64;
        Ok(BTreeMap::from([("queued", status.open().saturating_sub(running)), ("running", running)]))
    }
}
