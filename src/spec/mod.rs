//! Specs: the promises of a project's modules, for people and for the model. This module reads no
//! files: [`parse`] reads a spec from text, and a [`SpecCheck`] receives the project's files.

mod body;
mod check;
mod coverage;
mod depends;
mod file;
mod law;

pub use check::{Severity, SpecCheck, SpecFinding};
pub use file::parse;

use crate::task::SpecChoice;
use crate::yaml::{Problems, nearest};
use globset::GlobBuilder;
use std::collections::BTreeSet;

/// The spec of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The module's name.
    pub module: String,
    /// The spec's version, as written.
    pub version: String,
    /// The status as written, such as `draft` or `active`; empty if missing.
    pub status: String,
    /// The module's source files, as paths or globs.
    pub files: Vec<String>,
    /// Specs of other modules, by name or path.
    pub depends_on: Vec<String>,
    /// The path of the spec in the workspace.
    pub path: String,
    /// The Markdown below the front matter.
    pub body: String,
    /// The first paragraph of the section Purpose, on one line; empty if missing.
    pub purpose: String,
}

/// The reason why a spec is missing or invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// A spec file is invalid. The message has one line per problem, with file and place.
    #[error("{}", .problems.within(.file))]
    Invalid {
        /// The file, as the caller named it.
        file: String,
        /// The problems in the file.
        problems: Problems,
    },
    /// A task asks for a module without a spec.
    #[error("no spec for the module `{module}` ({hint})")]
    Unknown {
        /// The module, as the task names it.
        module: String,
        /// The modules that have a spec, or a similar name.
        hint: String,
    },
}

/// Lists the names and purposes of modules, one module per line.
pub fn index(specs: &[Spec]) -> String {
    let line = |spec: &Spec| match spec.purpose.as_str() {
        "" => format!("- {} ({})\n", spec.module, spec.path),
        purpose => format!("- {} ({}): {purpose}\n", spec.module, spec.path),
    };
    specs.iter().map(line).collect()
}

/// Selects the specs that a task receives in full. For the choice `auto`, `mentioned` decides: the
/// paths and globs in the text of the task (see [`paths_in`]), its `files` and its `context`.
///
/// # Errors
/// [`SpecError::Unknown`] if the choice names a module without a spec.
pub fn select<'a>(specs: &'a [Spec], choice: &SpecChoice, mentioned: &[String]) -> Result<Vec<&'a Spec>, SpecError> {
    match choice {
        SpecChoice::None => Ok(Vec::new()),
        SpecChoice::All => Ok(specs.iter().collect()),
        SpecChoice::Auto => {
            let touched = |spec: &&Spec| spec.files.iter().any(|file| mentioned.iter().any(|path| touches(path, file)));
            Ok(specs.iter().filter(touched).collect())
        }
        SpecChoice::Modules(names) => names.iter().map(|name| find(specs, name)).collect(),
    }
}

fn find<'a>(specs: &'a [Spec], name: &str) -> Result<&'a Spec, SpecError> {
    specs.iter().find(|spec| spec.module == name).ok_or_else(|| {
        let names: Vec<&str> = specs.iter().map(|spec| spec.module.as_str()).collect();
        let hint = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "the project has no specs".into(),
            None => format!("known: {}", names.join(", ")),
        };
        SpecError::Unknown { module: name.into(), hint }
    })
}

/// Returns whether a path or glob in a task and one in a spec can mean the same file.
fn touches(mention: &str, file: &str) -> bool {
    let below = |folder: &str, path: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let bare = !mention.contains('/') && file.rsplit('/').next() == Some(mention);
    bare || mention == file
        || below(mention, file)
        || below(file, mention)
        || matches(file, mention)
        || matches(mention, file)
}

fn matches(glob: &str, path: &str) -> bool {
    GlobBuilder::new(glob).literal_separator(true).build().is_ok_and(|glob| glob.compile_matcher().is_match(path))
}

/// Returns the words of a text that look like paths in the workspace, in order and without
/// duplicates. Such words contain a `/` or end like a file name.
pub fn paths_in(text: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let split = |c: char| c.is_whitespace() || "`'\"()[]{}<>,;|=".contains(c);
    text.split(split).filter_map(path).filter(|path| seen.insert(path.clone())).collect()
}

fn path(word: &str) -> Option<String> {
    let word = word.split(['#', ':']).next().unwrap_or(word); // `src/a.rs:12:5`, `src/a.rs#L12`
    let word = word.trim_start_matches('*').trim_start_matches("./").trim_end_matches(['.', '?', '!', '*', '_', '/']);
    let inside =
        !word.starts_with(['/', '~', '-', '@']) && word.split('/').all(|part| !part.is_empty() && part != "..");
    let plain = word.len() <= 256 && word.chars().all(|c| c.is_alphanumeric() || "._-+/*@".contains(c));
    let ending = |(stem, ending): (&str, &str)| {
        let short = (1..=8).contains(&ending.len()) && ending.starts_with(|c: char| c.is_ascii_alphabetic());
        stem.chars().count() > 1 && short && ending.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let named = word.contains('/') || word.rsplit_once('.').is_some_and(ending);
    (inside && plain && named).then(|| word.to_owned())
}

#[cfg(test)]
mod tests;
