//! The event log of a live run. All followers read one log, so a follower costs no memory and never
//! delays the run.
//!
//! The log keeps the newest events up to a size limit. A follower that is further behind reads the
//! journal. The journal holds text in full, where the log has it in pieces. The follower is
//! informed of pieces that are gone.

use crate::driver::EventRecord;
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The size limit of a log, in bytes.
const MOST: usize = 512 * 1024;
/// The number of bytes that a reader gets at once.
const AT_ONCE: usize = 64 * 1024;

/// A reading position. As text it is the id of an event, which is unique within the run. It is
/// therefore also valid after a restart of the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventCursor {
    /// The number of the newest event that was read.
    pub seq: u64,
    /// True if the end was read.
    pub ended: bool,
}

impl EventCursor {
    /// Returns the position after an event.
    pub(super) fn at(seq: u64) -> Self {
        Self { seq, ended: false }
    }
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.ended { ".end" } else { "" };
        write!(f, "{}{end}", self.seq)
    }
}

/// A text that is not a valid cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid event id: expected e.g. `12` or `12.end`")]
pub struct CursorError;

impl FromStr for EventCursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let (number, ended) = text.strip_suffix(".end").map_or((text, false), |number| (number, true));
        match number.bytes().all(|byte| byte.is_ascii_digit()) {
            true => number.parse().map(|seq| Self { seq, ended }).map_err(|_| CursorError),
            false => Err(CursorError),
        }
    }
}

/// An event on its way to a follower.
#[derive(Debug, Clone, PartialEq)]
pub struct FollowedRecord {
    /// The position after this event.
    pub cursor: EventCursor,
    /// The record as JSON.
    pub json: Arc<str>,
}

/// The result of a read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LogSlice {
    /// Events, in order.
    Some(Vec<FollowedRecord>),
    /// No new events yet.
    Nothing,
    /// The next event is not in the log, only in the journal.
    Behind,
    /// No new events, and none will follow.
    Over,
}

/// The log of a run that this server drives.
#[derive(Debug)]
pub(super) struct EventLog {
    window: Mutex<Window>,
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct Window {
    entries: VecDeque<FollowedRecord>,
    bytes: usize,
    /// The log holds every event after this number. `None` before the first event.
    floor: Option<u64>,
    /// The number of events that were dropped for lack of room.
    dropped: u64,
    is_over: bool,
}

impl EventLog {
    /// Creates the log of a new run, or of a run that another process left.
    pub(super) fn new(is_new: bool) -> Self {
        let floor = is_new.then_some(0);
        let window = Window { entries: VecDeque::new(), bytes: 0, floor, dropped: 0, is_over: false };
        Self { window: Mutex::new(window), changed: watch::channel(()).0 }
    }

    /// Adds an event.
    pub(super) fn add(&self, record: &EventRecord) {
        let json: Arc<str> = serde_json::to_string(record).unwrap_or_default().into();
        let number = record.seq;
        let mut window = self.window();
        window.floor.get_or_insert(number.saturating_sub(1));
        window.bytes += weight(&json);
        window.entries.push_back(FollowedRecord { cursor: EventCursor::at(number), json });
        while window.bytes > MOST
            && let Some(oldest) = window.entries.pop_front()
        {
            window.bytes -= weight(&oldest.json);
            window.floor = Some(oldest.cursor.seq);
            window.dropped += 1;
        }
        drop(window);
        self.changed.send_replace(());
    }

    /// Closes the log: no event follows.
    pub(super) fn close(&self) {
        self.window().is_over = true;
        self.changed.send_replace(());
    }

    /// Subscribes to changes of the log.
    pub(super) fn listen(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Reads the events after a cursor.
    pub(super) fn read(&self, cursor: &EventCursor) -> LogSlice {
        let window = self.window();
        match window.floor {
            None if window.is_over => return LogSlice::Over,
            Some(floor) if cursor.seq >= floor => {}
            Some(_) | None => return LogSlice::Behind,
        }
        let first = window.entries.partition_point(|reported| reported.cursor.seq <= cursor.seq);
        let mut bytes = 0;
        let fits = |reported: &&FollowedRecord| {
            let before = bytes;
            bytes += reported.json.len();
            before < AT_ONCE
        };
        let some: Vec<FollowedRecord> = window.entries.range(first..).take_while(fits).cloned().collect();
        match (some.is_empty(), window.is_over) {
            (false, _) => LogSlice::Some(some),
            (true, true) => LogSlice::Over,
            (true, false) => LogSlice::Nothing,
        }
    }

    /// Returns where a follower continues that has read the whole journal and is still behind the
    /// log. Only pieces of text are missing then; the number is their upper bound.
    pub(super) fn skip(&self, cursor: &EventCursor) -> Option<(EventCursor, u64)> {
        let (floor, dropped) = {
            let window = self.window();
            (window.floor?, window.dropped)
        };
        let missing = floor.checked_sub(cursor.seq).filter(|missing| *missing > 0)?;
        Some((EventCursor::at(floor), missing.min(dropped))) // a resume skips numbers, so the gap may hold fewer events
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn weight(json: &str) -> usize {
    json.len() + size_of::<FollowedRecord>()
}
