//! The title and the progress of the terminal during a run, and the notification at its end.

use super::super::terminal::{ST, TerminalFeatures, known};
use super::super::text_style::one_line;
use super::{StatusLine, put};
use std::sync::{Mutex, PoisonError};

/// The last announcement.
static ANNOUNCED: Mutex<String> = Mutex::new(String::new());

/// Returns the bytes that set the terminal's progress if it has changed. Without a status, returns
/// those that clear it.
pub(super) fn announcement(status: Option<&StatusLine>) -> String {
    let features = known();
    let mut announced = ANNOUNCED.lock().unwrap_or_else(PoisonError::into_inner);
    let now = status.map(|status| said(status, features)).unwrap_or_default();
    if *announced == now {
        return String::new();
    }
    let before = std::mem::replace(&mut *announced, now.clone());
    let title = features.links;
    match (before.is_empty(), now.is_empty()) {
        (true, _) if title => format!("\u{1b}[22;2t{now}"), // saves the old title
        (_, true) => {
            let progress = if features.progress { format!("\u{1b}]9;4;0{ST}") } else { String::new() };
            let title = if title { "\u{1b}[23;2t" } else { "" };
            format!("{progress}{title}")
        }
        _ => now,
    }
}

fn said(status: &StatusLine, features: TerminalFeatures) -> String {
    let (attempt, attempts) = status.attempt;
    let progress = match status.checks {
        Some((done, all)) if all > 0 => format!("1;{}", done * 100 / all),
        _ => "3".to_owned(), // busy
    };
    let progress = if features.progress { format!("\u{1b}]9;4;{progress}{ST}") } else { String::new() };
    let what = if attempt == 0 { "preparing".to_owned() } else { format!("attempt {attempt}/{attempts}") };
    let title = if features.links { format!("\u{1b}]2;fledge: {what}{ST}") } else { String::new() };
    progress + &title
}

/// Announces the end by a notification if the terminal has them, else by the bell.
pub(in crate::cli) fn ring(title: &str, end: &str) {
    let text = one_line(&format!("{title}: {end}"));
    put(&if known().notes { format!("\u{1b}]9;{text}{ST}") } else { "\u{7}".to_owned() });
}
