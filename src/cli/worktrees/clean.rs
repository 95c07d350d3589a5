//! `fledge worktrees clean`: removes worktrees without uncommitted work, and explains why others
//! stay. Uncommitted work is removed only if its run is named, or after a person has confirmed a
//! list.

use super::super::asking::confirm;
use super::super::failure::CliError;
use super::super::left_worktrees::{Cleaned, clean_one};
use super::super::output::{no_output, print_json};
use super::super::paint::{self, Tone};
use super::{WORKTREES_SCHEMA_VERSION, WorktreeRow, WorktreeState, WorktreesContext};
use crate::driver::is_for_now;
use crate::duration::parse_duration;
use crate::store::StoredRunState;
use anyhow::anyhow;
use clap::Args;
use serde_json::json;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fledge worktrees clean --dry-run\n  fledge worktrees clean --older-than 7d\n  fledge worktrees clean --failed\n  \
        fledge worktrees clean --discard 0198f2"
)]
pub(super) struct CleanArguments {
    /// Remove only worktrees created longer ago than DURATION, e.g. 12h or 7d
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = parse_duration)]
    older_than: Option<Duration>,
    /// Remove the worktree of RUN with the work in it; repeatable
    ///
    /// The work in other worktrees stays.
    #[arg(long, value_name = "RUN")]
    discard: Vec<String>,
    /// Also remove worktrees of runs that ended unverified, with the work in them; asks first
    #[arg(long)]
    failed: bool,
    /// Remove all worktrees except those of runs under way, with the work in them; asks first
    #[arg(long)]
    all: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON to standard output
    #[arg(long)]
    json: bool,
}

/// Removes worktrees; returns the exit code, which is 1 if a worktree could not be removed.
pub(super) async fn clean(context: &WorktreesContext, arguments: &CleanArguments) -> Result<u8, CliError> {
    let trees = context.trees().await?;
    let mut discarded = Vec::new();
    for name in &arguments.discard {
        discarded.push(named(context, &trees, name)?);
    }
    let swept = swept(context, arguments, &trees, &discarded);
    if !swept.is_empty() && !arguments.dry_run {
        for tree in swept.iter().map(|at| &trees[*at]) {
            let called = tree.called(context.store.as_ref());
            let why = tree.state.keeps(&called).unwrap_or_default();
            paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &paint::one_line(&format!("{called}  {why}")))]);
        }
        let what = format!("{} would be removed with all contents", worktrees(swept.len()));
        if !arguments.yes && !confirm(&what)? {
            return Ok(0);
        }
    }
    discarded.extend(swept);
    let (mut removed, mut stays, mut code) = (Vec::new(), Vec::new(), 0);
    for (at, tree) in trees.iter().enumerate() {
        let called = tree.called(context.store.as_ref());
        let done = clean_one(context, arguments.older_than, arguments.dry_run, tree, discarded.contains(&at)).await;
        let run = tree.record.as_ref().map(|record| &record.run);
        let branch = tree.record.as_ref().map(|record| &record.worktree.branch);
        let path = tree.folder.display().to_string();
        match done {
            Cleaned::Removed(has_branch) => {
                removed.push(json!({ "run": run, "path": path, "branch": branch, "has_branch": has_branch }));
                let kept =
                    branch.filter(|_| has_branch == Some(true)).map(|branch| format!(", its branch {branch} stays"));
                let verb = if arguments.dry_run { "would be removed" } else { "removed" };
                print_line(arguments, Tone::Good, "✓ ", &format!("{called}  {verb}{}", kept.unwrap_or_default()));
            }
            Cleaned::Stays(why) => {
                print_line(arguments, Tone::Warn, "! ", &format!("{called}  stays: {why}"));
                stays.push(json!({ "run": run, "path": path, "why": why }));
            }
            Cleaned::Failed(why) => {
                code = 1;
                print_line(arguments, Tone::Bad, "✗ ", &format!("{called}  could not be removed: {why}"));
                stays.push(json!({ "run": run, "path": path, "why": why }));
            }
        }
    }
    if arguments.json {
        let (version, dry_run) = (WORKTREES_SCHEMA_VERSION, arguments.dry_run);
        let all = json!({ "schema_version": version, "dry_run": dry_run, "removed": removed, "stays": stays });
        print_json(&all.to_string()).map_err(no_output)?;
        return Ok(code);
    }
    let verb = if arguments.dry_run { "would be removed" } else { "removed" };
    print_line(arguments, Tone::Plain, "", &format!("{} {verb}, {} stay", worktrees(removed.len()), stays.len()));
    Ok(code)
}

/// Returns the indices of worktrees with work that `--failed` or `--all` removes.
fn swept(context: &WorktreesContext, arguments: &CleanArguments, trees: &[WorktreeRow], named: &[usize]) -> Vec<usize> {
    let is_swept = |tree: &WorktreeRow| {
        let has_failed = tree.row.as_ref().is_some_and(
            |row| matches!(&row.state, StoredRunState::Ended(outcome) if !outcome.verified && !is_for_now(&row.state)),
        );
        let holds = matches!(tree.state, WorktreeState::Interrupted | WorktreeState::Kept(_));
        let is_old = arguments.older_than.is_none_or(|older| context.age(tree) >= older);
        tree.record.is_some() && holds && is_old && (arguments.all || arguments.failed && has_failed)
    };
    (0..trees.len()).filter(|at| !named.contains(at) && is_swept(&trees[*at])).collect()
}

fn worktrees(number: usize) -> String {
    if number == 1 { "1 worktree".into() } else { format!("{number} worktrees") }
}

fn print_line(arguments: &CleanArguments, tone: Tone, mark: &str, says: &str) {
    if !arguments.json {
        paint::line(&[(tone, mark), (Tone::Plain, paint::one_line(says).as_str())]);
    }
}

/// Returns the index of the worktree of a run, by the start of its id, its run key, or its name.
fn named(context: &WorktreesContext, trees: &[WorktreeRow], name: &str) -> Result<usize, CliError> {
    let found = context.store.as_ref().and_then(|store| store.find(name).ok());
    let is_meant = |tree: &WorktreeRow| {
        let run = tree.record.as_ref().map(|record| &record.run);
        tree.name == name || run.is_some() && run == found.as_ref() || run.is_some_and(|run| run.as_str() == name)
    };
    trees.iter().position(is_meant).ok_or_else(|| {
        let error = anyhow!("--discard {name}: no worktree of such a run exists");
        CliError::input(error).hint("run `fledge worktrees list` to see them")
    })
}
