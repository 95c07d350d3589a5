//! What is wrong with a text that a person wrote, and where: messages that name the thing and say what to do.

use super::seen::{Seen, keys_alone};
use std::collections::HashSet;
use std::fmt::{self, Write as _};

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One thing that is wrong. Shown as ``4:7: unknown key `tiemout` (did you mean `timeout`?)``.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Where; `None` when it is about the whole file.
    pub place: Option<Place>,
    /// What was expected and what was found.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// The line that it is in, where the text was at hand.
    pub seen: Option<Seen>,
    /// The parameter of a task that it is about, by its name.
    pub about: Option<String>,
    /// True if the form is right, but the author of this file may not say it.
    pub is_refusal: bool,
}

impl Problem {
    /// A problem at a place.
    pub fn at(place: Place, message: impl Into<String>) -> Self {
        Self { place: Some(place), ..Self::of_file(message) }
    }

    /// A problem of a whole file.
    pub fn of_file(message: impl Into<String>) -> Self {
        Self { place: None, message: message.into(), hint: None, seen: None, about: None, is_refusal: false }
    }

    /// Returns the problem as one of a parameter of a task.
    #[must_use]
    pub fn about(self, name: &str) -> Self {
        Self { about: Some(name.to_owned()), ..self }
    }

    /// Marks it as right in form, but not allowed to the author of this file.
    #[must_use]
    pub fn refusal(self) -> Self {
        Self { is_refusal: true, ..self }
    }

    /// The same with the line that it is in: `text` is the whole file.
    #[must_use]
    pub fn seen_in(self, text: &str) -> Self {
        let seen = Problems::from(self.clone()).seen_in(text).first.pop();
        seen.unwrap_or(self)
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same, with "did you mean" where one of the known words is near.
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

/// Writes a text with its control characters escaped: texts quote values of the file, and a problem
/// is one line.
fn write_in_one_line(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.chars().try_for_each(|c| if c.is_control() { write!(f, "{}", c.escape_default()) } else { f.write_char(c) })
}

impl std::error::Error for Problem {}

/// The most problems of one file that are kept.
const MOST: usize = 200;

/// Everything that is wrong with one file: the first problems, and how many more there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    first: Vec<Problem>,
    more: usize,
}

impl Problems {
    /// Adds one.
    pub fn push(&mut self, problem: Problem) {
        if self.first.len() < MOST {
            self.first.push(problem);
        } else {
            self.more += 1;
        }
    }

    /// Adds those of another that are not there yet.
    pub fn merge(&mut self, other: &Self) {
        let known: HashSet<&Problem> = self.first.iter().collect();
        let new: Vec<Problem> = other.first.iter().filter(|problem| !known.contains(problem)).cloned().collect();
        // The same ones again have no more than are known of.
        self.more = if new.is_empty() { self.more.max(other.more) } else { self.more + other.more };
        new.into_iter().for_each(|problem| self.push(problem));
    }

    /// With the line that each is in: `text` is the whole file.
    #[must_use]
    pub fn seen_in(self, text: &str) -> Self {
        self.seen_by(text, Seen::at)
    }

    /// The same for a file that may hold secrets: of its lines only the keys are shown.
    #[must_use]
    pub fn seen_in_private(self, text: &str) -> Self {
        self.seen_by(text, |line, column| Seen::at(&keys_alone(line), column))
    }

    fn seen_by(mut self, text: &str, see: impl Fn(&str, usize) -> Seen) -> Self {
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

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Returns true if nothing is wrong in form.
    pub fn are_refusals(&self) -> bool {
        self.more == 0 && self.first.iter().all(|problem| problem.is_refusal)
    }

    /// How many things are wrong.
    pub fn len(&self) -> usize {
        self.first.len() + self.more
    }

    /// All that are kept, by place, and last how many more there are.
    pub fn sorted(&self) -> Vec<Problem> {
        let mut all = self.first.clone();
        all.sort_by_key(|problem| problem.place);
        let more = || Problem::of_file(format!("and {} more", self.more));
        all.extend((self.more > 0).then(more));
        all
    }

    /// One line a problem, each beginning with the file's name: `task.md:4:7: …`.
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

/// The same as a question: ``did you mean `verify`?``
pub fn meant<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|near| format!("did you mean `{near}`?"))
}

/// The known word that somebody who wrote `word` most likely meant, if one is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 64 {
        return None; // nobody misspells a name at this length, and the distance below is quadratic
    }
    let word = snake(word);
    let far = (word.chars().count() / 3).max(1);
    let near = known.into_iter().map(|name| (strsim::osa_distance(&word, &snake(name)), name));
    near.filter(|(distance, _)| *distance <= far).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// `maxRetries` and `max-retries` as `max_retries`.
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

/// A value short enough for a message, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(60).is_some() {
        short.push('…');
    }
    short
}

/// Names for a message: the first twenty, and how many more there are.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST_NAMES: usize = 20;
    let names: Vec<&str> = names.into_iter().collect();
    let shown: Vec<String> = names.iter().take(MOST_NAMES).map(|name| excerpt(name)).collect();
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
