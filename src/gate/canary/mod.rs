//! Canaries: failing tests that fledge plants in an extra room to check a lane. If the lane does
//! not fail for them, it cannot see failures there and its pass proves nothing: the work has
//! silenced the tests. Pure: this module decides what to plant where, and another module runs it.

mod altered;
mod places;
mod sightings;
mod texts;

pub(super) use altered::{AlteredTests, altered_key};
pub(super) use places::PlantingPlaces;
pub(super) use sightings::{CanarySightings, SeenShare};

use super::logs::says_failure;
use super::names::has_name;
use crate::lane::CanaryTerms;
use crate::verdict::StepStatus;
use std::collections::BTreeMap;
use texts::{PlainFailure, PlantDraft, filled};

/// The placeholder in a project's own canary file for the word that its failure must print.
const MARK: &str = "{mark}";

/// A planted failing test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlantedTest {
    /// Identifies the test in every room: the imitated file of the base, the group's label and the
    /// form of assertion.
    pub(super) key: String,
    /// Identifies the tests that a runner runs together with this one.
    pub(super) group: String,
    /// The test's name; empty if it has none. A runner may also print the names of passing tests.
    name: String,
    /// A word that the failure prints. If it is empty, any failure counts.
    pub(super) mark: String,
    /// The step that must fail; `None` accepts any step.
    step: Option<String>,
    text: String,
    /// The name under which the runner reports a test of the base that is made to fail; `None` for
    /// an added test.
    altered: Option<String>,
}

/// A file with planted tests: a new file, or an existing one with tests added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlantedFile {
    pub(super) path: String,
    head: String,
    parts: Vec<Part>,
    tail: String,
    /// Tests in `head` and `tail` that are made to fail, each with the place of its statement: a
    /// byte in `head` followed by `tail`.
    altered: Vec<(usize, PlantedTest)>,
}

/// A group of planted tests with the text around it, such as a class declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    open: String,
    plants: Vec<PlantedTest>,
    close: &'static str,
}

impl PlantedTest {
    /// Returns whether this is a test of the base that is made to fail.
    pub(super) fn is_altered(&self) -> bool {
        self.altered.is_some()
    }

    /// Returns whether a runner's name of a test may be that of this one. Runners name files,
    /// classes and modules in different ways, so only the function of an altered test is compared.
    pub(super) fn is_named(&self, test: &str) -> bool {
        let mut parts = test.split([':', '.', '/', '>', '[', '(', ' ']);
        match self.altered {
            Some(_) => parts.any(|part| part == self.name),
            None => !self.name.is_empty() && test.to_lowercase().contains(&self.name.to_lowercase()),
        }
    }

    /// Returns whether the test needs nothing of the project.
    pub(super) fn is_plain(&self) -> bool {
        self.group.ends_with(&format!(": {}", texts::PLAIN))
    }
}

impl PlantedFile {
    /// Returns the planted tests of the file.
    pub(super) fn plants(&self) -> impl Iterator<Item = &PlantedTest> {
        self.parts.iter().flat_map(|part| &part.plants).chain(self.altered.iter().map(|(_, plant)| plant))
    }

    /// Returns the file's content with the tests that `is_planted` selects; `None` if it selects
    /// none.
    pub(super) fn text(&self, is_planted: impl Fn(&PlantedTest) -> bool) -> Option<String> {
        let altered: Vec<_> = self.altered.iter().filter(|(_, plant)| is_planted(plant)).collect();
        let end = if self.tail.is_empty() { usize::MAX } else { self.head.len() };
        let (in_head, in_tail): (Vec<_>, Vec<_>) = altered.into_iter().partition(|(at, _)| *at < end);
        let mut is_one = !in_head.is_empty() || !in_tail.is_empty();
        let mut text = with_statements(&self.head, 0, &in_head);
        text.truncate(text.trim_end().len());
        for part in &self.parts {
            let plants: Vec<&str> =
                part.plants.iter().filter(|plant| is_planted(plant)).map(|plant| plant.text.as_str()).collect();
            if !plants.is_empty() {
                let gap = if text.is_empty() { "" } else { "\n\n" };
                text += &format!("{gap}{}{}{}", part.open, plants.join("\n"), part.close);
                is_one = true;
            }
        }
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        is_one.then(|| format!("{text}{gap}{}", with_statements(&self.tail, self.head.len(), &in_tail)))
    }

