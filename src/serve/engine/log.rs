//! What was told of a run that is under way, for all who follow it: one log that all of them read, so that no reader costs memory and none
//! holds the run up. It goes back so far as there is room; what is kept in the journal is read there by who is further behind, and pieces
//! that are gone are said to be.

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

/// How far somebody has read. As text, the id of an event: its number where the journal has it, else the number of the newest one before it
/// that the journal has, whose log it was in, and its own number. So it means the same to a server that has begun anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The newest event of the journal that was read.
    pub kept: u64,
    /// The newest piece behind it, by the log that it was in and its number.
    pub piece: Option<(u64, u64)>,
    /// Whether the end was read.
    pub ended: bool,
}

impl Cursor {
    /// Behind this event of the journal.
    pub(super) fn at(kept: u64) -> Self {
        Self { kept, ..Self::default() }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.ended, self.piece) {
            (true, _) => write!(f, "{}.end", self.kept),
            (false, Some((life, number))) => write!(f, "{}.{life}.{number}", self.kept),
            (false, None) => write!(f, "{}", self.kept),
        }
    }
}

/// A text that is no cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is the id of no event: `12`, `12.3.15` or `12.end` would be one")]
pub struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().map_err(|_| NoCursor),
            false => Err(NoCursor),
        };
        let parts: Vec<&str> = text.split('.').collect();
        Ok(match parts.as_slice() {
            [kept] => Self::at(number(kept)?),
            [kept, "end"] => Self { ended: true, ..Self::at(number(kept)?) },
            [kept, life, piece] => Self { piece: Some((number(life)?, number(piece)?)), ..Self::at(number(kept)?) },
            _ => return Err(NoCursor),
        })
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

/// One event in the log.
#[derive(Debug)]
struct Entry {
    number: u64,
    told: Told,
}

/// The log of a run while it is driven here.
#[derive(Debug)]
pub(super) struct Log {
    /// Whose log it is: no other one of the run has this number.
    life: u64,
    window: Mutex<Window>,
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct Window {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Every event behind this number is here; `None`: not known before the first one.
    floor: Option<u64>,
    kept: u64,
    is_over: bool,
}

impl Log {
    /// That of a run which begins, or which another process has left.
    pub(super) fn new(life: u64, is_new: bool) -> Self {
        let floor = is_new.then_some(0);
        let window = Window { entries: VecDeque::new(), bytes: 0, floor, kept: 0, is_over: false };
        Self { life, window: Mutex::new(window), changed: watch::channel(()).0 }
    }

    /// Adds an event.
    pub(super) fn add(&self, record: &EventRecord) {
        let json: Arc<str> = serde_json::to_string(record).unwrap_or_default().into();
        let number = record.seq;
        let mut window = self.window();
        if record.is_kept {
            window.kept = number;
        } else if window.floor.is_none() {
            window.kept = number.saturating_sub(1); // all before it is in the journal
        }
        window.floor.get_or_insert(number.saturating_sub(1));
        let piece = (!record.is_kept).then_some((self.life, number));
        let cursor = Cursor { kept: window.kept, piece, ended: false };
        window.bytes += weight(&json);
        window.entries.push_back(Entry { number, told: Told { cursor, json } });
        while window.bytes > MOST
            && let Some(oldest) = window.entries.pop_front()
        {
            window.bytes -= weight(&oldest.told.json);
            window.floor = Some(oldest.number);
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
        let place = self.place(cursor);
        match window.floor {
            None if window.is_over => return Found::Over,
            Some(floor) if place >= floor => {}
            Some(_) | None => return Found::Behind,
        }
        let first = window.entries.partition_point(|entry| entry.number <= place);
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            let before = bytes;
            bytes += entry.told.json.len();
            before < AT_ONCE
        };
        let some: Vec<Told> = window.entries.range(first..).take_while(fits).map(|entry| entry.told.clone()).collect();
        match (some.is_empty(), window.is_over) {
            (false, _) => Found::Some(some),
            (true, true) => Found::Over,
            (true, false) => Found::Nothing,
        }
    }

    /// Where to go on for who has read all that the journal has and is still behind: only pieces are missing, so many at most.
    pub(super) fn skip(&self, cursor: &Cursor) -> Option<(Cursor, u64)> {
        let window = self.window();
        let (floor, place) = (window.floor?, self.place(cursor));
        let missing = floor.checked_sub(place).filter(|missing| *missing > 0)?;
        Some((Cursor { kept: cursor.kept, piece: Some((self.life, floor)), ended: false }, missing))
    }

    /// The number up to which somebody has read.
    fn place(&self, cursor: &Cursor) -> u64 {
        match cursor.piece {
            Some((life, number)) if life == self.life => number.max(cursor.kept),
            Some(_) | None => cursor.kept,
        }
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn weight(json: &str) -> usize {
    json.len() + size_of::<Entry>()
}
