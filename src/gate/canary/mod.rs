//! Canaries: failing tests that fledge plants in an extra room to check a lane. If the lane does
//! not fail for them, it cannot see failures there and its pass proves nothing: the work has
//! silenced the tests. Pure: this module decides what to plant where, and another module runs it.

mod places;
mod sight;
mod texts;

pub(super) use places::Places;
pub(super) use sight::{Seen, Sight};

use crate::lane::Canary;
use crate::verdict::StepStatus;
use std::collections::BTreeMap;
use texts::{Draft, Plain, filled};

/// The placeholder in a project's own canary file for the word that its failure must print.
const MARK: &str = "{mark}";

/// A planted failing test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plant {
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
}

/// A file with planted tests: a new file, or an existing one with tests added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bed {
    pub(super) path: String,
    head: String,
    parts: Vec<Part>,
    tail: String,
}

/// A group of planted tests with the text around it, such as a class declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    open: String,
    plants: Vec<Plant>,
    close: &'static str,
}

impl Bed {
    /// Returns the planted tests of the file.
    pub(super) fn plants(&self) -> impl Iterator<Item = &Plant> {
        self.parts.iter().flat_map(|part| &part.plants)
    }

    /// Returns the file's content with the tests that `is_planted` selects; `None` if it selects
    /// none.
    pub(super) fn text(&self, is_planted: impl Fn(&Plant) -> bool) -> Option<String> {
        let (mut text, mut is_one) = (self.head.trim_end().to_owned(), false);
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
        is_one.then(|| format!("{text}{gap}{}", self.tail))
    }

    /// Fills the placeholders of a draft with words from `word`. `joined` is the expression that
    /// joins the two halves of a mark in the language. If `is_plain`, the draft's plain text
    /// replaces its head and tests; the result is `None` if it has no plain text.
    fn of(draft: &Draft, joined: &str, is_plain: bool, word: &mut impl FnMut() -> String) -> Option<Self> {
        let file = word();
        let Draft { like, path, tail, plain, .. } = draft;
        let (head, groups) = match plain {
            Some(Plain { head, group }) if is_plain => (head.clone(), vec![group.clone()]),
            _ if is_plain => return None,
            _ => (draft.head.clone(), draft.groups.clone()),
        };
        // Some runners name only the failed file. The file name proves a failure of the test only
        // if the file has no head and no other test.
        let is_alone = !is_plain && head.is_empty() && groups.iter().map(|group| group.tests.len()).sum::<usize>() == 1;
        let mut parts = Vec::new();
        for texts::Group { label, open, close, tests } in groups {
            let group = format!("{like}: {label}");
            let plant = |(form, text): (String, String)| {
                let (name, mark) = (if is_alone { file.clone() } else { word() }, word());
                let (half, rest) = mark.split_at(mark.len() / 2);
                let joined = joined.replace("{half}", half).replace("{rest}", rest);
                let text = text.replace("\"{mark}\"", &joined);
                let (key, text) = (format!("{group}: {form}"), filled(&text, &file, &name, &mark));
                Plant { key, group: group.clone(), name, mark, step: None, text }
            };
            let plants = tests.into_iter().map(plant).collect();
            parts.push(Part { open: filled(&open, &file, "", ""), plants, close });
        }
        Some(Self { path: filled(path, &file, "", ""), head, parts, tail: tail.clone() })
    }
}

/// The failing tests of a canary, in levels. The first level needs most of the project. If a lane
/// fails for another reason and sees no test of a level, fledge plants the next one. Levels are
/// never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Planted {
    /// The first level holds tests that imitate those of the base. The last level holds failing
    /// tests that need nothing of the project. The other levels copy text from project files, and a
    /// project may reject duplicate or unused text.
    pub(super) levels: Vec<Vec<Bed>>,
}