    /// Fills the placeholders of a draft with words from `word`. `joined` is the expression that
    /// joins the two halves of a mark in the language. If `is_plain`, the draft's plain text
    /// replaces its head and tests; the result is `None` if it has no plain text.
    fn from_draft(draft: &PlantDraft, joined: &str, is_plain: bool, word: &mut impl FnMut() -> String) -> Option<Self> {
        let file = word();
        let PlantDraft { like, path, tail, plain, .. } = draft;
        let (head, groups) = match plain {
            Some(PlainFailure { head, group }) if is_plain => (head.clone(), vec![group.clone()]),
            _ if is_plain => return None,
            _ => (draft.head.clone(), draft.groups.clone()),
        };
        // Some runners name only the failed file. The file name proves a failure of the test only
        // if the file has no head and no other test.
        let is_alone = !is_plain && head.is_empty() && groups.iter().map(|group| group.tests.len()).sum::<usize>() == 1;
        let mut parts = Vec::new();
        for texts::PlantGroup { label, open, close, tests } in groups {
            let group = format!("{like}: {label}");
            let plant = |(form, text): (String, String)| {
                let (name, mark) = (if is_alone { file.clone() } else { word() }, word());
                let (half, rest) = mark.split_at(mark.len() / 2);
                let joined = joined.replace("{half}", half).replace("{rest}", rest);
                let text = text.replace("\"{mark}\"", &joined);
                let (key, text) = (format!("{group}: {form}"), filled(&text, &file, &name, &mark));
                PlantedTest { key, group: group.clone(), name, mark, step: None, text, altered: None }
            };
            let plants = tests.into_iter().map(plant).collect();
            parts.push(Part { open: filled(&open, &file, "", ""), plants, close });
        }
        Some(Self { path: filled(path, &file, "", ""), head, parts, tail: tail.clone(), altered: Vec::new() })
    }
}

/// Returns a text with the statements of tests that are made to fail. The text begins at byte
/// `start` of the file.
fn with_statements(text: &str, start: usize, altered: &[&(usize, PlantedTest)]) -> String {
    let (mut whole, mut done) = (String::new(), 0);
    for (at, plant) in altered {
        let at = (at - start).min(text.len());
        whole.push_str(&text[done..at]);
        whole.push_str(&plant.text);
        done = at;
    }
    whole + &text[done..]
}

/// The failing tests of a canary, in levels. The first level needs most of the project. If a lane
/// fails for another reason and sees no test of a level, fledge plants the next one. Levels are
/// never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlantedTests {
    /// The first level holds tests of the base that are made to fail, if there are any, and tests
    /// that imitate those of the base. The next level holds only the latter. The last level holds
    /// failing tests that need nothing of the project. The other levels copy text from project
    /// files, and a project may reject duplicate or unused text.
    pub(super) levels: Vec<Vec<PlantedFile>>,
}

impl PlantedTests {
    /// Builds the levels. `within` holds tests inside existing files; `drafts` also holds tests in
    /// new files.
    fn from_drafts(
        within: &[PlantDraft],
        drafts: &[PlantDraft],
        canary: &CanaryTerms,
        mut word: impl FnMut() -> String,
    ) -> Self {
        let joined = joined(canary);
        let mut of = |drafts: &[PlantDraft], is_plain| -> Vec<PlantedFile> {
            drafts.iter().filter_map(|it| PlantedFile::from_draft(it, joined, is_plain, &mut word)).collect()
        };
        let alone = |draft: &PlantDraft| {
            let groups = draft.groups.iter().cloned();
            let groups = groups.map(|group| texts::PlantGroup { label: format!("{} alone", group.label), ..group });
            PlantDraft { groups: groups.collect(), ..draft.clone() }
        };
        let mut levels = vec![of(drafts, false)];
        if !within.is_empty() {
            levels[0].extend(of(within, false));
            levels.push(of(&drafts.iter().map(alone).collect::<Vec<_>>(), false));
        }
        levels.push(of(drafts, true));
        Self { levels: levels.into_iter().filter(|level| !level.is_empty()).collect() }
    }
}

