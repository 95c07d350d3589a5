//! What every verb takes that begins a run, beside what is to be done: the words of a task's front matter, as flags that win over it.

use super::beside::{hooks, servers};
use super::drive::VoiceArguments;
use super::failure::Failure;
use super::memory::memory_terms;
use super::outlet::outlet;
use super::project::ProjectArguments;
use super::record;
use super::results::{Beside, ResultArguments};
use super::runs::Place;
use super::secrets::secrets;
use super::sync::ServerArguments;
use crate::config::Environment;
use crate::driver::{Asker, Settings};
use crate::process::wall::WallChoice;
use crate::task::{Baseline, Commit, Expect, GateChoice, Isolation, OnTamper, STUCK_AFTER, Task, Tier, check_glob};
use crate::tool::Late;
use crate::workspace::Outlet;
use crate::yaml::{meant, parse_dollars};
use anyhow::anyhow;
use clap::Args;
use std::path::{Path, PathBuf};

// Options of `fledge run` and `fledge fix`.
#[derive(Debug, Args)]
pub(super) struct RunOptions {
    /// The model: provider/name, or a name from fledge.yaml; again for a fallback
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    /// Which tools there are, and which configured model: read, tool (also writes files), code (also the shell)
    #[arg(long, value_name = "TIER", value_parser = |word: &str| one_of(&Tier::WORDS, word))]
    tier: Option<Tier>,
    /// The lane that is the gate; again for several
    #[arg(long, value_name = "NAME")]
    lane: Vec<String>,
    /// Judge by the lanes of this commit, and not by those of the folder: origin/main
    #[arg(long, value_name = "REF")]
    lanes_from: Option<String>,
    /// Further attempts when the gate fails
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..=100))]
    max_retries: Option<u32>,
    /// End the run when the gate fails in the same way so many times in a row
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(STUCK_AFTER))]
    stuck_after: Option<u32>,
    /// A protected path that may be changed all the same, as a glob; beside those of the task, and always reported
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    allow_edit: Vec<String>,
    /// One more protected path, as a glob; beside those of the task and the project
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    protect: Vec<String>,
    /// What a changed protected path does: restore (put it back, tell the model, spend an attempt) or fail (end the run)
    #[arg(long, value_name = "CHOICE", value_parser = |word: &str| one_of(&OnTamper::WORDS, word))]
    on_tamper: Option<OnTamper>,
    /// What the gate must say of the base, or no model is asked: failing or passing
    #[arg(long, value_name = "RULING", value_parser = |word: &str| one_of(&Expect::WORDS, word))]
    expect: Option<Expect>,
    /// Whether the gate judges the base first: auto (where the task or a lane needs it), always, never
    #[arg(long, value_name = "CHOICE", value_parser = |word: &str| one_of(&Baseline::WORDS, word))]
    baseline: Option<Baseline>,
    /// A folder with lanes that only the gate knows, outside of the workspace
    #[arg(long, value_name = "DIR")]
    holdout: Option<PathBuf>,
    /// Write the report to this file too
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write a patch of verified work to this file, for `git am`
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,
    /// Write what the models say to this file, as a cassette that plays it again; a file that is there is not replaced
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// What becomes a commit: on-success (the verified tree), each-turn (also what each turn has left, apart from every branch), none
    #[arg(long, value_name = "WHEN", value_parser = |word: &str| one_of(&Commit::WORDS, word))]
    commit: Option<Commit>,
    /// Where the agent works: in-place, or in a worktree of its own, on a branch of its own
    #[arg(long, value_name = "PLACE", value_parser = |word: &str| one_of(&Isolation::WORDS, word))]
    isolation: Option<Isolation>,
    /// The commit that the worktree is made from, instead of the newest one of the checkout: origin/main
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Work in the worktree on the newest commit as it is, although lanes, tests or the like of the checkout are not committed
    #[arg(long, conflicts_with = "base")]
    from_commit: bool,
    /// Let work that was not committed before the run go into its commit
    #[arg(long)]
    allow_dirty: bool,
    /// What it may cost at most, in US dollars; of many tasks all of them together
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
    pub(super) max_usd: Option<u64>,
    #[command(flatten)]
    pub(super) results: ResultArguments,
    #[command(flatten)]
    pub(super) voice: VoiceArguments,
    #[command(flatten)]
    pub(super) server: ServerArguments,
    /// What stands around the agent: auto (the best there is, or a refusal), required (bubblewrap), off
    #[arg(long, value_name = "CHOICE", value_parser = wall_choice)]
    sandbox: Option<WallChoice>,
    /// Whether the agent reaches the network: deny or allow
    #[arg(long, value_name = "CHOICE", value_parser = ["deny", "allow"])]
    network: Option<String>,
    /// Recall nothing of earlier runs, and leave nothing for later ones
    #[arg(long)]
    no_memory: bool,
    /// Show what would be sent and run, and call nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Go on with the newest interrupted run of this task, or of --run-key; start one if there is none
    #[arg(long)]
    pub(super) resume_or_start: bool,
    /// A name for the run, by which it is found again; a run that ended unverified gives it up to the next
    #[arg(long, value_name = "KEY", value_parser = run_key)]
    pub(super) run_key: Option<String>,
    #[command(flatten)]
    project: ProjectArguments,
}

