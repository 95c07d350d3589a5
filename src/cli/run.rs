//! `fledge run`: runs a task, and returns an exit code, a report and a log of the run.

use super::batch::{self, BatchArguments, BatchRequest};
use super::failure::CliError;
use super::options::RunOptions;
use super::start::run_task;
use super::tasks::{must_say_something, read_source, task_folder, unwritten, values};
use crate::config::EnvironmentLayer;
use crate::task::{self, GateChoice, Task, TaskDefaults};
use crate::verdict::shell_word;
use anyhow::anyhow;
use clap::Args;
use std::path::{Path, PathBuf};

/// The most entries of a folder to search for a task with a similar name.
const MOST_ENTRIES: usize = 1000;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fledge run task.md\n  fledge run -p 'Fix the failing test'\n  fledge run task.md --model anthropic/claude-sonnet-4-5 --report report.json\n  \
    echo 'Fix the failing test' | fledge run - --lane test\n  fledge run task.md --param issue=12 --dry-run\n  \
    fledge run tasks/*.md --jobs 8 --max-usd 20\n  fledge run batch.yaml --resume\n  fledge run task.md --candidates 3"
)]
pub(super) struct RunArguments {
    /// Markdown task file, or `-` for standard input; several: files, folders, globs, or one
    /// batch.yaml
    #[arg(required_unless_present = "prompt", value_name = "TASK")]
    tasks: Vec<String>,
    /// Text of the task, instead of a file
    #[arg(
        help_heading = "Task",
        long,
        short,
        value_name = "TEXT",
        conflicts_with = "tasks",
        allow_hyphen_values = true
    )]
    prompt: Option<String>,
    /// Run no gate; the result is `skipped`, not verified
    #[arg(help_heading = "Gate", long, conflicts_with_all = ["lane", "expect"])]
    no_verify: bool,
    /// Value of a parameter of the task; repeatable
    #[arg(help_heading = "Task", long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// Read values of parameters from a YAML file; --param overrides them
    #[arg(help_heading = "Task", long, value_name = "FILE")]
    params: Option<PathBuf>,
    #[command(flatten)]
    options: RunOptions,
    #[command(flatten)]
    batch: BatchArguments,
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// Every failure before the run began.
pub(super) fn run(arguments: &RunArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let RunArguments { tasks, prompt, no_verify, options, batch, .. } = arguments;
    if is_prose(tasks) {
        let error = anyhow!("there is no task file `{}`", tasks.join(" "));
        let text = shell_word(&tasks.join(" "));
        return Err(CliError::input(error).hint(format!("to pass the task as text: `fledge run -p {text}`")));
    }
    must_say_something(prompt.as_deref())?;
    if prompt.is_some() && batch.is_any() {
        let error = anyhow!("--prompt starts a single run, but these flags are for several runs");
        return Err(CliError::input(error).hint("write the task to a file and name that file"));
    }
    if batch::is_meant(tasks, batch) {
        let params = values(arguments.params.as_deref(), &arguments.param)?;
        let (no_verify, eval) = (*no_verify, None);
        return batch::run(&BatchRequest { tasks, params, no_verify, options, arguments: batch, eval }, environment);
    }
    run_task(options, |defaults| read_task(arguments, defaults), environment)
}

/// Returns true if the words of a command line are the text of a task, not files.
fn is_prose(tasks: &[String]) -> bool {
    let text = tasks.join(" ");
    let words = || tasks.iter().filter(|task| !Path::new(task).exists()).flat_map(|task| task.split_whitespace());
    let is_plain = |word: &str| !word.contains('/') && Path::new(word.trim_end_matches('.')).extension().is_none();
    let is_file = |task: &String| {
        let ending = Path::new(task).extension().map(|ending| ending.to_string_lossy().to_lowercase());
        task.contains(['*', '?', '[', '{']) || ending.is_some_and(|it| ["md", "yaml", "yml"].contains(&it.as_str()))
    };
    text.contains(' ') && words().any(is_plain) && !tasks.iter().any(is_file)
}

/// Returns the failure of a run of one task that needs another one.
fn needs_another(source: &str, need: &str) -> CliError {
    let folder = task_folder(source);
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().take(MOST_ENTRIES);
    let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let own = Path::new(source).file_stem().map(|stem| stem.to_owned());
    let stems =
        paths.filter_map(|path| path.file_stem().filter(|stem| Some(*stem) != own.as_deref()).map(|it| it.to_owned()));
    let names: Vec<String> = stems.filter_map(|stem| stem.into_string().ok()).collect();
    let shown = |name: &str| {
        folder.join(name).with_extension("md").strip_prefix(".").map_or_else(
            |_| folder.join(name).with_extension("md").display().to_string(),
            |path| path.display().to_string(),
        )
    };
    let failure = |why: &str| CliError::input(anyhow!("{source}: the task needs `{need}`, {why}"));
    let failure =
        match crate::yaml::nearest(need, names.iter().map(String::as_str)) {
            Some(near) if near == need => failure("which this command does not run")
                .hint(format!("run both: `fledge run {} {source}`", shown(need))),
            Some(near) => failure("but there is no such task").hint(format!("did you mean `{near}`?")),
            None => failure("but there is no such task")
                .hint(format!("write {}, or remove the name from `needs`", shown(need))),
        };
    failure.at_value(source, "needs", need)
}

fn read_task(arguments: &RunArguments, defaults: &TaskDefaults) -> Result<Task, CliError> {
    let source = arguments.tasks.first().map_or("-", String::as_str);
    let text = arguments.prompt.clone().map_or_else(|| read_source(source), Ok)?;
    let values = values(arguments.params.as_deref(), &arguments.param)?;
    let mut task = task::parse_with(&text, source, &values, defaults).map_err(CliError::input)?;
    if let Some(fault) = unwritten(&text, source) {
        return Err(CliError::input(fault));
    }
    if let Some(need) = task.needs.first() {
        return Err(needs_another(source, need));
    }
    if task.candidates.is_some() {
        let error = anyhow!("{source}: `candidates` need a task file, which each candidate reads");
        return Err(CliError::input(error).hint("write the task to a file, or omit `candidates`"));
    }
    if arguments.no_verify {
        task.gate = GateChoice::Skip;
    }
    Ok(task)
}