/// Returns the expression that joins a mark from two halves in a test's source. Linters and
/// formatters print source lines, so the source must not contain the whole mark.
fn joined(canary: &CanaryTerms) -> &'static str {
    match canary {
        CanaryTerms::Pytest | CanaryTerms::GoTest => r#""{half}" + "{rest}""#,
        CanaryTerms::NodeTest | CanaryTerms::Jest => r#"["{half}", "{rest}"].join("")"#,
        CanaryTerms::CargoTest => r#"::std::concat!("{half}", "{rest}")"#,
        CanaryTerms::Junit => r#""{half}".concat("{rest}")"#,
        CanaryTerms::CppTest => r#""{half}" "{rest}""#,
        CanaryTerms::Auto | CanaryTerms::None | CanaryTerms::File { .. } => "",
    }
}

/// Builds the tests to plant for a canary in `places`. `word` returns random lower-case words that
/// code cannot know in advance. `texts` holds the files that `places` names, by path. A folder is
/// skipped if it names files and `texts` has none of them. `altered` holds the tests of the base
/// that are made to fail. `has` returns whether the work has a
/// file.
///
/// # Errors
/// The reason, if the base has no place for the canary.
pub(super) fn plant(
    canary: &CanaryTerms,
    places: &PlantingPlaces,
    mut word: impl FnMut() -> String,
    texts: &BTreeMap<String, String>,
    altered: &AlteredTests,
    has: impl Fn(&str) -> bool,
) -> Result<PlantedTests, String> {
    if let CanaryTerms::File { file, text, run } = canary {
        return Ok(PlantedTests { levels: vec![vec![own_bed(file, text, run.as_ref(), word())]] });
    }
    let (mut within, mut drafts): (Vec<PlantDraft>, Vec<PlantDraft>) = (Vec::new(), Vec::new());
    for (folder, names) in &places.folders {
        let known = |path: &String| texts.get_key_value(path).map(|(path, text)| (path.as_str(), text.as_str()));
        let likes: Vec<(&str, &str)> = names.iter().filter_map(known).collect();
        if likes.is_empty() && !names.is_empty() {
            continue;
        }
        match canary {
            CanaryTerms::Pytest => drafts.extend(texts::pytest(folder, &likes)),
            CanaryTerms::NodeTest if likes.is_empty() => drafts.push(texts::node(folder, "test.mjs", "")),
            CanaryTerms::NodeTest => drafts.extend(likes.iter().map(|(path, text)| texts::node(folder, path, text))),
            CanaryTerms::Jest if likes.is_empty() => drafts.push(texts::jest(folder, "test.js", "")),
            CanaryTerms::Jest => drafts.extend(likes.iter().map(|(path, text)| texts::jest(folder, path, text))),
            CanaryTerms::CargoTest => {
                let units = places.units.iter().filter(|unit| unit.starts_with(folder.as_str()));
                let units = units.filter_map(|unit| texts::unit(unit, texts.get(unit)?)).count();
                let manifest = likes.first().map_or("", |(_, text)| text);
                let is_package = manifest.lines().any(|line| line.trim() == "[package]");
                if is_package && (likes.len() > 1 || units == 0) {
                    let library = texts::library(manifest, has(&format!("{folder}src/lib.rs")));
                    drafts.push(texts::integration(folder, &library, &likes[1..]));
                }
            }
            CanaryTerms::GoTest => {
                let go = texts::go(folder, &likes);
                drafts.extend(go.ok_or_else(|| format!("no file of `{folder}` has a package clause"))?);
            }
            CanaryTerms::Junit => {
                within.extend(likes.iter().filter_map(|(path, text)| texts::in_class(path, text)));
                drafts.push(texts::junit(folder, &likes));
            }
            CanaryTerms::CppTest => drafts.extend(likes.iter().filter_map(|(path, text)| texts::cpp(path, text))),
            CanaryTerms::Auto | CanaryTerms::None | CanaryTerms::File { .. } => {}
        }
    }
    drafts.extend(places.units.iter().filter_map(|unit| texts::unit(unit, texts.get(unit)?)));
    let lacks = match canary {
        _ if !drafts.is_empty() => {
            let planted = PlantedTests::from_drafts(&within, &drafts, canary, &mut word);
            return Ok(planted.with_altered(altered, texts, joined(canary), word));
        }
        CanaryTerms::CargoTest => "a Cargo.toml with a package",
        CanaryTerms::GoTest => "a Go file",
        CanaryTerms::Junit => "a JUnit or TestNG test class",
        _ => "a test file for GoogleTest, Catch2 or doctest",
    };
    Err(format!("the base does not have {lacks}"))
}

