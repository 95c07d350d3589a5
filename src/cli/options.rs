//! Options of `fledge run` and `fledge fix` for one run. They correspond to keys of a task's front
//! matter, and override them.

use super::drive::OutputArguments;
use super::failure::CliError;
use super::numbers::whole_number;
use super::output_path::find_output;
use super::project::ProjectArguments;
use super::record;
use super::results::{ResultArguments, RunFiles};
use super::sync_target::ServerArguments;
use crate::config::EnvironmentLayer;
use crate::driver::DriverSettings;
use crate::process::sandbox::SandboxChoice;
use crate::setup::ProjectContext;
use crate::task::{
    Baseline, Commit, Expect, GateChoice, Isolation, OnTamper, STUCK_AFTER, Task, Tier, check_glob, check_hidden,
};
use crate::tool::LateSecrets;
use crate::workspace::AtomicOutput;
use crate::yaml::{meant, parse_dollars};
use anyhow::anyhow;
use clap::Args;
use std::path::{Path, PathBuf};

// Options of `fledge run` and `fledge fix`.
#[derive(Debug, Args)]
pub(super) struct RunOptions {
    /// Model to use: provider/name, or a name from fledge.yaml; repeat for fallbacks
    ///
    /// Default: the configured model, or a model whose key is set.
    #[arg(help_heading = "Model", long, value_name = "MODEL")]
    model: Vec<String>,
    /// Tools and model by tier: read, tool (also writes files), code (also the shell)
    ///
    /// Default: code. Selects the tools, and which configured model is the default.
    #[arg(help_heading = "Model", long, value_name = "TIER", value_parser = |word: &str| one_of(&Tier::WORDS, word))]
    tier: Option<Tier>,
    /// Lane to use as the gate; repeat for several [default: verify]
    #[arg(help_heading = "Gate", long, value_name = "NAME")]
    lane: Vec<String>,
    /// Judge by the lanes of this commit instead of the folder's, e.g. origin/main
    #[arg(help_heading = "Gate", long, value_name = "REF")]
    lanes_from: Option<String>,
    /// Further attempts if the gate fails, 0 to 100 [default: 3]
    #[arg(help_heading = "Limits", long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number(0..=100))]
    max_retries: Option<u32>,
    /// End the run after N equal gate failures in a row, 2 to 100 [default: off]
    #[arg(help_heading = "Limits", long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number(STUCK_AFTER))]
    stuck_after: Option<u32>,
    /// Allow changes to a protected path, as a glob; repeatable
    ///
    /// Adds to the globs of the task. The report lists these changes.
    #[arg(help_heading = "Gate", long, value_name = "GLOB", value_parser = glob)]
    allow_edit: Vec<String>,
    /// Protect a path, as a glob; repeatable
    ///
    /// Adds to the protected paths of the task and the project.
    #[arg(help_heading = "Gate", long, value_name = "GLOB", value_parser = glob)]
    protect: Vec<String>,
    /// Hide files of the base from the agent, as a glob or `auto 25%`; repeatable
    ///
    /// The gate uses these files. `auto 25%` draws a quarter of the test files. Needs bubblewrap
    /// and a worktree.
    #[arg(help_heading = "Gate", long, value_name = "GLOB", value_parser = hidden)]
    hidden: Vec<String>,
    /// Reaction to a changed protected path: restore or fail [default: restore]
    ///
    /// restore: put the path back, tell the model, and spend an attempt.
    ///
    /// fail: end the run.
    #[arg(help_heading = "Gate", long, value_name = "CHOICE", value_parser = |word: &str| one_of(&OnTamper::WORDS, word))]
    on_tamper: Option<OnTamper>,
    /// Verdict of the gate that the base must have: failing or passing
    ///
    /// With another verdict, no model is called.
    #[arg(help_heading = "Gate", long, value_name = "RULING", value_parser = |word: &str| one_of(&Expect::WORDS, word))]
    expect: Option<Expect>,
    /// When the gate judges the base: auto, always, never [default: auto]
    ///
    /// auto: before the first model call if the task or a lane needs the verdict, else beside the
    /// first turns.
    ///
    /// always: before the first model call.
    ///
    /// never: only if a later verdict needs the base.
    #[arg(help_heading = "Gate", long, value_name = "CHOICE", value_parser = |word: &str| one_of(&Baseline::WORDS, word))]
    baseline: Option<Baseline>,
    /// Folder with hold-out lanes, which only the gate sees; outside of the workspace
    #[arg(help_heading = "Gate", long, value_name = "DIR")]
    holdout: Option<PathBuf>,
    /// Also write the report to FILE, as JSON
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write a patch of the verified work to FILE, for `git am`
    #[arg(help_heading = "Delivery", long, value_name = "FILE")]
    patch: Option<PathBuf>,
    /// Record the models' answers in FILE, as a cassette to play again
    ///
    /// An existing file is not replaced.
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Work to commit: none, on-success or each-turn
    ///
    /// on-success: the verified tree.
    ///
    /// each-turn: also what each turn left, apart from every branch.
    ///
    /// Default: on-success in a worktree with a gate, else none.
    #[arg(help_heading = "Delivery", long, value_name = "WHEN", value_parser = |word: &str| one_of(&Commit::WORDS, word))]
    commit: Option<Commit>,
    /// Place of the agent's work: in-place or worktree
    ///
    /// in-place: the checkout itself.
    ///
    /// worktree: a separate worktree on a new branch.
    ///
    /// Default: in-place for one task, worktree for several.
    #[arg(help_heading = "Delivery", long, value_name = "PLACE", value_parser = |word: &str| one_of(&Isolation::WORDS, word))]
    isolation: Option<Isolation>,
    /// Commit to make the worktree from, instead of the checkout's newest, e.g. origin/main
    #[arg(help_heading = "Delivery", long, value_name = "REF")]
    base: Option<String>,
    /// Make the worktree from HEAD even if lanes, tests or the like are not committed
    #[arg(help_heading = "Delivery", long, conflicts_with = "base")]
    from_commit: bool,
    /// Let work that was not committed before the run go into its commit
    #[arg(help_heading = "Delivery", long)]
    allow_dirty: bool,
    /// Limit the cost, in US dollars, e.g. 2.50 [default: no limit]
    ///
    /// For several tasks, the limit is for all of them together.
    #[arg(help_heading = "Limits", long, value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
    pub(super) max_usd: Option<u64>,
    #[command(flatten)]
    pub(super) results: ResultArguments,
    #[command(flatten)]
    pub(super) voice: OutputArguments,
    #[command(flatten)]
    pub(super) server: ServerArguments,
    /// Sandbox of the agent: auto, required or off [default: auto]
    ///
    /// auto: the best sandbox that works here; without one, fledge refuses to run.
    ///
    /// required: bubblewrap.
    ///
    /// off: no sandbox.
    #[arg(help_heading = "Sandbox", long, value_name = "CHOICE", value_parser = wall_choice)]
    sandbox: Option<SandboxChoice>,
    /// Network access of the agent [default: deny]
    #[arg(help_heading = "Sandbox", long, value_name = "CHOICE", value_parser = ["deny", "allow"])]
    network: Option<String>,
    /// Recall nothing of earlier runs, and leave nothing for later ones
    #[arg(help_heading = "Model", long)]
    no_memory: bool,
    /// Show what would be sent and run, and call nothing
    #[arg(help_heading = "Task", long)]
    pub(super) dry_run: bool,
    /// Resume the newest interrupted run of this task or --run-key, else start one
    #[arg(help_heading = "Task", long)]
    pub(super) resume_or_start: bool,
    /// Name the run, to find it again by this key
    ///
    /// A run that ended unverified gives its key up to the next run.
    #[arg(help_heading = "Task", long, value_name = "KEY", value_parser = run_key)]
    pub(super) run_key: Option<String>,
    #[command(flatten)]
    project: ProjectArguments,
}

