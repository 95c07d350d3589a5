//! Live lines at the bottom of a terminal, and all output to standard error, which is written above
//! them so that nothing garbles them.
//!
//! A thread draws the lines at most 8 times a second, while anything runs. Noting a line of output
//! only stores it. fledge never hides the cursor, so no kind of end has to restore it.

mod announcement;
mod rows;
mod status;

pub(super) use announcement::ring;
pub(super) use rows::{cells, clock, fit};
pub(super) use status::StatusLine;

use crate::process::Stopwatch;
use announcement::announcement;
use rows::WIDEST;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// The shortest time between two drawings.
const EVERY: Duration = Duration::from_millis(125);
/// Lines of output to keep for each activity.
const TAIL: usize = 3;

/// The current activities. Locked only briefly: a caller that notes a line must not wait for a
/// stopped terminal.
static WORK: Mutex<RunningWork> = Mutex::new(RunningWork {
    all: Vec::new(),
    early: BTreeMap::new(),
    text: String::new(),
    queued: Vec::new(),
    status: None,
    has_drawer: false,
});
/// The bottom of the screen. Locked during writes to it.
static SCREEN: Mutex<Screen> =
    Mutex::new(Screen { rows: Vec::new(), drawn: None, is_mid_line: false, turn: 0, question: None });

struct RunningWork {
    /// Activities, the oldest first.
    all: Vec<Doing>,
    /// Output of activities whose beginning is not known yet; it can arrive another way.
    early: BTreeMap<String, String>,
    /// A painted line of text that has not ended. Later pieces may continue it.
    text: String,
    /// Names of waiting activities.
    queued: Vec<String>,
    /// The status line.
    status: Option<StatusLine>,
    has_drawer: bool,
}

struct Doing {
    what: String,
    /// Its newest lines of output, the newest last.
    said: VecDeque<String>,
    since: Stopwatch,
    /// The time that it took earlier, in milliseconds.
    expected: Option<u64>,
}

impl Doing {
    fn say(&mut self, said: String) {
        if let Some(last) = self.said.back_mut().filter(|last| rows::is_continued(last, &said)) {
            *last = said;
            return;
        }
        if self.said.len() == TAIL {
            self.said.pop_front();
        }
        self.said.push_back(said);
    }

    fn newest(&self) -> &str {
        self.said.back().map_or("", String::as_str)
    }
}

struct Screen {
    /// The cells of each drawn row.
    rows: Vec<usize>,
    drawn: Option<Stopwatch>,
    /// True if the text above ends without a line end.
    is_mid_line: bool,
    turn: usize,
    /// The question to a person, shown in place of the live lines.
    question: Option<Pinned>,
}

/// A text at the bottom of the screen. The cursor is behind it, for the answer.
struct Pinned {
    text: String,
    /// True if the terminal can move its cursor; else the text is written again.
    can_move: bool,
}

/// A handle to the live lines. Does nothing if they are not wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct LiveView {
    is_wanted: bool,
}

impl LiveView {
    /// `is_wanted` must be false if standard error is not a terminal that can move its cursor.
    pub(super) fn new(is_wanted: bool) -> Self {
        draws(is_wanted);
        Self { is_wanted }
    }

    pub(super) fn is_wanted(self) -> bool {
        self.is_wanted
    }

    /// Adds an activity and starts its clock.
    pub(super) fn start(self, what: &str, said: &str) {
        self.begin_expected(what, said, None);
    }

    /// Adds an activity that took `expected` milliseconds earlier.
    pub(super) fn begin_expected(self, what: &str, said: &str, expected: Option<u64>) {
        if self.is_wanted {
            let mut work = lock(&WORK);
            let said = VecDeque::from([work.early.remove(what).unwrap_or_else(|| said.into())]);
            work.all.push(Doing { what: what.into(), said, since: Stopwatch::start(), expected });
            work.need_drawer();
        }
    }

    /// Sets the names of the waiting activities.
    pub(super) fn queue(self, queued: Vec<String>) {
        if self.is_wanted {
            lock(&WORK).queued = queued;
        }
    }

    /// Shows this status at the bottom until [`LiveView::finish`].
    pub(super) fn status(self, status: StatusLine) {
        if self.is_wanted {
            let mut work = lock(&WORK);
            work.status = Some(status);
            work.need_drawer();
        }
    }

