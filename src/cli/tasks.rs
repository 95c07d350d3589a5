//! Tasks as they are given on the command line: the text, the parameters, and the template that is
//! no task yet.

use super::failure::CliError;
use crate::limits::MAX_SOURCE;
use crate::store;
use crate::task::{self, ParamValues, TaskError};
use crate::yaml::{FilePlace, Problem, Problems};
use anyhow::{Context, anyhow};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The text of the task, as a template.
pub(super) const TASK_TEXT: [&str; 2] = [
    "# State the task in one line",
    "Then describe what is wrong or missing, where to look, and how to check the result.",
];

/// Checks that the text of `--prompt` is not empty.
///
/// # Errors
/// When the text has no words.
pub(super) fn must_say_something(prompt: Option<&str>) -> Result<(), CliError> {
    match prompt {
        Some(text) if text.trim().is_empty() => Err(CliError::input(anyhow!("--prompt: the text is empty"))),
        _ => Ok(()),
    }
}

pub(super) fn read_source(source: &str) -> Result<String, CliError> {
    if source != "-" {
        let read = store::read_text(Path::new(source), MAX_SOURCE).map_err(CliError::input)?;
        return read.ok_or_else(|| CliError::no_file("task file", Path::new(source)));
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_SOURCE as u64 + 1).read_to_end(&mut bytes);
    read.context("cannot read the task from standard input").map_err(CliError::input)?;
    if bytes.len() > MAX_SOURCE {
        return Err(CliError::input(anyhow!("the task on standard input is larger than {MAX_SOURCE} bytes")));
    }
    String::from_utf8(bytes).context("the task on standard input is not UTF-8").map_err(CliError::input)
}

/// Returns the values of parameters. Flags override the file.
pub(super) fn values(params: Option<&Path>, param: &[String]) -> Result<ParamValues, CliError> {
    let mut values = ParamValues::new();
    if let Some(path) = params {
        let text = store::read_text(path, MAX_SOURCE).map_err(CliError::input)?;
        let text = text.ok_or_else(|| CliError::no_file("file", path))?;
        values = task::parse_values(&text, &path.display().to_string()).map_err(CliError::input)?;
    }
    for pair in param {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(CliError::input(anyhow!("--param {pair}: expected NAME=VALUE")));
        };
        values.insert(name.trim().to_owned(), value.to_owned());
    }
    Ok(values)
}

pub(super) fn task_folder(source: &str) -> PathBuf {
    let parent = Path::new(source).parent().filter(|parent| !parent.as_os_str().is_empty() && source != "-");
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// Returns an error if a task still contains lines of the template.
pub(super) fn unwritten(text: &str, source: &str) -> Option<TaskError> {
    let mut problems = Problems::default();
    for (line, _) in (1..).zip(text.lines()).filter(|(_, line)| TASK_TEXT.contains(&line.trim())) {
        let place = FilePlace { line, column: 1 };
        let problem = Problem::at(place, "this line is still the placeholder that `fledge init` wrote");
        problems.push(problem.hint("describe the task here, or remove the line"));
    }
    (!problems.is_empty()).then(|| TaskError { file: source.to_owned(), problems: problems.seen_in(text) })
}
