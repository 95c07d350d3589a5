//! Features of some terminals beyond text: links, a title, progress in the task bar, notifications.
//! fledge uses each only if the environment names a terminal that has it; other terminals would
//! show garbage.

use crate::config::EnvironmentLayer;
use std::io::IsTerminal;
use std::sync::OnceLock;

/// The string terminator of an escape sequence.
pub(super) const ST: &str = "\u{1b}\\";
/// The first version of the VTE library whose terminals have links.
const VTE_LINKS: u32 = 5_000;

/// The features of the terminal on standard error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TerminalFeatures {
    /// Links, and a title that can be restored.
    pub(super) links: bool,
    /// Progress in the task bar or the tab.
    pub(super) progress: bool,
    /// Notifications with text; without them, fledge rings the bell.
    pub(super) notes: bool,
}

static FEATURES: OnceLock<TerminalFeatures> = OnceLock::new();

/// Returns true if standard error is a terminal that can move its cursor.
pub(super) fn can_draw(environment: &EnvironmentLayer) -> bool {
    std::io::stderr().is_terminal() && environment.get("TERM").is_some_and(|term| term != "dumb")
}

/// Recognizes the terminal, once.
pub(super) fn recognize(environment: &EnvironmentLayer) {
    let features =
        if can_draw(environment) { features(|name| environment.get(name)) } else { TerminalFeatures::default() };
    let _is_known = FEATURES.set(features);
}

fn features<'e>(get: impl Fn(&str) -> Option<&'e str>) -> TerminalFeatures {
    let is = |name: &str, values: &[&str]| get(name).is_some_and(|value| values.contains(&value));
    if get("TMUX").is_some() || get("STY").is_some() {
        return TerminalFeatures::default(); // multiplexers pass on only what they know
    }
    let vte = get("VTE_VERSION").and_then(|version| version.parse::<u32>().ok());
    let both = is("TERM_PROGRAM", &["WezTerm", "ghostty", "iTerm.app"]) || is("TERM", &["xterm-ghostty"]);
    let windows = get("WT_SESSION").is_some();
    let links = both
        || windows
        || is("TERM_PROGRAM", &["vscode", "Hyper", "rio"])
        || is("TERM", &["xterm-kitty", "alacritty", "foot"])
        || get("KONSOLE_VERSION").is_some()
        || vte.is_some_and(|version| version >= VTE_LINKS);
    TerminalFeatures { links, progress: both || windows || is("ConEmuANSI", &["ON"]), notes: both }
}

/// Returns the recognized features.
pub(super) fn known() -> TerminalFeatures {
    FEATURES.get().copied().unwrap_or_default()
}

/// Returns the path as a link to itself, if the terminal has links.
pub(super) fn linked(path: &str) -> String {
    if known().links && path.starts_with('/') { link(path) } else { path.to_owned() }
}

fn link(path: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(byte);
    let escaped: String = path
        .bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    format!("\u{1b}]8;;file://{escaped}{ST}{path}\u{1b}]8;;{ST}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&'static str, &'static str)]) -> TerminalFeatures {
        features(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value))
    }

    #[test]
    fn only_terminals_that_are_known_get_more_than_text() {
        assert_eq!(of(&[("TERM", "xterm-256color")]), TerminalFeatures::default());
        assert_eq!(of(&[("TERM_PROGRAM", "WezTerm"), ("TMUX", "/tmp/x")]), TerminalFeatures::default());
        assert_eq!(of(&[("TERM_PROGRAM", "WezTerm")]), TerminalFeatures { links: true, progress: true, notes: true });
        assert_eq!(of(&[("WT_SESSION", "1")]), TerminalFeatures { links: true, progress: true, notes: false });
        assert_eq!([of(&[("VTE_VERSION", "4000")]).links, of(&[("VTE_VERSION", "7600")]).links], [false, true]);
    }

    #[test]
    fn a_link_has_nothing_in_it_that_ends_it() {
        assert_eq!(link("/a b\u{e9}"), "\u{1b}]8;;file:///a%20b%C3%A9\u{1b}\\/a b\u{e9}\u{1b}]8;;\u{1b}\\");
    }
}
