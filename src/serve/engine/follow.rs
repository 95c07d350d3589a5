//! What is told of a run, for who follows it: from the log of a run that is driven here, from the journal where that goes back further. Each
//! follower asks when it can take more, so that none costs more memory than what is on its way.

use super::live::Live;
use super::log::{Cursor, Found, Told};
use super::{Engine, EngineFault, Shop};
use crate::driver::{EVENT_SCHEMA_VERSION, ResumeFault, told};
use crate::id::RunId;
use crate::report::runs::rfc3339;
use crate::store::StoreError;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Bytes that are read from a journal at once.
const PAGE: usize = 512 * 1024;
/// How often the journal of a run is looked at that another process may drive.
const POLL: Duration = Duration::from_secs(1);

/// Something for who follows.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// An event.
    Told(Told),
    /// The run is over: nothing more will come.
    End(Cursor, Value),
}

/// Somebody who follows a run.
#[derive(Debug)]
pub struct Follower {
    shop: Arc<Shop>,
    engine: Engine,
    run: RunId,
    cursor: Cursor,
    /// Held until its log was read to the end.
    live: Option<Arc<Live>>,
    begun: watch::Receiver<()>,
    /// The last record of the journal that was read, where all were.
    seen: Option<u64>,
    is_over: bool,
}

impl Engine {
    /// Follows a run from a cursor on; nothing where all of it was read to its end.
    ///
    /// # Errors
    /// When there is no such run, or what is kept of it cannot be read.
    pub async fn follow(&self, run: &RunId, cursor: Cursor) -> Result<Option<Follower>, EngineFault> {
        self.outcome(run).await?;
        let shop = Arc::clone(&self.shop);
        let (begun, live) = (shop.begun.subscribe(), shop.live_run(run));
        let mut follower = Follower {
            shop,
            engine: self.clone(),
            run: run.clone(),
            cursor: Cursor { ended: false, ..cursor },
            live,
            begun,
            seen: None,
            is_over: false,
        };
        if cursor.ended && follower.live.is_none() && self.outcome(run).await?.is_some() {
            let more = follower.page().await?;
            if more.is_empty() {
                return Ok(None);
            }
        }
        Ok(Some(follower))
    }
}

impl Follower {
    /// What comes next, as soon as there is anything; nothing after the end.
    ///
    /// # Errors
    /// When the journal cannot be read: nothing more comes.
    pub async fn next(&mut self) -> Result<Option<Vec<Message>>, EngineFault> {
        while !self.is_over {
            let found = match self.live.clone() {
                Some(live) => self.read_log(&live).await?,
                None => self.read_journal().await?,
            };
            if !found.is_empty() {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    async fn read_log(&mut self, live: &Live) -> Result<Vec<Message>, EngineFault> {
        let mut changed = live.log.listen();
        match live.log.read(&self.cursor) {
            Found::Some(told) => return Ok(self.give(told)),
            Found::Over => {
                (self.live, self.seen) = (None, None);
                return Ok(Vec::new());
            }
            Found::Nothing => {}
            Found::Behind => {
                let page = self.page().await?;
                if !page.is_empty() {
                    return Ok(self.give(page));
                }
                if let Some((cursor, missing)) = live.log.skip(&self.cursor) {
                    if missing == 0 {
                        self.cursor = cursor;
                        return Ok(Vec::new());
                    }
                    let told = self.left_out(cursor, missing);
                    return Ok(self.give(vec![told]));
                }
            }
        }
        let _it_is_there_as_long_as_the_log = changed.changed().await;
        Ok(Vec::new())
    }

    /// What the journal has of a run that is not driven here, or was.
    async fn read_journal(&mut self) -> Result<Vec<Message>, EngineFault> {
        self.begun.mark_unchanged();
        self.live = self.shop.live_run(&self.run);
        if self.live.is_some() {
            return Ok(Vec::new());
        }
        let outcome = self.engine.outcome(&self.run).await?; // known before the journal is read, so that none of it is missed
        let page = self.page().await?;
        if !page.is_empty() {
            return Ok(self.give(page));
        }
        if let Some(outcome) = outcome {
            self.is_over = true;
            let end = Cursor { ended: true, ..self.cursor };
            return Ok(vec![Message::End(end, json!({ "state": "ended", "outcome": outcome }))]);
        }
        tokio::select! {
            biased;
            _ = self.begun.changed() => {}
            () = self.shop.gone.cancelled() => self.is_over = true,
            () = tokio::time::sleep(POLL) => {}
        }
        Ok(Vec::new())
    }

    /// The next events of the journal; none where there is nothing new.
    async fn page(&mut self) -> Result<Vec<Told>, EngineFault> {
        let reader = Arc::clone(&self.shop.readers).acquire_owned().await; // it is never closed
        let (run, after, seen) = (self.run.clone(), self.cursor.seq, self.seen);
        let read = self.shop.stored(move |store| {
            let _reader = reader;
            if let Some(seen) = seen
                && store.events(&run, seen)?.next().is_none()
            {
                return Ok((Vec::new(), Some(seen)));
            }
            let mut records = match told(store, &run, after) {
                Err(ResumeFault::Store(StoreError::Unknown { .. })) => return Ok((Vec::new(), None)), // it waits
                records => records?,
            };
            let (mut page, mut bytes) = (Vec::new(), 0);
            for record in records.by_ref() {
                let record = record?;
                let json = serde_json::to_string(&record).unwrap_or_default();
                bytes += json.len();
                page.push(Told { cursor: Cursor::at(record.seq), json: json.into() });
                if bytes >= PAGE {
                    return Ok((page, None));
                }
            }
            Ok((page, Some(records.read_so_far())))
        });
        let (page, seen) = read.await?;
        self.seen = seen;
        Ok(page)
    }

    fn give(&mut self, told: Vec<Told>) -> Vec<Message> {
        if let Some(last) = told.last() {
            self.cursor = last.cursor;
        }
        told.into_iter().map(Message::Told).collect()
    }

    /// Says that pieces are missing, in the words that every slow watcher hears.
    fn left_out(&self, cursor: Cursor, missing: u64) -> Told {
        let says = format!("{missing} pieces of text were left out: this watcher is slow");
        let record = json!({
            "schema_version": EVENT_SCHEMA_VERSION,
            "run": self.run,
            "seq": cursor.seq,
            "at": rfc3339(super::now_ms()),
            "type": "warning",
            "data": says,
        });
        Told { cursor, json: record.to_string().into() }
    }
}
