//! Any error at the front door: its words, a hint, and the exit code.

use super::drawing;
use super::paint::{self, Tone};
use crate::verdict::{Reason, StopCause};
use std::borrow::Cow;
use std::error::Error;
use std::path::{Path, PathBuf};

/// Entries of a folder among which a file is looked for that was most likely meant.
const MOST_ENTRIES: usize = 1000;

/// A verb that could not be done.
#[derive(Debug)]
pub(super) struct Failure {
    reason: Reason,
    error: anyhow::Error,
    hint: Option<Cow<'static, str>>,
    /// Who asked for a stop, where that is what it was.
    stopped_by: Option<StopCause>,
}

impl Failure {
    /// The input is wrong; nothing was run.
    pub(super) fn input(error: impl Into<anyhow::Error>) -> Self {
        Self::because(Reason::BadInput, error)
    }

    /// fledge could not read or write what is its own.
    pub(super) fn own(error: impl Into<anyhow::Error>) -> Self {
        Self::because(Reason::IoError, error)
    }

    /// With the code of another reason.
    pub(super) fn because(reason: Reason, error: impl Into<anyhow::Error>) -> Self {
        Self { reason, error: error.into(), hint: None, stopped_by: None }
    }

    /// Somebody asked for a stop.
    pub(super) fn stopped(by: StopCause, error: impl Into<anyhow::Error>) -> Self {
        Self { stopped_by: Some(by), ..Self::because(Reason::Cancelled, error) }
    }

    /// The same, since somebody asked for a stop.
    pub(super) fn stopped_by(self, by: StopCause) -> Self {
        Self { reason: Reason::Cancelled, stopped_by: Some(by), ..self }
    }

    /// With what to do about it.
    pub(super) fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With what was most likely meant, where something is near.
    pub(super) fn near<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match crate::yaml::meant(word, known) {
            Some(meant) => self.hint(meant),
            None => self,
        }
    }

    /// A file that is not there, with the one beside it that was most likely meant.
    pub(super) fn no_file(what: &str, path: &Path) -> Self {
        let failure = Self::input(anyhow::anyhow!("there is no {what} {}", path.display()));
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_ENTRIES);
        let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let wanted = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let stem = |name: &str| Path::new(name).file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
        let same = names.iter().find(|name| stem(name).is_some_and(|stem| stem == wanted)); // without its ending
        let near = same.map(String::as_str).or_else(|| crate::yaml::nearest(wanted, names.iter().map(String::as_str)));
        match near {
            Some(near) => failure.hint(format!("did you mean `{}`?", path.with_file_name(near).display())),
            None => match task_below(&folder.join("tasks")).filter(|_| what == "task file") {
                Some(task) => failure.hint(format!("is it `{}`?", task.display())),
                None => failure,
            },
        }
    }

    /// It and its causes, in one line.
    pub(super) fn message(&self) -> String {
        format!("{:#}", self.error)
    }

    /// It, as one of several failures: named for what it is about, unless it names a place in a file.
    pub(super) fn of(self, what: &str) -> anyhow::Error {
        if self.error.chain().any(|cause| drawing::of(cause).is_some()) {
            return self.error;
        }
        let hint = self.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        anyhow::anyhow!("{what}: {}{hint}", self.message())
    }

    /// What it was, for whoever has another way.
    pub(super) fn cause<E: std::error::Error + Send + Sync + 'static>(&self) -> Option<&E> {
        self.error.downcast_ref()
    }

    /// The exit code.
    pub(super) fn code(&self) -> u8 {
        self.reason.exit_code(self.stopped_by)
    }

    /// Why it was, in the words of the table.
    pub(super) fn reason(&self) -> Reason {
        self.reason
    }

    /// Says it on standard error, and gives the exit code.
    pub(super) fn show(&self) -> u8 {
        let mut causes = self.error.chain();
        let lines = |cause: &(dyn Error + 'static)| {
            drawing::of(cause).unwrap_or_else(|| vec![vec![(Tone::Plain, cause.to_string())]])
        };
        drawing::say((Tone::Bad, "error: "), causes.next().map(lines).unwrap_or_default());
        causes.for_each(|cause| drawing::say((Tone::Faint, "  because: "), lines(cause)));
        if let Some(hint) = &self.hint {
            paint::line(&[(Tone::Faint, "  hint: "), (Tone::Plain, hint)]);
        }
        self.code()
    }
}

/// The task of a folder, where there is exactly one.
fn task_below(folder: &Path) -> Option<PathBuf> {
    let paths = std::fs::read_dir(folder).ok()?.flatten().take(MOST_ENTRIES).map(|entry| entry.path());
    let mut tasks = paths.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    tasks
        .next()
        .filter(|_| tasks.next().is_none())
        .map(|task| task.strip_prefix(".").map_or(task.clone(), Path::to_owned))
}

/// As much of an id as somebody has written of one.
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
            Failure::input(anyhow!("no such task")).hint("write one"),
            Failure::own(anyhow!("disk full")),
            Failure::because(Reason::GateErrored, anyhow!("no such program").context("the gate cannot run")),
        ];
        assert_eq!(failures.map(|failure| failure.show()), [2, 8, 5]);
        assert_eq!(Failure::stopped(StopCause::Terminate, anyhow!("stopped")).show(), 143);
    }
}