    /// Shows a line of text that has not ended above the activities. The text is painted and
    /// narrower than the screen. An empty text removes the line.
    pub(super) fn unfinished(self, text: String) {
        if self.is_wanted {
            let mut work = lock(&WORK);
            work.text = text;
            work.need_drawer();
        }
    }

    /// Removes all lines at the end of a run.
    pub(super) fn finish(self) {
        if self.is_wanted {
            lock(&WORK).status = None;
            self.clear();
            let mut screen = lock(&SCREEN);
            let out = screen.erase() + &announcement(None);
            put(&out);
        }
    }

    /// Adds a line of output to an activity.
    pub(super) fn note(self, what: &str, said: impl Into<String>) {
        if self.is_wanted {
            let mut work = lock(&WORK);
            match work.all.iter_mut().find(|doing| doing.what == what) {
                Some(doing) => doing.say(said.into()),
                None => drop(work.early.insert(what.into(), said.into())),
            }
        }
    }

    /// Removes an activity. Its row disappears with the next drawing.
    pub(super) fn end(self, what: &str) {
        if self.is_wanted {
            let mut work = lock(&WORK);
            // The first one: another of that name may have begun by now.
            if let Some(at) = work.all.iter().position(|doing| doing.what == what) {
                work.all.remove(at);
            }
        }
    }

    /// Removes all activities.
    pub(super) fn clear(self) {
        if self.is_wanted {
            let mut work = lock(&WORK);
            work.all.clear();
            work.early.clear();
            work.queued.clear();
            work.text.clear();
            drop(work);
            above("");
        }
    }
}

/// Shows a question below everything until it is settled.
pub(super) fn pin(text: &str, can_move: bool) {
    let mut screen = lock(&SCREEN);
    let mut out = screen.erase();
    screen.question = Some(Pinned { text: text.into(), can_move });
    screen.draw(&mut out);
    put(&out);
}

/// Forgets the question after an answer, which has ended the line.
pub(super) fn forget_question() {
    let mut screen = lock(&SCREEN);
    screen.question = None;
    screen.rows.clear();
}

/// Withdraws the question. Its text stays on the screen.
pub(super) fn unpin() {
    let mut screen = lock(&SCREEN);
    if screen.question.take().is_some() {
        screen.rows.clear();
        put("\n");
    }
}

/// Writes text above the lines, directly after the text before it.
pub(super) fn above(text: &str) {
    put_above(text, false);
}

/// Writes text above the lines, on a new line.
pub(super) fn line_above(text: &str) {
    put_above(text, true);
}

/// Returns true if the text above the lines has not ended its last line.
pub(super) fn is_mid_line() -> bool {
    lock(&SCREEN).is_mid_line
}

fn put_above(text: &str, begins_line: bool) {
    let mut screen = lock(&SCREEN);
    if text.is_empty() && screen.question.is_some() {
        return; // a redraw would erase what the person has typed
    }
    let mut out = screen.erase();
    if begins_line && screen.is_mid_line {
        out.push('\n');
    }
    out.push_str(text);
    if !text.is_empty() {
        screen.is_mid_line = !text.trim_end_matches("\u{1b}[0m").ends_with('\n');
    }
    // Redraws the lines in the same write, so that they do not flicker.
    screen.draw(&mut out);
    put(&out);
}

/// Removes the lines for good; also safe in a panic and with a blocked terminal.
pub(super) fn give_up() {
    if let Some(mut work) = soon(&WORK) {
        work.all.clear();
        work.queued.clear();
        work.text.clear();
        work.status = None;
    }
    if let Some(mut screen) = soon(&SCREEN) {
        let end = if screen.question.take().is_some() { "\n".to_owned() } else { screen.erase() };
        put(&(end + &announcement(None)));
    }
}

/// Waits briefly for the lock. Its holder may be stuck, or be the thread that panics.
fn soon<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    const TRIES: u32 = 50;
    for _ in 0..TRIES {
        match lock.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(guard)) => return Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    None
}

/// Makes panics print their message on a clean line.
pub(super) fn give_up_on_panic() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_up();
        hook(panic);
    }));
}

impl RunningWork {
    fn need_drawer(&mut self) {
        if !self.has_drawer {
            let drawer = std::thread::Builder::new().name("fledge-drawer".into());
            self.has_drawer = drawer.spawn(draw_on).is_ok();
        }
    }
}

