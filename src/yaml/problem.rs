//! Problems in texts that people write: each has a place, a message that names the cause, and a
//! hint.

use super::seen::{ProblemLine, keys_alone};
use std::collections::HashSet;
use std::fmt::{self, Write as _};

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePlace {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One problem. Displayed as ``4:7: unknown key `tiemout` (did you mean `timeout`?)``.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The place; `None` if the problem concerns the whole file.
    pub place: Option<FilePlace>,
    /// The message: expected and found values.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// The line that contains the problem, if the text was available.
    pub seen: Option<ProblemLine>,
    /// The name of the task parameter that the problem concerns.
    pub about: Option<String>,
    /// True if the form is right, but the author of this file is not allowed to use it.
    pub is_refusal: bool,
}

impl Problem {
    /// Creates a problem at a place.
    pub fn at(place: FilePlace, message: impl Into<String>) -> Self {
        Self { place: Some(place), ..Self::of_file(message) }
    }

    /// Creates a problem of a whole file.
    pub fn of_file(message: impl Into<String>) -> Self {
        Self { place: None, message: message.into(), hint: None, seen: None, about: None, is_refusal: false }
    }

    /// Returns the problem as one that concerns a task parameter.
    #[must_use]
    pub fn about(self, name: &str) -> Self {
        Self { about: Some(name.to_owned()), ..self }
    }

    /// Marks the problem as a refusal: right in form, but not allowed for the author of this file.
    #[must_use]
    pub fn refusal(self) -> Self {
        Self { is_refusal: true, ..self }
    }

    /// Adds the line that contains the problem; `text` is the whole file.
    #[must_use]
    pub fn seen_in(self, text: &str) -> Self {
        let seen = Problems::from(self.clone()).seen_in(text).first.pop();
        seen.unwrap_or(self)
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the hint "did you mean" if `word` is similar to a known word.
    #[must_use]
    pub fn near<'a>(mut self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        self.hint = meant(word, known).or(self.hint);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}: ")?;
        }
        write_in_one_line(f, &self.message)?;
        let Some(hint) = &self.hint else { return Ok(()) };
        f.write_str(" (")?;
        write_in_one_line(f, hint)?;
        f.write_str(")")
    }
}

/// Writes a text with its control characters escaped. Messages quote values of the file, and a
/// problem is one line.
fn write_in_one_line(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.chars().try_for_each(|c| if c.is_control() { write!(f, "{}", c.escape_default()) } else { f.write_char(c) })
}

impl std::error::Error for Problem {}

/// The maximum number of problems of a file that are kept.
const MOST: usize = 200;

/// All problems of a file: the first ones, and the number of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    first: Vec<Problem>,
    more: usize,
}

impl Problems {
    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        if self.first.len() < MOST {
            self.first.push(problem);
        } else {
            self.more += 1;
        }
    }

    /// Adds the problems of `other` that are not present yet.
    pub fn merge(&mut self, other: &Self) {
        let known: HashSet<&Problem> = self.first.iter().collect();
        let new: Vec<Problem> = other.first.iter().filter(|problem| !known.contains(problem)).cloned().collect();
        // If `other` has no new problems, its uncounted ones may be the same as ours.
        self.more = if new.is_empty() { self.more.max(other.more) } else { self.more + other.more };
        new.into_iter().for_each(|problem| self.push(problem));
    }

    /// Adds to each problem the line that contains it; `text` is the whole file.
    #[must_use]
    pub fn seen_in(self, text: &str) -> Self {
        self.seen_by(text, ProblemLine::at)
    }

    /// Adds the lines as [`Self::seen_in`] does, for a file that may contain secrets: of each line,
    /// only the keys are shown.
    #[must_use]
    pub fn seen_in_private(self, text: &str) -> Self {
        self.seen_by(text, |line, column| ProblemLine::at(&keys_alone(line), column))
    }

    fn seen_by(mut self, text: &str, see: impl Fn(&str, usize) -> ProblemLine) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines: Vec<&str> = if self.first.is_empty() { Vec::new() } else { text.lines().collect() };
        for problem in self.first.iter_mut().filter(|problem| problem.seen.is_none()) {
            problem.seen = problem.place.and_then(|place| {
                let line = lines.get(place.line.checked_sub(1)?)?;
                (!line.trim().is_empty()).then(|| see(line, place.column))
            });
        }
        self
    }

    /// Returns true if no problem exists.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Returns true if every problem is a refusal: nothing is wrong in form.
    pub fn are_refusals(&self) -> bool {
        self.more == 0 && self.first.iter().all(|problem| problem.is_refusal)
    }

    /// Returns the number of problems.
    pub fn len(&self) -> usize {
        self.first.len() + self.more
    }

    /// Returns all kept problems, sorted by place. The last one gives the number of the others.
    pub fn sorted(&self) -> Vec<Problem> {
        let mut all = self.first.clone();
        all.sort_by_key(|problem| problem.place);
        let more = || Problem::of_file(format!("and {} more", self.more));
        all.extend((self.more > 0).then(more));
        all
    }

    /// Formats one line for each problem, beginning with the name of the file: `task.md:4:7: …`.
    pub fn within(&self, file: &str) -> String {
        let line = |problem: &Problem| match problem.place {
            Some(_) => format!("{file}:{problem}"),
            None => format!("{file}: {problem}"),
        };
        self.sorted().iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self { first: vec![problem], more: 0 }
    }
}

/// Returns the nearest known word as a question: ``did you mean `verify`?``
pub fn meant<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|near| format!("did you mean `{near}`?"))
}

/// Returns the known word that is most similar to `word`, if one is similar enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 64 {
        return None; // no typing error has this length, and the distance below is quadratic
    }
    let word = snake(word);
    let far = (word.chars().count() / 3).max(1);
    let near = known.into_iter().map(|name| (strsim::osa_distance(&word, &snake(name)), name));
    near.filter(|(distance, _)| *distance <= far).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Turns `maxRetries` and `max-retries` into `max_retries`.
fn snake(word: &str) -> String {
    let (mut text, mut last) = (String::new(), ' ');
    for char in word.chars() {
        if char.is_uppercase() && last.is_lowercase() {
            text.push('_');
        }
        last = char;
        text.extend(if matches!(char, '-' | ' ') { '_' } else { char }.to_lowercase());
    }
    text
}

/// Shortens a value to one short line for a message.
pub(crate) fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(60).is_some() {
        short.push('…');
    }
    short
}

/// Lists names for a message: the first twenty, and the number of the others.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST_NAMES: usize = 20;
    let names: Vec<&str> = names.into_iter().collect();
    let shown: Vec<String> = names.iter().take(MOST_NAMES).map(|name| excerpt(name)).collect();
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
