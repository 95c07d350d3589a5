//! The list of all: runs that wait, run, or are over, the newest first.

use super::glance::as_json;
use super::{Engine, EngineFault, Wish, now_ms};
use crate::id::RunId;
use crate::queue::{JobRow, Queue, State};
use crate::store::{Filter, Only, RunRow, StoreError};
use serde_json::Value;
use std::collections::BTreeMap;

/// Which runs are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants say it")]
pub enum Which {
    Queued,
    Running,
    Interrupted,
    Lost,
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
    /// Only those with this text in their title, task, model, id, key, reason or branch.
    pub text: Option<String>,
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

/// Both in one list, the newest first; each keeps its own order, by which the next part begins.
fn merged(wishes: Vec<Listed>, runs: Vec<Listed>) -> Vec<Listed> {
    let (mut wishes, mut runs) = (wishes.into_iter().peekable(), runs.into_iter().peekable());
    let mut all = Vec::new();
    loop {
        let next = match (wishes.peek(), runs.peek()) {
            (Some(wish), Some(run)) if wish.at_ms() < run.at_ms() => runs.next(),
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
    /// A part of the list of all runs.
    ///
    /// # Errors
    /// When what is kept cannot be read.
    pub async fn list(&self, listing: &Listing) -> Result<Page, EngineFault> {
        let mut place = Place::read(listing.before.as_deref());
        let wishes = self.wishes(listing, &place).await?;
        let rows = self.rows(listing, &place).await?;
        let mut all = merged(wishes, rows);
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
            Some(Which::Running | Which::Interrupted | Which::Lost | Which::Verified) => return Ok(Vec::new()),
        };
        let wanted = listing.text.as_ref().map(|text| text.to_ascii_lowercase());
        let mut found: Vec<Listed> = Vec::new();
        let mut before = place.wish;
        while found.len() <= listing.limit as usize {
            let page = self.shop.queue.newest(&self.shop.pool, states, before, listing.limit + 1).await?;
            let is_last = page.len() <= listing.limit as usize;
            before = page.last().map(|(job, _)| job.place);
            let page: Vec<(JobRow, Wish)> =
                page.into_iter().filter_map(|(job, wish)| Some((job, serde_json::from_str(&wish).ok()?))).collect();
            let page = self.unbegun(page).await?;
            let fits = |(job, wish): &(JobRow, Wish)| {
                let texts = [&wish.title, &wish.source, job.id.as_str(), wish.key.as_deref().unwrap_or_default()];
                let mut texts = texts.into_iter().chain(wish.overrides.models.iter().map(String::as_str));
                wanted
                    .as_ref()
                    .is_none_or(|wanted| texts.any(|text| text.to_ascii_lowercase().contains(wanted.as_str())))
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
            Some(Which::Lost) => Some(Only::Lost),
            Some(Which::Ended) => Some(Only::Ended),
            Some(Which::Verified) => Some(Only::Verified),
            Some(Which::Failed) => Some(Only::Failed),
        };
        let (before, text) = (place.run.clone(), listing.text.clone());
        let filter = Filter { limit: listing.limit + 1, before, only, text, now_ms: now_ms() };
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
