//! What was told of a run that is under way, for all who follow it: one log that all of them read, so that no reader costs memory and none
//! holds the run up. It goes back so far as there is room; what is kept in the journal is read there by who is further behind, whole where it
//! was told in pieces, and pieces that are gone are said to be.

use crate::driver::EventRecord;
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Bytes of a log.
const MOST: usize = 512 * 1024;
/// Bytes that a reader is given at once.
const AT_ONCE: usize = 64 * 1024;

/// How far somebody has read. As text, the id of an event: its number, which no other event of the run has. So it means the same to a server
/// that has begun anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The number of the newest event that was read.
    pub seq: u64,
    /// Whether the end was read.
    pub ended: bool,
}

impl Cursor {
    /// Behind this event.
    pub(super) fn at(seq: u64) -> Self {
        Self { seq, ended: false }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.ended { ".end" } else { "" };
        write!(f, "{}{end}", self.seq)
    }
}

/// A text that is no cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid event id: expected e.g. `12` or `12.end`")]
pub struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (number, ended) = text.strip_suffix(".end").map_or((text, false), |number| (number, true));
        match number.bytes().all(|byte| byte.is_ascii_digit()) {
            true => number.parse().map(|seq| Self { seq, ended }).map_err(|_| NoCursor),
            false => Err(NoCursor),
        }
    }
}

/// An event on its way to who follows.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// How far somebody has read who has it.
    pub cursor: Cursor,
    /// The record, as JSON.
    pub json: Arc<str>,
}

/// What a reader finds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found {
    /// Events, in their order.
    Some(Vec<Told>),
    /// Nothing new yet.
    Nothing,
    /// What comes next is not here any more, or has never been: the journal has it.
    Behind,
    /// Nothing new, and nothing more will come.
    Over,
}

/// The log of a run while it is driven here.
#[derive(Debug)]
pub(super) struct Log {
    window: Mutex<Window>,
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct Window {
    entries: VecDeque<Told>,
    bytes: usize,
    /// Every event behind this number is here; `None`: not known before the first one.
    floor: Option<u64>,
    /// Events that there was no room for.
    dropped: u64,
    is_over: bool,
}

impl Log {
    /// That of a run which begins, or which another process has left.
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
        window.entries.push_back(Told { cursor: Cursor::at(number), json });
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

    /// Says that nothing more will come.
    pub(super) fn close(&self) {
        self.window().is_over = true;
        self.changed.send_replace(());
    }

    /// Hears when there is more.
    pub(super) fn listen(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// What comes behind a cursor.
    pub(super) fn read(&self, cursor: &Cursor) -> Found {
        let window = self.window();
        match window.floor {
            None if window.is_over => return Found::Over,
            Some(floor) if cursor.seq >= floor => {}
            Some(_) | None => return Found::Behind,
        }
        let first = window.entries.partition_point(|told| told.cursor.seq <= cursor.seq);
        let mut bytes = 0;
        let fits = |told: &&Told| {
            let before = bytes;
            bytes += told.json.len();
            before < AT_ONCE
        };
        let some: Vec<Told> = window.entries.range(first..).take_while(fits).cloned().collect();
        match (some.is_empty(), window.is_over) {
            (false, _) => Found::Some(some),
            (true, true) => Found::Over,
            (true, false) => Found::Nothing,
        }
    }

    /// Where to go on for who has read all that the journal has and is still behind: only pieces are missing, so many at most.
    pub(super) fn skip(&self, cursor: &Cursor) -> Option<(Cursor, u64)> {
        let (floor, dropped) = {
            let window = self.window();
            (window.floor?, window.dropped)
        };
        let missing = floor.checked_sub(cursor.seq).filter(|missing| *missing > 0)?;
        Some((Cursor::at(floor), missing.min(dropped))) // a resume leaves numbers out, and no event
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn weight(json: &str) -> usize {
    json.len() + size_of::<Told>()
}
