//! `fledge init`: writes a lane, a first task and, if asked, a configuration. Never overwrites
//! files.

mod ignored;
mod trial;

use super::failure::CliError;
use super::paint::{self, Tone};
use super::project::{ProjectArguments, commit_command, has_repository, is_here};
use super::runtime::block_on;
use super::signals;
use super::tasks::TASK_TEXT;
use crate::config::EnvironmentLayer;
use crate::driver::StopToken;
use crate::lane::detect::{DetectedLane, YamlStyle};
use crate::lane_files::{self, WriteLaneError};
use crate::process::find_program;
use crate::store::{StoreError, write_new};
use crate::verdict::shell_word;
use anyhow::Context;
use clap::Args;
use std::path::Path;

/// The file of the lane.
const LANE: &str = "lanes/verify.yaml";
/// The file of the task.
const TASK: &str = "tasks/first.md";
/// The front matter of the task.
const TASK_FRONT: &str = "---\nfiles: [\"**\"] # what the task may change; never the checks\n\
    budget: { turns: 40, time: 30m } # add usd: 1.00 if the model has a known price\n---\n";
/// The file of the configuration.
const CONFIG: &str = "fledge.yaml";
/// The text of the configuration.
const CONFIG_TEXT: &str = "# Settings for every task of this project. `fledge config show` lists all\n# values and \
    their sources.\n\
    # default_model: anthropic/claude-sonnet-4-5\nlane: verify\nbudget: { turns: 100, time: 1h }\n\
    # Paths that no task may change, besides the checks and their tests:\n# protect: [\"CODEOWNERS\"]\n\
    # memory: { ephemeral_ttl: 7d, recall_tokens: 500 }\n";

/// The maximum number of columns of a command in the list of next steps. A longer one moves its
/// reason to the right.
const WIDEST: usize = 40;

#[derive(Debug, Args)]
#[command(
    after_help = "Existing files stay unchanged. The lane is the one that `fledge lanes init` detects. fledge first \
    runs its steps by hand, then\n\
    in a clean room, like a gate. A lint that fails by hand gets `allow_failure: true`; a step that cannot run is \
    left out.\n\n\
    Examples:\n  fledge init\n  fledge init --config\n  fledge init --print"
)]
pub(super) struct InitArguments {
    /// Also write fledge.yaml
    #[arg(long)]
    config: bool,
    /// Print what would be written, and write nothing
    #[arg(long)]
    print: bool,
    /// Do not run the checks to see whether they pass
    #[arg(long, conflicts_with = "print")]
    no_check: bool,
    /// Never prompt; without effect, because this command asks nothing
    #[arg(long = "ni", alias = "non-interactive", hide = true)]
    _ni: bool,
    #[command(flatten)]
    project: ProjectArguments,
}

/// The outcome for one file.
enum WriteResult {
    New(String),
    Kept(String),
}

/// Writes the missing files; returns the exit code.
///
/// # Errors
/// When the folder does not exist, no checks of the project are found, or a file cannot be written.
pub(super) fn run(arguments: &InitArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let env = environment.hand_env();
    let path = env.get("PATH").map_or("", String::as_str);
    // A new project may begin below another one.
    let mut root = arguments.project.folder()?;
    let mut detected = lane_files::detect_lane(&root, path);
    if detected.is_empty() && !root.join(LANE).exists() {
        root = arguments.project.root(environment)?;
        detected = lane_files::detect_lane(&root, path);
    }
    let mut texts = vec![(TASK, format!("{}\n{}\n", styled(TASK_FRONT, detected.style), TASK_TEXT.join("\n\n")))];
    texts.extend(arguments.config.then(|| (CONFIG, styled(CONFIG_TEXT, detected.style))));
    if arguments.print {
        return print(&detected, &texts);
    }
    let missing: Vec<&str> = [LANE, TASK, CONFIG].into_iter().filter(|name| !root.join(name).exists()).collect();
    let is_kept = root.join(LANE).exists();
    let has_failed = match lane_files::file_to_write(&root, &detected) {
        Ok(_) if !arguments.no_check => try_and_write(&root, detected, &texts, environment)?,
        Ok(_) => {
            write(&root, &detected, &texts)?;
            paint::say(&detected.remarks);
            false
        }
        Err(WriteLaneError::AlreadyThere(_)) => {
            write(&root, &detected, &texts)?;
            false
        }
        Err(fault) => return Err(refused(fault)),
    };
    let new: Vec<&str> = missing.into_iter().filter(|name| root.join(name).exists()).collect();
    next(&root, environment, &new, has_failed, !arguments.no_check && !is_kept);
    Ok(0)
}

/// Returns a text in the style of the project's formatter.
fn styled(text: &str, style: YamlStyle) -> String {
    let mut text = text.to_owned();
    if style.has_single_quotes {
        text = text.replace('"', "'");
    }
    if !style.has_spaced_braces {
        text = text.replace("{ ", "{").replace(" }", "}");
    }
    text
}

/// Tries the checks in the unchanged checkout, writes the files, and tries the checks in a clean
/// room. Returns true if a check failed that `fledge fix` can repair.
fn try_and_write(
    root: &Path,
    detected: DetectedLane,
    texts: &[(&str, String)],
    environment: &EnvironmentLayer,
) -> Result<bool, CliError> {
    paint::say(&detected.remarks);
    block_on(async {
        let stop = StopToken::default();
        let listening = signals::listen(stop.clone()).context("cannot listen for signals").map_err(CliError::own)?;
        let tried = trial::run(root, detected, |detected| write(root, detected, texts), environment, &stop).await;
        drop(listening);
        tried
    })?
}

