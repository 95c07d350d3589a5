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
        Some(text) if text.trim().is_empty() => {
            let error = anyhow!("--prompt: the text is empty");
            Err(CliError::input(error).hint("say what to do, e.g. `fledge run -p 'Fix the failing test'`"))
        }
        _ => Ok(()),
    }
}

/// Endings of files with code or data, which are no texts of tasks.
const OTHER_ENDINGS: &str = "bash c cc cfg clj conf cpp cs css csv cxx dart env ex exs fish go gradle groovy h hpp hs \
    htm html ini ipynb java jl js json jsonl jsx kt kts less lock log lua m mjs ml mm nim nix php pl proto ps1 py pyi r \
    rb rs sass scala scss sh sql svelte swift tf toml ts tsx vue xml yaml yml zig zsh";
/// Names of files with code, which have no ending.
const OTHER_NAMES: [&str; 6] = ["Makefile", "Dockerfile", "Justfile", "justfile", "Rakefile", "Gemfile"];

/// Checks that a file is meant as a task: it is neither source code nor data, such as a lane.
///
/// # Errors
/// When its name or its first line is that of another file.
pub(super) fn must_be_task(path: &Path, text: &str) -> Result<(), CliError> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_other = OTHER_ENDINGS.split_whitespace().any(|other| other == ending) || OTHER_NAMES.contains(&name);
    if !is_other && !text.starts_with("#!") {
        return Ok(());
    }
    let shown = path.strip_prefix(".").unwrap_or(path).display();
    let error = anyhow!("{shown} is not a task: a task is a text, usually in a `.md` file");
    let lane = path.file_stem().filter(|_| path.parent().is_some_and(|parent| parent.ends_with("lanes")));
    Err(CliError::input(error).hint(match lane.and_then(|stem| stem.to_str()) {
        Some(lane) => format!("to run this lane: `fledge lanes run {lane}`"),
        None => format!("say what to do with the file: `fledge run -p 'In {shown}, …'`"),
    }))
}

pub(super) fn read_source(source: &str) -> Result<String, CliError> {
    if source != "-" {
        let path = Path::new(source);
        let read = store::read_text(path, MAX_SOURCE).map_err(CliError::input)?;
        let text = read.ok_or_else(|| CliError::no_file("task file", path))?;
        return must_be_task(path, &text).map(|()| text);
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