impl Planted {
    /// Builds the levels. `within` holds tests inside existing files; `drafts` also holds tests in
    /// new files.
    fn of(within: &[Draft], drafts: &[Draft], canary: &Canary, mut word: impl FnMut() -> String) -> Self {
        let joined = joined(canary);
        let mut of = |drafts: &[Draft], is_plain| -> Vec<Bed> {
            drafts.iter().filter_map(|it| Bed::of(it, joined, is_plain, &mut word)).collect()
        };
        let alone = |draft: &Draft| {
            let groups = draft.groups.iter().cloned();
            let groups = groups.map(|group| texts::Group { label: format!("{} alone", group.label), ..group });
            Draft { groups: groups.collect(), ..draft.clone() }
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
fn joined(canary: &Canary) -> &'static str {
    match canary {
        Canary::Pytest | Canary::GoTest => r#""{half}" + "{rest}""#,
        Canary::NodeTest | Canary::Jest => r#"["{half}", "{rest}"].join("")"#,
        Canary::CargoTest => r#"::std::concat!("{half}", "{rest}")"#,
        Canary::Junit => r#""{half}".concat("{rest}")"#,
        Canary::CppTest => r#""{half}" "{rest}""#,
        Canary::File { .. } => "",
    }
}

/// Builds the tests to plant for a canary in `places`. `word` returns random lower-case words that
/// code cannot know in advance. `texts` holds the files that `places` names, by path. A folder is
/// skipped if it names files and `texts` has none of them. `has` returns whether the work has a
/// file.
///
/// # Errors
/// The reason, if the base has no place for the canary.
pub(super) fn plant(
    canary: &Canary,
    places: &Places,
    mut word: impl FnMut() -> String,
    texts: &BTreeMap<String, String>,
    has: impl Fn(&str) -> bool,
) -> Result<Planted, String> {
    if let Canary::File { file, text, run } = canary {
        return Ok(Planted { levels: vec![vec![own_bed(file, text, run.as_ref(), word())]] });
    }
    let (mut within, mut drafts): (Vec<Draft>, Vec<Draft>) = (Vec::new(), Vec::new());
    for (folder, names) in &places.folders {
        let known = |path: &String| texts.get_key_value(path).map(|(path, text)| (path.as_str(), text.as_str()));
        let likes: Vec<(&str, &str)> = names.iter().filter_map(known).collect();
        if likes.is_empty() && !names.is_empty() {
            continue;
        }
        match canary {
            Canary::Pytest => drafts.extend(texts::pytest(folder, &likes)),
            Canary::NodeTest if likes.is_empty() => drafts.push(texts::node(folder, "test.mjs", "")),
            Canary::NodeTest => drafts.extend(likes.iter().map(|(path, text)| texts::node(folder, path, text))),
            Canary::Jest if likes.is_empty() => drafts.push(texts::jest(folder, "test.js", "")),
            Canary::Jest => drafts.extend(likes.iter().map(|(path, text)| texts::jest(folder, path, text))),
            Canary::CargoTest => {
                let units = places.units.iter().filter(|unit| unit.starts_with(folder.as_str()));
                let units = units.filter_map(|unit| texts::unit(unit, texts.get(unit)?)).count();
                let manifest = likes.first().map_or("", |(_, text)| text);
                let is_package = manifest.lines().any(|line| line.trim() == "[package]");
                if is_package && (likes.len() > 1 || units == 0) {
                    let library = texts::library(manifest, has(&format!("{folder}src/lib.rs")));
                    drafts.push(texts::integration(folder, &library, &likes[1..]));
                }
            }
            Canary::GoTest => {
                let go = texts::go(folder, &likes);
                drafts.extend(go.ok_or_else(|| format!("no file of `{folder}` has a package clause"))?);
            }
            Canary::Junit => {
                within.extend(likes.iter().filter_map(|(path, text)| texts::in_class(path, text)));
                drafts.push(texts::junit(folder, &likes));
            }
            Canary::CppTest => drafts.extend(likes.iter().filter_map(|(path, text)| texts::cpp(path, text))),
            Canary::File { .. } => {}
        }
    }
    drafts.extend(places.units.iter().filter_map(|unit| texts::unit(unit, texts.get(unit)?)));
    let lacks = match canary {
        _ if !drafts.is_empty() => return Ok(Planted::of(&within, &drafts, canary, word)),
        Canary::CargoTest => "a Cargo.toml with a package",
        Canary::GoTest => "a Go file",
        Canary::Junit => "a JUnit or TestNG test class",
        _ => "a test file for GoogleTest, Catch2 or doctest",
    };
    Err(format!("the base does not have {lacks}"))
}

/// Builds the canary file that a project provides itself.
fn own_bed(file: &str, text: &str, run: Option<&String>, mark: String) -> Bed {
    let planted = text.replace(MARK, &mark);
    let mark = if text.contains(MARK) { mark } else { String::new() };
    let key = file.to_owned();
    let plant = Plant { group: key.clone(), key, text: planted, name: String::new(), mark, step: run.cloned() };
    let part = Part { open: String::new(), plants: vec![plant], close: "" };
    Bed { path: file.into(), head: String::new(), parts: vec![part], tail: String::new() }
}

/// Returns whether a lane's output can distinguish a planted failure from other failures.
pub(super) fn has_name(canary: &Canary) -> bool {
    !matches!(canary, Canary::File { text, .. } if !text.contains(MARK))
}

/// Returns whether a step has seen a planted failure. `names_it` returns whether the step's output
/// shows that this test failed; it is called only for failed steps.
pub(super) fn is_seen(plant: &Plant, step: &str, status: StepStatus, names_it: impl FnOnce() -> bool) -> bool {
    let is_asked = plant.step.as_deref().is_none_or(|asked| asked == step);
    is_asked && matches!(status, StepStatus::Failed | StepStatus::TimedOut) && (plant.mark.is_empty() || names_it())
}

/// Returns whether a line of output reports this test as failed. Some runners print the names of
/// failed tests without their messages.
pub(super) fn says_failed(line: &str, plant: &Plant) -> bool {
    const SIGNS: [&str; 8] = ["FAIL", "ERROR", "error", "not ok", "✖", "✗", "-->", " panicked at "];
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