/// Writes the missing files, the lane first, and prints the outcome for each. Returns the names of
/// the new files.
fn write(root: &Path, detected: &DetectedLane, texts: &[(&str, String)]) -> Result<Vec<String>, CliError> {
    let lane = match lane_files::write_detected(root, detected) {
        Ok(file) => WriteResult::New(file),
        Err(WriteLaneError::AlreadyThere(file)) => WriteResult::Kept(file),
        Err(fault) => return Err(refused(fault)),
    };
    let mut written = vec![lane];
    for (name, text) in texts {
        written.push(file(root, name, text)?);
    }
    for one in &written {
        match one {
            WriteResult::New(name) => paint::line(&[(Tone::Good, "✓ wrote "), (Tone::Plain, name)]),
            WriteResult::Kept(name) => paint::line(&[(Tone::Faint, "- kept: "), (Tone::Plain, name)]),
        }
    }
    let new = |one| if let WriteResult::New(name) = one { Some(name) } else { None };
    Ok(written.into_iter().filter_map(new).collect())
}

fn refused(fault: WriteLaneError) -> CliError {
    match fault {
        WriteLaneError::Store(_) => CliError::own(fault),
        WriteLaneError::NoFolder | WriteLaneError::AlreadyThere(_) => CliError::input(fault),
        WriteLaneError::NothingFound(_) => nothing_found(fault),
    }
}

fn nothing_found(fault: WriteLaneError) -> CliError {
    CliError::input(fault)
        .hint("write lanes/verify.yaml by hand; one step is enough: `steps: [{ name: test, run: ./check.sh }]`")
}

fn file(root: &Path, name: &str, text: &str) -> Result<WriteResult, CliError> {
    let path = root.join(name);
    if path.symlink_metadata().is_ok() {
        return Ok(WriteResult::Kept(name.into()));
    }
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.with_context(|| format!("cannot create the folder of {name}")).map_err(CliError::input)?;
    let fail = |fault: StoreError| CliError::input(anyhow::Error::new(fault).context(format!("cannot write {name}")));
    let is_new = write_new(&path, text.as_bytes()).map_err(fail)?;
    Ok(if is_new { WriteResult::New(name.into()) } else { WriteResult::Kept(name.into()) })
}

fn print(detected: &DetectedLane, texts: &[(&str, String)]) -> Result<u8, CliError> {
    if detected.is_empty() {
        return Err(nothing_found(WriteLaneError::NothingFound(detected.remarks.clone())));
    }
    let lane = detected.yaml();
    let all = std::iter::once((LANE, lane.as_str())).chain(texts.iter().map(|(name, text)| (*name, text.as_str())));
    let page: Vec<String> = all.map(|(name, text)| format!("# {name}\n{}", text.trim_end())).collect();
    super::output::print_data(&page.join("\n\n")).map_err(super::output::no_output)?;
    paint::say(&detected.remarks);
    paint::line(&[(
        Tone::Faint,
        "no check was run: `fledge init` also runs each step, and leaves out those that cannot run here",
    )]);
    Ok(0)
}

/// Returns the command that opens the task in an editor of this machine.
fn editor(environment: &EnvironmentLayer) -> String {
    let path = environment.get("PATH").unwrap_or_default();
    let is_there = |name: &&str| find_program(name, path).is_some();
    let own = ["EDITOR", "VISUAL"].into_iter().find(|name| environment.get(name).is_some());
    let usual = || ["nano", "vim", "vi"].into_iter().find(is_there).unwrap_or("vi").to_owned();
    format!("{} {TASK}", own.map_or_else(usual, |name| format!("${name}")))
}

/// Prints the next steps in the order of the work. `new` are the files that were written.
fn next(root: &Path, environment: &EnvironmentLayer, new: &[&str], has_failed: bool, was_checked: bool) {
    let commit = commit_command(new);
    let editor = editor(environment);
    let enter = format!("cd {}", shell_word(&root.display().to_string()));
    let mut steps = vec![
        (editor.as_str(), "describe the task"),
        ("fledge doctor", "check the environment"),
        ("fledge run tasks/first.md --dry-run", "show what would be sent"),
        ("fledge run tasks/first.md", "run the task"),
    ];
    if !has_repository(root) {
        steps.insert(1, ("git init && git add -A && git commit -m first", "so that runs can commit their work"));
    } else if !new.is_empty() {
        steps.insert(1, (commit.as_str(), "before a run, so that its work can be committed"));
    }
    if !was_checked {
        steps.insert(0, ("fledge lanes run verify", "run the checks on the current files"));
    }
    if ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", crate::config::MODEL_VARIABLE]
        .iter()
        .all(|name| environment.get(name).is_none())
    {
        steps.insert(
            steps.len() - 1,
            ("export ANTHROPIC_API_KEY=…", "or OPENAI_API_KEY, or your own model: `fledge docs how-to/own-model`"),
        );
    }
    if has_failed {
        steps.insert(steps.len() - 1, ("fledge fix", "let a model fix the failing checks"));
    }
    if !is_here(root) {
        steps.insert(0, (enter.as_str(), "the folder of the next commands"));
    }
    paint::line(&[(Tone::Strong, "Next:")]);
    let widths = steps.iter().map(|(command, _)| command.chars().count());
    let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
    for (command, why) in steps {
        paint::line(&[(Tone::Plain, format!("  {command:<width$}  ")), (Tone::Faint, why.to_owned())]);
    }
}
