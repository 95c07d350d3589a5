//! Following a run: its events come from the log of a live run, or from the journal for events that
//! the log no longer holds. Each follower asks for more when it can take it, so it costs only the
//! memory of the messages on their way.

use super::live::LiveRun;
use super::log::{EventCursor, FollowedRecord, LogSlice};
use super::{Engine, EngineError, EngineState};
use crate::driver::{EVENT_SCHEMA_VERSION, ResumeError, events_after};
use crate::id::RunId;
use crate::report::runs::rfc3339;
use crate::store::StoreError;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The number of bytes that are read from a journal at once.
const PAGE: usize = 512 * 1024;
/// The interval between reads of the journal of a run that another process may drive.
const POLL: Duration = Duration::from_secs(1);

/// A message to a follower.
#[derive(Debug, Clone, PartialEq)]
pub enum FollowMessage {
    /// An event.
    Told(FollowedRecord),
    /// The end of the run; no message follows.
    End(EventCursor, Value),
}

/// A follower of a run.
#[derive(Debug)]
pub struct Follower {
    engine_state: Arc<EngineState>,
    engine: Engine,
    run: RunId,
    cursor: EventCursor,
    /// The live run, kept until its log was read to the end.
    live: Option<Arc<LiveRun>>,
    begun: watch::Receiver<()>,
    /// The last record of the journal, if the journal was read to its end.
    seen: Option<u64>,
    is_over: bool,
}

impl Engine {
    /// Follows a run from a cursor. Returns `None` if everything was already read.
    ///
    /// # Errors
    /// If the run does not exist, or its data cannot be read.
    pub async fn follow(&self, run: &RunId, cursor: EventCursor) -> Result<Option<Follower>, EngineError> {
        self.outcome(run).await?;
        let engine_state = Arc::clone(&self.engine_state);
        let (begun, live) = (engine_state.begun.subscribe(), engine_state.live_run(run));
        let mut follower = Follower {
            engine_state,
            engine: self.clone(),
            run: run.clone(),
            cursor: EventCursor { ended: false, ..cursor },
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
    /// Waits for the next messages; `None` after the end.
    ///
    /// # Errors
    /// If the journal cannot be read. No message follows.
    pub async fn next(&mut self) -> Result<Option<Vec<FollowMessage>>, EngineError> {
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

    async fn read_log(&mut self, live: &LiveRun) -> Result<Vec<FollowMessage>, EngineError> {
        let mut changed = live.log.listen();
        match live.log.read(&self.cursor) {
            LogSlice::Some(reported) => return Ok(self.give(reported)),
            LogSlice::Over => {
                (self.live, self.seen) = (None, None);
                return Ok(Vec::new());
            }
            LogSlice::Nothing => {}
            LogSlice::Behind => {
                let page = self.page().await?;
                if !page.is_empty() {
                    return Ok(self.give(page));
                }
                if let Some((cursor, missing)) = live.log.skip(&self.cursor) {
                    if missing == 0 {
                        self.cursor = cursor;
                        return Ok(Vec::new());
                    }
                    let reported = self.left_out(cursor, missing);
                    return Ok(self.give(vec![reported]));
                }
            }
        }
        let _it_is_there_as_long_as_the_log = changed.changed().await;
        Ok(Vec::new())
    }

    /// Reads the journal of a run that this server does not drive now.
    async fn read_journal(&mut self) -> Result<Vec<FollowMessage>, EngineError> {
        self.begun.mark_unchanged();
        self.live = self.engine_state.live_run(&self.run);
        if self.live.is_some() {
            return Ok(Vec::new());
        }
        let outcome = self.engine.outcome(&self.run).await?; // before the journal, so that no event is missed
        let page = self.page().await?;
        if !page.is_empty() {
            return Ok(self.give(page));
        }
        if let Some(outcome) = outcome {
            self.is_over = true;
            let end = EventCursor { ended: true, ..self.cursor };
            return Ok(vec![FollowMessage::End(end, json!({ "state": "ended", "outcome": outcome }))]);
        }
        tokio::select! {
            biased;
            _ = self.begun.changed() => {}
            () = self.engine_state.gone.cancelled() => self.is_over = true,
            () = tokio::time::sleep(POLL) => {}
        }
        Ok(Vec::new())
    }

    /// Returns the next events of the journal; empty if no new events exist.
    async fn page(&mut self) -> Result<Vec<FollowedRecord>, EngineError> {
        let reader = Arc::clone(&self.engine_state.readers).acquire_owned().await; // never closed
        let (run, after, seen) = (self.run.clone(), self.cursor.seq, self.seen);
        let read = self.engine_state.stored(move |store| {
            let _reader = reader;
            if let Some(seen) = seen
                && store.events(&run, seen)?.next().is_none()
            {
                return Ok((Vec::new(), Some(seen)));
            }
            let mut records = match events_after(store, &run, after) {
                Err(ResumeError::Store(StoreError::Unknown { .. })) => return Ok((Vec::new(), None)), // the run still waits
                records => records?,
            };
            let (mut page, mut bytes) = (Vec::new(), 0);
            for record in records.by_ref() {
                let record = record?;
                let json = serde_json::to_string(&record).unwrap_or_default();
                bytes += json.len();
                page.push(FollowedRecord { cursor: EventCursor::at(record.seq), json: json.into() });
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

    fn give(&mut self, reported: Vec<FollowedRecord>) -> Vec<FollowMessage> {
        if let Some(last) = reported.last() {
            self.cursor = last.cursor;
        }
        reported.into_iter().map(FollowMessage::Told).collect()
    }

    /// Builds the warning about missing pieces that every slow watcher gets.
    fn left_out(&self, cursor: EventCursor, missing: u64) -> FollowedRecord {
        let says = format!("skipped {missing} pieces of text: this client reads too slowly");
        let record = json!({
            "schema_version": EVENT_SCHEMA_VERSION,
            "run": self.run,
            "seq": cursor.seq,
            "at": rfc3339(super::now_ms()),
            "type": "warning",
            "data": says,
        });
        FollowedRecord { cursor, json: record.to_string().into() }
    }
}
