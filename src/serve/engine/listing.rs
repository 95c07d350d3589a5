//! The list of all runs: waiting, running and ended, the newest first.

use super::glance::as_json;
use super::{Engine, EngineError, RunRequest, now_ms};
use crate::id::RunId;
use crate::queue::{Queue, QueueState, QueuedJob};
use crate::store::{RunListFilter, RunProperty, RunRow, StoreError};
use serde_json::Value;
use std::collections::BTreeMap;

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
    /// A text that the title, task, model, id, key, reason or branch must contain.
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
        let wanted = listing.text.as_ref().map(|text| text.to_ascii_lowercase());
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
                let mut texts = texts.into_iter().chain(request.overrides.models.iter().map(String::as_str));
                wanted
                    .as_ref()
                    .is_none_or(|wanted| texts.any(|text| text.to_ascii_lowercase().contains(wanted.as_str())))
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

    async fn rows(&self, listing: &RunListing, place: &Place) -> Result<Vec<Listed>, EngineError> {
        let only = match listing.which {
            None => None,
            Some(RunFilter::Queued) => return Ok(Vec::new()),
            Some(RunFilter::Running) => Some(RunProperty::Running),
            Some(RunFilter::Interrupted) => Some(RunProperty::Interrupted),
            Some(RunFilter::Lost) => Some(RunProperty::Lost),
            Some(RunFilter::Ended) => Some(RunProperty::Ended),
            Some(RunFilter::Verified) => Some(RunProperty::Verified),
            Some(RunFilter::Failed) => Some(RunProperty::Failed),
        };
        let (before, text) = (place.run.clone(), listing.text.clone());
        let filter = RunListFilter { limit: listing.limit + 1, before, only, text, now_ms: now_ms() };
        self.engine_state
            .stored(move |store| {
                let listed = |row: RunRow| {
                    let data = as_json(store, &row)?;
                    Ok(Listed::Run { at_ms: row.head.started_at_ms, id: row.head.id, data })
                };
                store.runs(&filter)?.into_iter().map(listed).collect()
            })
            .await
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
