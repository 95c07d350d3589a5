//! Errors of a command, with a hint and an exit code.

use super::error_text;
use super::paint::{self, Tone};
use crate::config::{ConfigError, ProjectConfig, Sourced};
use crate::driver::PlanError;
use crate::limits::MAX_SOURCE;
use crate::store;
use crate::task::{self, Task, TaskError};
use crate::verdict::{Reason, StopCause};
use crate::yaml::{FilePlace, Problem, Problems};
use std::borrow::Cow;
use std::error::Error;
use std::path::{Path, PathBuf};

/// Entries of a folder to search for a file with a similar name.
const MOST_ENTRIES: usize = 1000;

/// An error of a verb.
#[derive(Debug)]
pub(super) struct CliError {
    reason: Reason,
    error: anyhow::Error,
    hint: Option<Cow<'static, str>>,
    /// The source of the stop request, if that caused the failure.
    stopped_by: Option<StopCause>,
}

impl CliError {
    /// A failure by wrong input; nothing was run.
    pub(super) fn input(error: impl Into<anyhow::Error>) -> Self {
        Self::because(Reason::BadInput, error)
    }

    /// A failure to read or write fledge's own files.
    pub(super) fn own(error: impl Into<anyhow::Error>) -> Self {
        Self::because(Reason::IoError, error)
    }

    /// A failure with the exit code of the given reason.
    pub(super) fn because(reason: Reason, error: impl Into<anyhow::Error>) -> Self {
        Self { reason, error: error.into(), hint: None, stopped_by: None }
    }

    /// A failure to plan a run of this task. A second line of its message is the hint.
    pub(super) fn unplanned(fault: PlanError, task: &Task) -> Self {
        let value = fault.value.clone();
        let lines = fault.message.split_once('\n');
        let lines = lines.filter(|(_, hint)| fault.lane.is_none() && !hint.contains('\n'));
        let lines = lines.map(|(said, hint)| (said.to_owned(), hint.trim().to_owned()));
        let failure = match lines {
            Some((said, hint)) => Self::because(fault.reason, anyhow::anyhow!(said)).hint(hint),
            None => Self::because(fault.reason, fault),
        };
        match value {
            Some((key, value)) => failure.at_value(&task.source, key, &value),
            None => failure,
        }
    }

    /// Adds the place of the value of a key in a task's file, if the file has that value.
    pub(super) fn at_value(self, source: &str, key: &str, value: &str) -> Self {
        self.at_place(source, |text| task::place_of(text, key, value))
    }

    /// Adds a place in a file, if `find` finds it in the file's text.
    pub(super) fn at_place(self, source: &str, find: impl FnOnce(&str) -> Option<FilePlace>) -> Self {
        let text = store::read_text(Path::new(source), MAX_SOURCE).ok().flatten().unwrap_or_default();
        let message = self.message();
        let place = find(&text).filter(|_| !message.contains('\n')); // a problem is one line
        let Some(place) = place else { return self };
        let message = message.strip_prefix(&format!("{source}: ")).unwrap_or(&message);
        let problems = Problems::from(Problem::at(place, message)).seen_in(&text);
        Self { error: TaskError { file: source.to_owned(), problems }.into(), ..self }
    }

    /// Adds the place of the default model in its configuration file, if a file names it.
    pub(super) fn at_default_model(self, set: &ProjectConfig, workspace: &Path) -> Self {
        let Some(Sourced { value, origin }) = &set.default_model else { return self };
        let Some((file, line)) = origin.rsplit_once(':').filter(|(_, line)| line.parse::<usize>().is_ok()) else {
            return self;
        };
        let text = store::read_text(&workspace.join(file), MAX_SOURCE).ok().flatten().unwrap_or_default();
        let line: usize = line.parse().unwrap_or(1);
        let found = text.lines().nth(line.saturating_sub(1)).and_then(|line| Some(&line[..line.find(value)?]));
        let Some(before) = found else { return self };
        let place = FilePlace { line, column: before.chars().count() + 1 };
        let message = self.message().replace(&format!("the name comes from `default_model`, {origin}; or "), "");
        let problems = Problems::from(Problem::at(place, message)).seen_in_private(&text);
        Self { error: ConfigError::Invalid { file: file.to_owned(), problems }.into(), ..self }
    }

    /// A failure by a stop request.
    pub(super) fn stopped(by: StopCause, error: impl Into<anyhow::Error>) -> Self {
        Self { stopped_by: Some(by), ..Self::because(Reason::Cancelled, error) }
    }

    /// Turns the failure into one by a stop request.
    pub(super) fn stopped_by(self, by: StopCause) -> Self {
        Self { reason: Reason::Cancelled, stopped_by: Some(by), ..self }
    }

