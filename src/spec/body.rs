//! The part of a spec below the front matter: sections under `## ` headings, and the laws in one of
//! them.

use crate::yaml::FilePlace;

/// The sections that a spec should have.
pub(super) const SECTIONS: [&str; 7] =
    ["Purpose", "Public API", LAWS, "Behavioral Examples", "Error Cases", "Dependencies", "Change Log"];
/// The section with the laws.
pub(super) const LAWS: &str = "Invariants";

/// A section: its heading, and the lines below it with their numbers.
#[derive(Debug)]
pub(super) struct Section<'t> {
    pub(super) title: &'t str,
    pub(super) line: usize,
    lines: Vec<(usize, &'t str)>,
}

/// An invariant, as an item of a list states it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Law {
    pub(super) place: FilePlace,
    /// The text, on one line.
    pub(super) text: String,
}

/// Splits a text into sections. `first_line` is the number of its first line in the file. Headings
/// in code blocks do not count.
pub(super) fn sections(text: &str, first_line: usize) -> Vec<Section<'_>> {
    let (mut all, mut is_code) = (Vec::<Section<'_>>::new(), false);
    for (line, text) in (first_line..).zip(text.lines()) {
        let heading = text.strip_prefix("## ").filter(|_| !is_code);
        is_code ^= text.trim_start().starts_with("```");
        match (heading, all.last_mut()) {
            (Some(title), _) => all.push(Section { title: title.trim(), line, lines: Vec::new() }),
            (None, Some(section)) => section.lines.push((line, text)),
            (None, None) => {}
        }
    }
    all
}

impl Section<'_> {
    /// Returns whether the section has this title, ignoring case.
    pub(super) fn is(&self, title: &str) -> bool {
        self.title.eq_ignore_ascii_case(title)
    }

    /// Returns the items of the section's lists, each with its continuation lines.
    pub(super) fn laws(&self) -> Vec<Law> {
        let (mut laws, mut goes_on) = (Vec::<Law>::new(), false);
        for (line, text) in &self.lines {
            let words = text.trim();
            let is_more = text.starts_with([' ', '\t']) || (goes_on && !words.starts_with('#'));
            match laws.last_mut() {
                _ if is_item(text) => {
                    laws.push(Law { place: FilePlace { line: *line, column: 1 }, text: words.into() });
                    goes_on = true;
                }
                Some(law) if is_more && !words.is_empty() => {
                    law.text.push(' ');
                    law.text.push_str(words);
                }
                Some(_) | None => goes_on = false,
            }
        }
        laws
    }
}

/// Returns whether a line begins a list item: `1.`, `1)`, `-`, `*` or `+`, and a space.
fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let marks: &[&str] = if number.len() < line.len() { &[". ", ") "] } else { &["- ", "* ", "+ "] };
    marks.iter().any(|mark| number.starts_with(mark))
}
