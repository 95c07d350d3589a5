//! The text of the rows at the bottom of a terminal: activities, waiting activities and the status.
//! Only computes.

use super::super::text_style::{Tone, one_line, painted};
use super::{Doing, RunningWork};
use crate::duration::milliseconds;
use crate::report::seconds;
use unicode_width::UnicodeWidthChar;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Columns of the longest row. A terminal that becomes narrower breaks longer rows, and may move
/// the parts out of reach.
pub(super) const WIDEST: usize = 100;
/// Free columns: for the `^C` that a terminal adds to the last line, and one so that no line is
/// full.
pub(super) const FREE: usize = 3;
/// Rows of the smallest terminal that shows more than the newest line of output.
const TALL: usize = 16;

/// Returns all rows: the open text, the activities with their newest output, the waiting ones, and
/// the status.
pub(super) fn scene(work: &RunningWork, turn: usize, width: usize, height: usize) -> Vec<String> {
    let room = width.saturating_sub(FREE).clamp(12, WIDEST);
    let mut all: Vec<String> = Some(work.text.clone()).filter(|text| !text.is_empty()).into_iter().collect();
    let others = all.len() + usize::from(work.status.is_some()) + usize::from(!work.queued.is_empty());
    all.extend(rows(&work.all, turn, width, height.saturating_sub(others)));
    if let ([doing], true) = (work.all.as_slice(), height >= TALL) {
        let older = doing.said.iter().rev().skip(1).rev().map(|line| one_line(line));
        let older: Vec<String> = older.filter(|line| !line.trim().is_empty()).collect();
        let place = all.len() - 1;
        let tail = older.iter().map(|line| painted(&[(Tone::Faint, fit(&format!("  | {line}"), room))]));
        all.splice(place..place, tail);
    }
    if !work.queued.is_empty() && height > 3 {
        let queued = fit(&format!("  queued: {}", one_line(&work.queued.join(", "))), room);
        all.push(painted(&[(Tone::Faint, queued)]));
    }
    if let Some(status) = &work.status {
        let mark = SPINNER[turn % SPINNER.len()];
        all.push(painted(&[(Tone::Plain, format!("{mark} ")), (Tone::Faint, status.fitting(room.saturating_sub(2)))]));
    }
    all
}

/// Returns a row for each activity, as far as they fit, and the number of the others.
fn rows(all: &[Doing], turn: usize, width: usize, height: usize) -> Vec<String> {
    let (width, most) = (width.saturating_sub(FREE).clamp(12, WIDEST), height.saturating_sub(2).max(2));
    let named = if all.len() > most { most - 1 } else { all.len() };
    let row = |doing: &Doing| {
        let ms = milliseconds(doing.since.read());
        let expected = doing.expected.map(|ms| format!("/~{}", clock(ms))).unwrap_or_default();
        let start = format!("{} {:>4}{expected} ", SPINNER[turn % SPINNER.len()], clock(ms));
        let room = width.saturating_sub(cells(&start));
        let (what, said) = (one_line(&doing.what), one_line(doing.newest()));
        let what = fit(&what, if said.is_empty() { room } else { room.div_ceil(2) });
        let rest = room.saturating_sub(cells(&what) + 2);
        if said.is_empty() || rest == 0 { start + &what } else { format!("{start}{what}  {}", fit(&said, rest)) }
    };
    let mut rows: Vec<String> = all[..named].iter().map(row).collect();
    if named < all.len() {
        rows.push(format!("  and {} more", all.len() - named));
    }
    rows
}

/// Returns true if a line of output is a later state of the line before it: a progress bar, or a
/// line that grows while tests run.
pub(super) fn is_continued(before: &str, after: &str) -> bool {
    // The counts of tests are before the line itself.
    let line = |text: &str| text.rsplit(" · ").next().unwrap_or(text).trim_end().to_owned();
    let (before, after) = (line(before), line(after));
    let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
    // pytest prints one letter for each test.
    let name = |text: &str| Some(letters(text)).filter(|all| !all.chars().all(|c| "FEsxXp".contains(c)));
    let is_bar = before.contains('%') && after.contains('%') && name(&before) == name(&after);
    is_bar || (!before.is_empty() && after.starts_with(&before))
}