/// The value that is written as this word.
fn one_of<T: Copy>(words: &[(&str, T)], word: &str) -> Result<T, String> {
    let all = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let known = || words.iter().map(|(word, _)| *word);
    let near = || meant(word, known()).map(|meant| format!(" ({meant})")).unwrap_or_default();
    let found = words.iter().find(|(own, _)| *own == word).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| format!("it is one of {}{}", all(), near()))
}

/// Which wall is wanted.
pub(super) fn wall_choice(name: &str) -> Result<WallChoice, String> {
    let near = || meant(name, WallChoice::NAMES).map(|meant| format!(" ({meant})")).unwrap_or_default();
    WallChoice::parse(name).ok_or_else(|| format!("it is one of auto, required, off{}", near()))
}

/// A path that means the same from another folder.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn dollars(text: &str) -> Result<u64, &'static str> {
    parse_dollars(text).ok_or("it is an amount of US dollars like 2.50, with at most six decimals")
}

fn glob(text: &str) -> Result<String, String> {
    check_glob(text).map(|()| text.to_owned()).map_err(|(why, hint)| format!("{why} ({hint})"))
}

/// A name that is no other one's by its form.
fn run_key(key: &str) -> Result<String, &'static str> {
    match key {
        "" => Err("it is empty"),
        "last" | "last-failed" => Err("this name means the newest run: use another one"),
        key if key.contains('#') => Err("`#` stands before the number of a later run of a key: leave it out"),
        key => Ok(key.to_owned()),
    }
}

impl RunOptions {
    /// The lanes that are named, if any are.
    pub(super) fn lanes(&self) -> Option<Vec<String>> {
        (!self.lane.is_empty()).then(|| self.lane.clone())
    }

    /// The folder that is worked in. A report without a place is known now: before the work, and not after it.
    ///
    /// # Errors
    /// When one of them is not there.
    pub(super) fn workspace(&self, environment: &Environment) -> Result<PathBuf, Failure> {
        let workspace = self.project.root(environment)?;
        let found = |flag, path: &Option<PathBuf>| path.as_ref().map(|path| outlet(flag, path, &workspace)).transpose();
        let (report, patch) = (found("--report", &self.report)?, found("--patch", &self.patch)?);
        if report.is_some() && report == patch {
            return Err(Failure::input(anyhow!("--report and --patch are one file")).hint("name two"));
        }
        Ok(workspace)
    }

    /// The same folder for what is said where it cannot be worked in: by its whole path where it has one, so that a link in it is seen as such.
    pub(super) fn root(&self, environment: &Environment) -> PathBuf {
        self.project.root_or_name(environment)
    }

    /// The places of what its driver writes of a run, as far as there are such places.
    pub(super) fn beside(&self, workspace: &Path) -> Beside {
        let find = |flag, path: &Option<PathBuf>| outlet(flag, path.as_ref()?, workspace).ok();
        let (report, patch) = (find("--report", &self.report), find("--patch", &self.patch));
        Beside { patch: patch.filter(|patch| report.as_ref() != Some(patch)), report }
    }

    /// The commit whose lanes judge.
    pub(super) fn lanes_from(&self) -> Option<&str> {
        self.lanes_from.as_deref()
    }

    /// The models that are named.
    pub(super) fn models(&self) -> &[String] {
        &self.model
    }

    /// Whether models are named.
    pub(super) fn has_models(&self) -> bool {
        !self.model.is_empty()
    }