/// Draws while there is something to show.
fn draw_on() {
    loop {
        std::thread::sleep(EVERY);
        let mut screen = lock(&SCREEN);
        if screen.question.is_some() {
            continue; // do not disturb the person who types
        }
        let mut out = screen.erase();
        screen.draw(&mut out);
        put(&out);
        let mut work = lock(&WORK);
        if work.all.is_empty() && work.status.is_none() && screen.rows.is_empty() {
            work.has_drawer = false;
            return;
        }
    }
}

impl Screen {
    /// Returns the text that erases the drawn rows. Counts rows that a narrower terminal has
    /// wrapped.
    fn erase(&mut self) -> String {
        if self.question.as_ref().is_some_and(|question| !question.can_move) {
            return "\n".to_owned();
        }
        let (width, height) = size();
        let rows: usize = self.rows.drain(..).map(|cells| cells.div_ceil(width).max(1)).sum();
        // Row by row: some terminals keep a screen that is cleared from its first cell in their
        // history.
        let above = rows.min(height).saturating_sub(1);
        if rows == 0 { String::new() } else { format!("\r\u{1b}[2K{}", "\u{1b}[A\u{1b}[2K".repeat(above)) }
    }

    fn draw(&mut self, out: &mut String) {
        if let Some(Pinned { text, can_move }) = &self.question {
            if std::mem::take(&mut self.is_mid_line) {
                out.push('\n');
            }
            out.push_str(text);
            self.rows = if *can_move { text.split('\n').map(cells).collect() } else { Vec::new() };
            return;
        }
        if self.is_mid_line {
            return;
        }
        let (width, height) = size();
        let work = lock(&WORK);
        let rows = rows::scene(&work, self.turn, width, height);
        out.push_str(&work.status.as_ref().map(|status| announcement(Some(status))).unwrap_or_default());
        drop(work);
        out.push_str(&rows.join("\n"));
        self.rows = rows.iter().map(|row| cells(row)).collect();
        self.drawn = if rows.is_empty() { None } else { Some(Stopwatch::start()) };
        self.turn += 1;
    }
}

/// Writes and flushes. A reader that has gone away is not an error.
pub(super) fn put(text: &str) {
    if !text.is_empty() {
        let mut out = std::io::stderr().lock();
        let _reader_is_gone = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// Locks a mutex, even a poisoned one: a panic leaves no value here half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if live lines are drawn.
static IS_DRAWN: AtomicBool = AtomicBool::new(false);

/// Records that live lines are drawn, if they are.
fn draws(is_wanted: bool) {
    IS_DRAWN.fetch_or(is_wanted, Ordering::Relaxed);
}

/// Returns the columns and rows of the terminal.
fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).map(|size| (size.ws_col.into(), size.ws_row.into()));
    match size {
        Ok((columns, rows)) if columns > 0 && rows > 0 => (columns, rows),
        Ok(_) | Err(_) => (80, 24),
    }
}

/// Returns the columns of a line above the live lines: a little narrower than the terminal, and
/// limited for easy reading.
pub(super) fn width() -> usize {
    size().0.saturating_sub(1).clamp(20, WIDEST)
}

/// Returns the columns that a line may have, if live lines are drawn.
pub(super) fn drawn_width() -> Option<usize> {
    IS_DRAWN.load(Ordering::Relaxed).then(|| size().0.saturating_sub(1).max(20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_stays_below_what_is_written_while_it_is_asked() {
        let mut screen = Screen { rows: Vec::new(), drawn: None, is_mid_line: true, turn: 0, question: None };
        screen.question = Some(Pinned { text: "may it?\n[y/n] ".into(), can_move: true });
        let mut out = String::new();
        screen.draw(&mut out);
        assert_eq!((out.as_str(), screen.rows.len()), ("\nmay it?\n[y/n] ", 2));
        out = screen.erase() + "a line\n";
        screen.draw(&mut out);
        assert_eq!(out, "\r\u{1b}[2K\u{1b}[A\u{1b}[2Ka line\nmay it?\n[y/n] ");
        screen.question = Some(Pinned { text: "may it? ".into(), can_move: false });
        assert_eq!(screen.erase(), "\n");
    }
}