/// Parses one of the given words.
fn one_of<T: Copy>(words: &[(&str, T)], word: &str) -> Result<T, String> {
    let all = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let known = || words.iter().map(|(word, _)| *word);
    let near = || meant(word, known()).map(|meant| format!(" ({meant})")).unwrap_or_default();
    let found = words.iter().find(|(own, _)| *own == word).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| format!("expected one of {}{}", all(), near()))
}

/// Parses the choice of a sandbox.
pub(super) fn wall_choice(name: &str) -> Result<SandboxChoice, String> {
    let near = || meant(name, SandboxChoice::NAMES).map(|meant| format!(" ({meant})")).unwrap_or_default();
    SandboxChoice::parse(name).ok_or_else(|| format!("expected one of auto, required, off{}", near()))
}

/// Returns the absolute path.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Parses an amount of US dollars into millionths.
pub(super) fn dollars(text: &str) -> Result<u64, &'static str> {
    parse_dollars(text).ok_or("expected an amount of US dollars such as 2.50, with at most six decimals")
}

pub(super) fn glob(text: &str) -> Result<String, String> {
    check_glob(text).map(|()| text.to_owned()).map_err(|(why, hint)| format!("{why} ({hint})"))
}

fn hidden(text: &str) -> Result<String, String> {
    check_hidden(text).map(|()| text.to_owned()).map_err(|(why, hint)| format!("{why} ({hint})"))
}