    /// Where the patch is written.
    pub(super) fn patch(&self) -> Option<PathBuf> {
        self.patch.as_deref().map(whole)
    }

    /// A flag that is of no use where nothing is delivered.
    pub(super) fn not_for_eval(&self) -> Option<&'static str> {
        let is_in_place = self.isolation == Some(Isolation::InPlace);
        let is_committed = self.commit.is_some_and(|commit| commit != Commit::None);
        let flags =
            [("--isolation in-place", is_in_place), ("--commit", is_committed), ("--allow-dirty", self.allow_dirty)];
        flags.iter().find(|(_, is_said)| *is_said).map(|(flag, _)| *flag)
    }

    /// Whether nothing is said that only one task can have; the patch of one that is raced is its winner's.
    ///
    /// # Errors
    /// When there is.
    pub(super) fn must_be_for_many(&self, is_race: bool) -> Result<(), Failure> {
        let flags = [("--patch", self.patch.is_some() && !is_race), ("--record", self.record.is_some())];
        match flags.iter().find(|(_, is_said)| *is_said) {
            None => Ok(()),
            Some((flag, _)) => {
                let error = anyhow!("{flag} writes one file, and there may be many runs");
                Err(Failure::input(error).hint("run that task alone, or leave the flag out"))
            }
        }
    }

    /// The task, as these flags have it.
    ///
    /// # Errors
    /// When it demands what can never be.
    pub(super) fn say(&self, mut task: Task) -> Result<Task, Failure> {
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
        task.on_tamper = self.on_tamper.unwrap_or(task.on_tamper);
        task.expect = self.expect.or(task.expect);
        task.baseline = self.baseline.or(task.baseline);
        if (task.base.is_some() || self.from_commit) && task.isolation != Isolation::Worktree {
            let flag = if self.from_commit { "--from-commit" } else { "--base" };
            let error = anyhow!("{flag}: only a worktree is made from a commit, and the task is worked on in place");
            return Err(Failure::input(error).hint(format!("add `--isolation worktree`, or leave {flag} out")));
        }
        if self.from_commit {
            task.base.get_or_insert_with(|| "HEAD".to_owned());
        }
        if self.patch.is_some() && task.gate == GateChoice::Skip {
            let error = anyhow!("--patch: a patch is of verified work, and without a gate nothing is verified");
            return Err(Failure::input(error).hint("name a lane, or leave --patch out"));
        }
        match task.contradiction() {
            None => Ok(task),
            Some(why) => {
                Err(Failure::input(anyhow!(why)).hint("remove one of the two, in the task or among the flags"))
            }
        }
    }

    /// What the agent works with, but for its models; these are their keys, as far as they come from elsewhere than the environment.
    pub(super) fn settings(&self, environment: &Environment, place: &Place<'_>, keys: &Late) -> Settings {
        let set = place.set;
        Settings {
            workspace: place.workspace.to_owned(),
            project: Some(place.project()),
            state_dir: place.state_dir.to_owned(),
            models: Vec::new(),
            no_models: None,
            env: environment.child_env().into_iter().collect(),
            step_env: environment.step_env().into_iter().collect(),
            protect: set.protect.clone(),
            reports: self.reports(),
            patch: self.patch.as_deref().map(whole),
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            mcp: servers(set, environment),
            earlier: None,
            memory: (!self.no_memory).then(|| memory_terms(set)),
            secrets: secrets(environment, set, keys),
            holdout: self.holdout.as_deref().map(whole),
            lanes_from: self.lanes_from.clone(),
            baseline: set.baseline.unwrap_or_default(),
            wall: self.sandbox.unwrap_or(set.sandbox),
            network: self.network.as_ref().map_or(set.network, |word| word == "allow"),
            limits: set.limits,
            hooks: hooks(set),
            asker: Asker::default(),
            helper: environment.program().map(Path::to_owned),
        }
    }

    /// Where what the models say is recorded, found before the agent can change where that is.
    ///
    /// # Errors
    /// When it cannot be there.
    pub(super) fn record(&self, workspace: &Path) -> Result<Option<Outlet>, Failure> {
        self.record.as_ref().map(|path| record::place(path, workspace)).transpose()
    }

    /// Where the report is written too, as whole paths: the run may be taken up again from another folder.
    pub(super) fn reports(&self) -> Vec<PathBuf> {
        self.report.iter().map(|path| whole(path)).collect()
    }
}
