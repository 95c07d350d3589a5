//! The looks of text, and text without control characters. `NO_COLOR` and pipes turn colours off.

use super::terminal::linked;
use crate::process::is_invisible;
use anstyle::{AnsiColor, Style};
use std::sync::OnceLock;

/// The look of a piece of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Bad,
    Warn,
    Strong,
    Faint,
    /// A path; a link if the terminal supports links.
    Path,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Warn => AnsiColor::Yellow.on_default(),
            Self::Strong => Style::new().bold(),
            Self::Faint | Self::Path => Style::new().dimmed(),
        }
    }
}

/// Returns true if standard error shows colours.
pub(super) fn is_colourful() -> bool {
    static IS_COLOURFUL: OnceLock<bool> = OnceLock::new();
    *IS_COLOURFUL.get_or_init(|| anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never)
}

/// Returns pieces as text for standard error.
pub(super) fn painted<T: AsRef<str>>(pieces: &[(Tone, T)]) -> String {
    coloured(pieces, is_colourful())
}

/// Returns pieces as text, with colours if wanted.
pub(super) fn coloured<T: AsRef<str>>(pieces: &[(Tone, T)], is_colourful: bool) -> String {
    let paint = |(tone, text): &(Tone, T)| {
        let (text, style) = (harmless(text.as_ref()), tone.style());
        if is_colourful && *tone == Tone::Path {
            return format!("{style}{}{style:#}", linked(&text));
        }
        if is_colourful && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.into_owned() }
    };
    pieces.iter().map(paint).collect()
}

/// Removes control characters except line ends and tabs, and invisible characters that turn or hide
/// text. Text of models and tools then cannot move the cursor or change the title.
pub(super) fn harmless(text: &str) -> std::borrow::Cow<'_, str> {
    let harmful = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_invisible(c);
    if text.contains(harmful) { text.replace(harmful, "").into() } else { text.into() }
}

/// Returns harmless text in one line.
pub(super) fn one_line(text: &str) -> String {
    harmless(text).replace(['\n', '\t'], " ")
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