/// Parses a run key. Refuses names that have another meaning.
fn run_key(key: &str) -> Result<String, &'static str> {
    match key {
        "" => Err("the key is empty"),
        "last" | "last-failed" => Err("this name is reserved for the newest run: use another key"),
        key if key.contains('#') => Err("`#` is reserved for the numbers of later runs: remove it"),
        key => Ok(key.to_owned()),
    }
}

impl RunOptions {
    /// Returns the lanes of `--lane`, if any.
    pub(super) fn lanes(&self) -> Option<Vec<String>> {
        (!self.lane.is_empty()).then(|| self.lane.clone())
    }

    /// Returns the folder to work in. Checks the places of the report and the patch now, not only
    /// after the work.
    ///
    /// # Errors
    /// When the folder does not exist, or a file cannot be written to its place.
    pub(super) fn workspace(&self, environment: &EnvironmentLayer) -> Result<PathBuf, CliError> {
        let workspace = self.project.root(environment)?;
        let found =
            |flag, path: &Option<PathBuf>| path.as_ref().map(|path| find_output(flag, path, &workspace)).transpose();
        let (report, patch) = (found("--report", &self.report)?, found("--patch", &self.patch)?);
        if report.is_some() && report == patch {
            return Err(CliError::input(anyhow!("--report and --patch name the same file")).hint("name two files"));
        }
        Ok(workspace)
    }

    /// Returns the folder for messages that it cannot be used: resolved if possible, so that links
    /// in it are recognized.
    pub(super) fn root(&self, environment: &EnvironmentLayer) -> PathBuf {
        self.project.root_or_name(environment)
    }

    /// Returns the places of the files that the driver writes, as far as they are valid.
    pub(super) fn beside(&self, workspace: &Path) -> RunFiles {
        let find = |flag, path: &Option<PathBuf>| find_output(flag, path.as_ref()?, workspace).ok();
        let (report, patch) = (find("--report", &self.report), find("--patch", &self.patch));
        RunFiles { patch: patch.filter(|patch| report.as_ref() != Some(patch)), report }
    }

    /// Returns the commit of `--lanes-from`.
    pub(super) fn lanes_from(&self) -> Option<&str> {
        self.lanes_from.as_deref()
    }

    /// Returns the models of `--model`.
    pub(super) fn models(&self) -> &[String] {
        &self.model
    }

    /// Returns true if `--model` is given.
    pub(super) fn has_models(&self) -> bool {
        !self.model.is_empty()
    }

    /// Returns the absolute path of the patch.
    pub(super) fn patch(&self) -> Option<PathBuf> {
        self.patch.as_deref().map(whole)
    }

