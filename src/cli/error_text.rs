//! Problems in files as text: one line per problem, `file:line:column: message (hint)`. Below the
//! problems of one line, the line itself with a caret under each place.

use super::paint::{self, Tone};
use super::steps::StyledLine;
use crate::batch::plan::PlanErrors;
use crate::config::ConfigError;
use crate::driver::PlanError;
use crate::gate::GateError;
use crate::lane::LaneError;
use crate::lane_files::LaneFilesError;
use crate::process::is_invisible;
use crate::provider::ProviderError;
use crate::spec::SpecError;
use crate::task::TaskError;
use crate::yaml::{Problem, ProblemLine, Problems};
use std::collections::BTreeSet;
use std::error::Error;
use unicode_width::UnicodeWidthChar;

/// The maximum number of lines of a file to show, as many as a person reads at once.
const MOST_SHOWN: usize = 20;

/// Draws an error about places in files; `None` for any other error.
pub(super) fn draw_error(error: &(dyn Error + 'static)) -> Option<Vec<StyledLine>> {
    if let Some(ErrorList(all)) = error.downcast_ref() {
        return Some(all.iter().flat_map(each).collect());
    }
    let (files, whole) = (files(error), error.downcast_ref().map_or(&[][..], |faults: &PlanErrors| &faults.whole));
    let drawn = || files.iter().flat_map(|(file, problems)| draw(file, &problems.sorted()));
    let said = whole.iter().map(|line| vec![(Tone::Plain, line.clone())]);
    (!files.is_empty()).then(|| drawn().chain(said).collect())
}

/// Several errors, each shown as if it were the only one.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(|error| format!("{error:#}")).collect::<Vec<_>>().join("\n"))]
pub(super) struct ErrorList(Vec<anyhow::Error>);

impl ErrorList {
    /// Joins errors, without duplicates.
    pub(super) fn from_errors(all: Vec<anyhow::Error>) -> Self {
        let mut known = BTreeSet::new();
        Self(all.into_iter().filter(|error| known.insert(format!("{error:#}"))).collect())
    }
}

fn each(error: &anyhow::Error) -> Vec<StyledLine> {
    error.chain().find_map(draw_error).unwrap_or_else(|| vec![vec![(Tone::Plain, format!("{error:#}"))]])
}

/// Prints lines on standard error, with a word before the first one.
pub(super) fn say((tone, word): (Tone, &str), mut lines: Vec<StyledLine>) {
    if let Some(first) = lines.first_mut() {
        first.insert(0, (tone, word.to_owned()));
    }
    lines.iter().for_each(|line| paint::line(line));
}

fn files<'e>(error: &'e (dyn Error + 'static)) -> Vec<(&'e str, &'e Problems)> {
    let lane = |fault: &'e LaneError| fault.files.iter().map(|(file, problems)| (file.as_str(), problems)).collect();
    if let Some(TaskError { file, problems }) = error.downcast_ref() {
        return vec![(file, problems)];
    }
    if let Some(ConfigError::Invalid { file, problems }) = error.downcast_ref() {
        return vec![(file, problems)];
    }
    if let Some(SpecError::Invalid { file, problems }) = error.downcast_ref() {
        return vec![(file, problems)];
    }
    if let Some(ProviderError::BadCassette { name, problems }) = error.downcast_ref() {
        return vec![(name, problems)];
    }
    if let Some(PlanErrors { files, .. }) = error.downcast_ref() {
        return files.iter().map(|TaskError { file, problems }| (file.as_str(), problems)).collect();
    }
    if let Some(PlanError { lane: Some(fault), .. }) = error.downcast_ref() {
        return lane(fault);
    }
    match (error.downcast_ref::<LaneError>(), error.downcast_ref::<GateError>()) {
        (Some(fault), _) | (None, Some(GateError::Lanes(LaneFilesError::Invalid(fault)))) => lane(fault),
        (None, _) => Vec::new(),
    }
}

/// Draws the problems of one file. `problems` are sorted by place.
pub(super) fn draw(file: &str, problems: &[Problem]) -> Vec<StyledLine> {
    let numbers = problems.iter().filter(|problem| problem.seen.is_some()).filter_map(|problem| problem.place);
    let gutter = numbers.map(|place| place.line).max().unwrap_or(0).to_string().len();
    let mut lines = Vec::new();
    let mut shown = 0;
    for of_one_line in problems.chunk_by(is_beside) {
        let said = |problem: &Problem| vec![(Tone::Plain, Problems::from(problem.clone()).within(file))];
        lines.extend(of_one_line.iter().map(said));
        let seen: Vec<&ProblemLine> = of_one_line.iter().filter_map(|problem| problem.seen.as_ref()).collect();
        if let ([first, ..], Some(place)) = (seen.as_slice(), of_one_line[0].place)
            && shown < MOST_SHOWN
        {
            shown += 1;
            lines.extend(excerpt(&place.line.to_string(), gutter, &first.text, seen.iter().map(|seen| seen.column)));
        }
    }
    lines
}

/// Returns true if two problems are on the same line and have the same excerpt of it.
fn is_beside(one: &Problem, other: &Problem) -> bool {
    let text = |problem: &Problem| problem.seen.as_ref().map(|seen| seen.text.clone());
    let line = |problem: &Problem| problem.place.map(|place| place.line);
    one.seen.is_some() && line(one) == line(other) && text(one) == text(other)
}

fn excerpt(number: &str, gutter: usize, text: &str, columns: impl Iterator<Item = usize>) -> [StyledLine; 2] {
    let chars: Vec<char> = text.chars().collect();
    let mut carets = String::new();
    for column in columns {
        let start = width(&chars[..column.min(chars.len())]);
        let word = &chars[column.min(chars.len())..];
        let under = width(&word[..extent(word)]).max(1);
        let so_far = carets.len();
        if start >= so_far {
            carets.extend(std::iter::repeat_n(' ', start - so_far));
            carets.extend(std::iter::repeat_n('^', under));
        }
    }
    let shown: String = chars.iter().map(|c| shown(*c)).collect();
    let margin = |label: &str| (Tone::Faint, format!("  {label:>gutter$} | "));
    [vec![margin(number), (Tone::Plain, shown)], vec![margin(""), (Tone::Bad, carets)]]
}

/// Returns the length of the word or quoted text at the start.
fn extent(chars: &[char]) -> usize {
    let Some(first) = chars.first() else { return 0 };
    if matches!(first, '"' | '\'')
        && let Some(end) = chars[1..].iter().position(|c| c == first)
    {
        return end + 2;
    }
    // A colon ends a key, but can be part of a URL.
    let is_key = |at: usize| chars.get(at + 1).is_none_or(|next| next.is_whitespace());
    let ends = |at: &usize| match chars[*at] {
        ':' => is_key(*at),
        c => c.is_whitespace() || matches!(c, ',' | ']' | '}'),
    };
    (1..chars.len()).find(ends).unwrap_or(chars.len())
}

/// Returns a character as it is shown. Tabs become spaces, to keep the carets in place. Control and
/// invisible characters become a replacement character.
fn shown(c: char) -> String {
    match c {
        '\t' => "    ".into(),
        c if c.is_control() || is_invisible(c) => char::REPLACEMENT_CHARACTER.into(),
        c => c.into(),
    }
}

fn width(chars: &[char]) -> usize {
    chars.iter().flat_map(|c| shown(*c).chars().collect::<Vec<_>>()).map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{ParamValues, parse};

    fn drawn(text: &str) -> String {
        let fault = parse(text, "task.md", &ParamValues::new()).unwrap_err();
        let lines = draw_error(&fault).unwrap();
        lines.iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect::<String>() + "\n").collect()
    }

    #[test]
    fn problems_are_drawn_with_their_lines_and_a_caret_under_each_place() {
        let text = "---\ntitle: \"\"\nmax_retires: 3\nbudget: { turns: many, tiem: 5m }\n\
            tools: { allow: [\"日本語\", \"a[\"] }\ncontext: [\"\u{202e}x\", 5]\n---\ntext\n";
        insta::assert_snapshot!(drawn(text));
    }

    #[test]
    fn a_long_line_is_cut_a_tab_is_wide_and_nothing_moves_the_cursor() {
        let long = format!("---\ncontext: [{}5, x]\n---\ntext", "aaaaaaaaaaa, ".repeat(40));
        insta::assert_snapshot!(drawn(&long));
        insta::assert_snapshot!(drawn("---\nbudget:\n\tturns: 5\n---\ntext"));
        let said = drawn("---\ntitle: a\nmodle: \"\u{1b}[31mx\u{7}\"\n---\ntext");
        assert!(!said.contains('\u{1b}') && !said.contains('\u{7}'), "{said:?}");
    }

    #[test]
    fn of_very_many_problems_some_lines_are_shown() {
        let keys: String = (0..90).map(|n| format!("zebra{n}: 1\n")).collect();
        let said = drawn(&format!("---\n{keys}---\ntext"));
        assert_eq!((said.matches("unknown key").count(), said.matches('^').count() > 0), (90, true));
        assert_eq!(said.lines().filter(|line| line.contains(" | zebra")).count(), MOST_SHOWN);
    }
}
