//! Lines on standard error, in colour where a terminal wants it (`NO_COLOR` and pipes do not), and the live line below them.

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// How a piece of a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Bad,
    Warn,
    Strong,
    Faint,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Warn => AnsiColor::Yellow.on_default(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
        }
    }
}

/// Whether standard error shows colours.
pub(super) fn is_colourful() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// Whether standard error is a terminal.
pub(super) fn is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Writes pieces, and ends the line. A reader that has gone away is no failure of ours.
pub(super) fn line(pieces: &[(Tone, &str)]) {
    show(pieces, "\n");
}

/// Writes pieces.
pub(super) fn write(pieces: &[(Tone, &str)]) {
    show(pieces, "");
}

/// Writes all at once, so that nothing comes between.
fn show(pieces: &[(Tone, &str)], end: &str) {
    let paint = |(tone, text): &(Tone, &str)| {
        let style = tone.style();
        format!("{style}{}{style:#}", harmless(text))
    };
    let text: String = pieces.iter().map(paint).chain([end.to_owned()]).collect();
    let mut out = anstream::stderr().lock();
    let _reader_is_gone = out.write_all(text.as_bytes());
    let _reader_is_gone = out.flush();
}

/// Without control characters but line ends and tabs, and without invisible characters that turn or hide text: what a model or a
/// tool says moves no cursor, changes no title, and reads as it is.
pub(super) fn harmless(text: &str) -> std::borrow::Cow<'_, str> {
    let harmful = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
            || ('\u{e0000}'..='\u{e007f}').contains(&c)
    };
    if text.contains(harmful) { text.replace(harmful, "").into() } else { text.into() }
}

/// The same in one line.
pub(super) fn one_line(text: &str) -> String {
    harmless(text).replace(['\n', '\t'], " ")
}

/// One harmless line that fits beside spinner and clock. It is not padded to the terminal's width: the `^C` that a terminal
/// adds to it must not begin a new line.
fn short(what: &str) -> String {
    const ROOM: usize = 68;
    one_line(what).chars().take(ROOM).collect()
}

/// The line at the bottom of a terminal that says what is going on; nothing elsewhere.
#[derive(Debug)]
pub(super) struct LiveLine {
    bar: Option<ProgressBar>,
}

impl LiveLine {
    pub(super) fn new(wanted: bool) -> Self {
        let make = || {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
            let style = ProgressStyle::with_template("{spinner} {elapsed:>3} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        };
        Self { bar: (wanted && is_terminal()).then(make) }
    }

    /// Something new is going on: its clock starts.
    pub(super) fn begin(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(short(what));
            bar.reset();
            bar.enable_steady_tick(Duration::from_millis(125));
        }
    }

    /// The same goes on, and this is new about it.
    pub(super) fn note(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(short(what));
        }
    }

    /// Takes the line away, so that others can be written.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.disable_steady_tick();
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_moves_no_cursor() {
        assert_eq!(harmless("a\u{1b}]0;title\u{7}\u{9b}2J\r\u{202e}b\n\tc"), "a]0;title2Jb\n\tc");
        assert_eq!(harmless("plain: ü\n"), "plain: ü\n");
    }
}