    /// Returns a given flag that has no use without delivery.
    pub(super) fn not_for_eval(&self) -> Option<&'static str> {
        let is_in_place = self.isolation == Some(Isolation::InPlace);
        let is_committed = self.commit.is_some_and(|commit| commit != Commit::None);
        let flags =
            [("--isolation in-place", is_in_place), ("--commit", is_committed), ("--allow-dirty", self.allow_dirty)];
        flags.iter().find(|(_, is_said)| *is_said).map(|(flag, _)| *flag)
    }

    /// Checks that no flag is given that only one task can have. In a race, the patch is the
    /// winner's.
    ///
    /// # Errors
    /// When the flag exists.
    pub(super) fn must_be_for_many(&self, is_race: bool) -> Result<(), CliError> {
        let flags = [("--patch", self.patch.is_some() && !is_race), ("--record", self.record.is_some())];
        match flags.iter().find(|(_, is_said)| *is_said) {
            None => Ok(()),
            Some((flag, _)) => {
                let error = anyhow!("{flag} writes one file, but this command may start several runs");
                Err(CliError::input(error).hint("run that task alone, or omit the flag"))
            }
        }
    }

    /// Returns the task with these flags applied.
    ///
    /// # Errors
    /// When flags or task contradict each other.
    pub(super) fn say(&self, mut task: Task) -> Result<Task, CliError> {
        if !self.model.is_empty() {
            task.models.clone_from(&self.model);
        }
        task.tier = self.tier.unwrap_or(task.tier);
        task.gate = self.lanes().map_or(task.gate, GateChoice::Lanes);
        task.commit = self.commit.or(task.commit);
        task.isolation = self.isolation.unwrap_or(task.isolation);
        task.base = self.base.clone().or(task.base);
        task.allow_dirty |= self.allow_dirty;
        task.budget.usd_micros = self.max_usd.into_iter().chain(task.budget.usd_micros).min();
        task.max_retries = self.max_retries.unwrap_or(task.max_retries);
        task.stuck_after = self.stuck_after.or(task.stuck_after);
        task.allow_edit.extend(self.allow_edit.iter().cloned());
        task.protect.extend(self.protect.iter().cloned());
        task.hidden.extend(self.hidden.iter().cloned());
        task.on_tamper = self.on_tamper.unwrap_or(task.on_tamper);
        task.expect = self.expect.or(task.expect);
        task.baseline = self.baseline.or(task.baseline);
        if (task.base.is_some() || self.from_commit) && task.isolation != Isolation::Worktree {
            let flag = match (self.from_commit, &self.base) {
                (true, _) => "--from-commit",
                (false, Some(_)) => "--base",
                (false, None) => "`base`",
            };
            let error = anyhow!("{flag}: only a worktree starts from a commit, but the task runs in place");
            let (failure, base) = (CliError::input(error), task.base.clone().unwrap_or_default());
            if self.base.is_none() && !self.from_commit {
                let failure = failure.hint("add `isolation: worktree` to the task, or remove `base`");
                return Err(failure.at_value(&task.source, "base", &base));
            }
            return Err(failure.hint(format!("add `--isolation worktree`, or omit {flag}")));
        }
        if self.from_commit {
            task.base.get_or_insert_with(|| "HEAD".to_owned());
        }
        if self.patch.is_some() && task.gate == GateChoice::Skip {
            let error = anyhow!("--patch: a patch holds verified work, but without a gate nothing is verified");
            return Err(CliError::input(error).hint("name a lane, or omit --patch"));
        }
        match task.contradiction() {
            None => Ok(task),
            Some(why) => {
                Err(CliError::input(anyhow!(why)).hint("remove one of the two, from the task or from the flags"))
            }
        }
    }

    /// Returns the settings of the agent, without its models. `keys` are the models' keys that do
    /// not come from the environment.
    pub(super) fn settings(
        &self,
        environment: &EnvironmentLayer,
        place: &ProjectContext<'_>,
        keys: &LateSecrets,
    ) -> DriverSettings {
        let usual = place.settings(environment, keys);
        DriverSettings {
            reports: self.reports(),
            patch: self.patch(),
            memory: usual.memory.clone().filter(|_| !self.no_memory),
            holdout: self.holdout.as_deref().map(whole),
            lanes_from: self.lanes_from.clone(),
            sandbox: self.sandbox.unwrap_or(usual.sandbox),
            network: self.network.as_ref().map_or(usual.network, |word| word == "allow"),
            ..usual
        }
    }

    /// Finds the place of the recording before the agent can change it.
    ///
    /// # Errors
    /// When the file cannot be there.
    pub(super) fn record(&self, workspace: &Path) -> Result<Option<AtomicOutput>, CliError> {
        self.record.as_ref().map(|path| record::place(path, workspace)).transpose()
    }

    /// Returns the absolute paths of the report, because the run may be resumed from another
    /// folder.
    pub(super) fn reports(&self) -> Vec<PathBuf> {
        self.report.iter().map(|path| whole(path)).collect()
    }
}