/// Builds the canary file that a project provides itself.
fn own_bed(file: &str, text: &str, run: Option<&String>, mark: String) -> PlantedFile {
    let planted = text.replace(MARK, &mark);
    let mark = if text.contains(MARK) { mark } else { String::new() };
    let key = file.to_owned();
    let (name, step) = (String::new(), run.cloned());
    let plant = PlantedTest { group: key.clone(), key, text: planted, name, mark, step, altered: None };
    let part = Part { open: String::new(), plants: vec![plant], close: "" };
    let (head, tail) = (String::new(), String::new());
    PlantedFile { path: file.into(), head, parts: vec![part], tail, altered: Vec::new() }
}

/// Returns whether a lane's output can distinguish a planted failure from other failures.
pub(super) fn is_distinct(canary: &CanaryTerms) -> bool {
    !matches!(canary, CanaryTerms::File { text, .. } if !text.contains(MARK))
}

/// Returns whether a step has seen a planted failure. `names_it` returns whether the step's output
/// shows that this test failed; it is called only for failed steps.
pub(super) fn is_seen(plant: &PlantedTest, step: &str, status: StepStatus, names_it: impl FnOnce() -> bool) -> bool {
    let is_asked = plant.step.as_deref().is_none_or(|asked| asked == step);
    is_asked && matches!(status, StepStatus::Failed | StepStatus::TimedOut) && (plant.mark.is_empty() || names_it())
}

/// Returns whether a line of output reports this test as failed. Some runners print the names of
/// failed tests without their messages.
///
/// For a test of the base that is made to fail, the line must have the whole name. On the base
/// (`is_base`) the last part is enough, because nothing there silences tests.
pub(super) fn says_failed(line: &str, plant: &PlantedTest, is_base: bool) -> bool {
    const SIGNS: [&str; 8] = ["FAIL", "ERROR", "error", "not ok", "✖", "✗", "-->", " panicked at "];
    if let Some(whole) = &plant.altered {
        let name = if is_base { &plant.name } else { whole };
        return says_failure(line) && has_name(line, name);
    }
    let lower = line.to_lowercase();
    let names_it =
        !plant.name.is_empty() && lower.match_indices(&plant.name).any(|(at, it)| !is_place(&lower[at + it.len()..]));
    names_it && SIGNS.iter().any(|sign| line.contains(sign))
}

/// Returns whether a name is part of a file name with a line number, as linters and compilers print
/// it. `rest` is the text after the name.
fn is_place(rest: &str) -> bool {
    let ending = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '.' && letter != '_').next();
    let behind = &rest[ending.map_or(0, str::len)..];
    let has_line =
        behind.strip_prefix([':', '(']).is_some_and(|line| line.starts_with(|digit: char| digit.is_ascii_digit()));
    has_line && ending.is_some_and(|ending| ending.contains('.'))
}

#[cfg(test)]
mod tests;