    /// Adds a hint.
    pub(super) fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint, if there is none.
    pub(super) fn or_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Adds the most similar known word as a hint, if there is one.
    pub(super) fn near<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match crate::yaml::meant(word, known) {
            Some(meant) => self.hint(meant),
            None => self,
        }
    }

    /// A missing file, with a similar name as a hint. `what` names the kind of file.
    pub(super) fn no_file(what: &str, path: &Path) -> Self {
        let failure = Self::input(anyhow::anyhow!("there is no {what} {}", path.display()));
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_ENTRIES);
        let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let wanted = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let stem = |name: &str| Path::new(name).file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
        let same = names.iter().find(|name| stem(name).is_some_and(|stem| stem == wanted)); // without its extension
        let near = same.map(String::as_str).or_else(|| crate::yaml::nearest(wanted, names.iter().map(String::as_str)));
        match near {
            Some(near) => failure.hint(format!("did you mean `{}`?", path.with_file_name(near).display())),
            None => match above(path).or_else(|| task_below(&folder.join("tasks")).filter(|_| what == "task file")) {
                Some(task) => failure.hint(format!("did you mean `{}`?", task.display())),
                None => failure,
            },
        }
    }

    /// Returns the error and its causes in one line.
    pub(super) fn message(&self) -> String {
        format!("{:#}", self.error)
    }

    /// Returns the error as one of several, prefixed with `what` unless it names a place in a file.
    pub(super) fn named(self, what: &str) -> anyhow::Error {
        if self.error.chain().any(|cause| error_text::draw_error(cause).is_some()) {
            return self.error;
        }
        let hint = self.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let message = self.message();
        let prefix = if message.starts_with(what) { String::new() } else { format!("{what}: ") };
        anyhow::anyhow!("{prefix}{message}{hint}")
    }

    /// Returns the error if it has type `E`, for a caller that can handle it.
    pub(super) fn cause<E: std::error::Error + Send + Sync + 'static>(&self) -> Option<&E> {
        self.error.downcast_ref()
    }

    /// Returns true if the error has type `E`.
    pub(super) fn is_cause<E: std::error::Error + Send + Sync + 'static>(&self) -> bool {
        self.cause::<E>().is_some()
    }

    /// Returns the exit code.
    pub(super) fn code(&self) -> u8 {
        self.reason.exit_code(self.stopped_by)
    }

    /// Returns the reason.
    pub(super) fn reason(&self) -> Reason {
        self.reason
    }

    /// Prints the failure on standard error; returns the exit code.
    pub(super) fn show(&self) -> u8 {
        let mut causes = self.error.chain();
        let lines = |cause: &(dyn Error + 'static)| {
            error_text::draw_error(cause).unwrap_or_else(|| vec![vec![(Tone::Plain, cause.to_string())]])
        };
        error_text::say((Tone::Bad, "error: "), causes.next().map(lines).unwrap_or_default());
        causes.for_each(|cause| error_text::say((Tone::Faint, "  because: "), lines(cause)));
        if let Some(hint) = &self.hint {
            paint::line(&[(Tone::Faint, "  hint: "), (Tone::Plain, hint)]);
        }
        self.code()
    }
}

/// Returns a file of this relative path in one of the folders above.
fn above(path: &Path) -> Option<PathBuf> {
    const MOST_LEVELS: usize = 4;
    let ups = (1..=MOST_LEVELS).map(|levels| (0..levels).map(|_| "..").collect::<PathBuf>());
    ups.map(|up| up.join(path)).find(|file| path.is_relative() && file.is_file())
}

/// Returns the only task in a folder; `None` if it has several or none.
fn task_below(folder: &Path) -> Option<PathBuf> {
    let paths = std::fs::read_dir(folder).ok()?.flatten().take(MOST_ENTRIES).map(|entry| entry.path());
    let mut tasks = paths.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    tasks
        .next()
        .filter(|_| tasks.next().is_none())
        .map(|task| task.strip_prefix(".").map_or(task.clone(), Path::to_owned))
}

/// Cuts an id to the length of what the user wrote.
pub(super) fn start_of<'i>(id: &'i str, written: &str) -> &'i str {
    id.get(..written.len()).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn a_failure_has_the_code_of_its_reason() {
        let failures = [
            CliError::input(anyhow!("no such task")).hint("write one"),
            CliError::own(anyhow!("disk full")),
            CliError::because(Reason::GateErrored, anyhow!("no such program").context("the gate cannot run")),
        ];
        assert_eq!(failures.map(|failure| failure.show()), [2, 8, 5]);
        assert_eq!(CliError::stopped(StopCause::Terminate, anyhow!("stopped")).show(), 143);
    }
}