/// Formats a time in whole seconds: running clocks show no tenths.
pub(in crate::cli) fn clock(ms: u64) -> String {
    if ms < 60_000 { format!("{}s", ms / 1000) } else { seconds(ms) }
}

/// Cuts a text to the available cells.
pub(in crate::cli) fn fit(text: &str, room: usize) -> String {
    if cells(text) <= room {
        return text.to_owned();
    }
    let mut left = room.saturating_sub(1);
    let fits = |c: &char| match left.checked_sub(c.width().unwrap_or(0)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// Counts the cells of a text: never fewer than a terminal shows, which may draw several characters
/// as one. Colours take none.
pub(in crate::cli) fn cells(text: &str) -> usize {
    let mut is_colour = false;
    let mut cells = |c: char| {
        let is_part = is_colour || c == '\u{1b}';
        is_colour = is_part && c != 'm';
        if is_part { 0 } else { c.width().unwrap_or(0) }
    };
    text.chars().map(&mut cells).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Stopwatch;

    fn doing(what: &str, said: &str) -> Doing {
        Doing { what: what.into(), said: [said.to_owned()].into(), since: Stopwatch::start(), expected: None }
    }

    #[test]
    fn a_row_never_fills_the_width_whatever_is_in_it() {
        let texts = [
            "",
            "test",
            "a\nb\tc\u{1b}[2J",
            "🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀",
            "ü語".repeat(200).leak(),
        ];
        for (what, said) in texts.iter().flat_map(|what| texts.map(|said| (what, said))) {
            for width in [15, 16, 40, 80, 81, 120] {
                let rows = rows(&[doing(what, said)], 0, width, 24);
                assert!(rows.len() == 1 && cells(&rows[0]) <= width - FREE, "{width}: {rows:?}");
            }
        }
        assert_eq!(cells(&rows(&[doing("test", &"x".repeat(300))], 0, 250, 24)[0]), WIDEST);
        assert_eq!(rows(&[doing("test", "running 3 tests")], 1, 80, 24), ["⠙   0s test  running 3 tests"]);
        assert_eq!(rows(&[doing("a-long-name", "said: something")], 0, 30, 24), ["⠋   0s a-long-na…  said: s…"]);
    }

    #[test]
    fn what_does_not_fit_the_height_is_counted() {
        let all: Vec<Doing> = (0..9).map(|n| doing(&format!("s{n}"), "")).collect();
        assert_eq!(rows(&all, 0, 80, 24).len(), 9);
        let rows = rows(&all, 0, 80, 6);
        assert_eq!(rows, ["⠋   0s s0", "⠋   0s s1", "⠋   0s s2", "  and 6 more"]);
    }

    #[test]
    fn a_progress_bar_is_one_line() {
        for (before, after) in [
            ("....", "....F."),
            ("....F. [ 10%]", "......s.. [ 20%]"),
            ("Downloading a  9%", "Downloading a 10%"),
            ("4 tests · tests/test_a.py ..", "5 tests · tests/test_a.py ..."),
        ] {
            assert!(is_continued(before, after), "{before} {after}");
        }
        for (before, after) in
            [("test_a.py .. [ 10%]", "test_b.py .. [ 20%]"), ("", "a"), ("one", "two"), ("10 of 20", "11 of 20")]
        {
            assert!(!is_continued(before, after), "{before} {after}");
        }
    }

    #[test]
    fn clocks_have_no_tenths() {
        assert_eq!([999, 59_999, 61_000].map(clock), ["0s", "59s", "1m01s"]);
    }
}
