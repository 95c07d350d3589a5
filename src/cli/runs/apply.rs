//! `fledge apply`: checks the record of a run, then brings its verified tree into the checkout or
//! onto a branch. Never pushes.

use super::super::failure::CliError;
use super::super::output::{no_output, print_json};
use super::super::paint::{self, Tone};
use super::super::project::{ProjectArguments, adding};
use super::super::runtime::heeding;
use super::diff::change;
use super::leftovers::{LeftRun, VerifiedRun, WorkspaceView, broken, not_delivered, refused};
use super::{RunsContext, data};
use crate::config::EnvironmentLayer;
use crate::driver::{commit_message, commit_trailers};
use crate::report::committed;
use crate::verdict::Reason;
use crate::workspace::delivery::{CommitRequest, DeliveryError, MadeCommit, UserRepository, listed};
use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Args)]
#[command(
    after_help = "fledge first checks the record: the journal is intact, its newest verdict passed, and the verified \
    tree still exists.\n\
    Exit code 1 if the run or the checkout does not allow it. fledge never pushes.\n\n\
    Examples:\n  fledge apply last\n  fledge apply last --branch fix-dates\n  fledge apply 0198f2 --check --json"
)]
pub(in crate::cli) struct ApplyArguments {
    /// Run: the start of its id, its run key, or `last`
    run: String,
    /// Commit to branch NAME instead of changing the files
    ///
    /// A new branch is created. An existing branch must be at the commit where the work began.
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Only check whether the work can be applied
    #[arg(long)]
    check: bool,
    /// Print the result as JSON to standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArguments,
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When the run was not verified, its record is incomplete, or the checkout does not match.
pub(in crate::cli) fn apply(arguments: &ApplyArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let shelf = RunsContext::open(arguments.project.root(environment)?, environment)?;
    heeding(|stop| apply_work(&shelf, arguments, environment, stop))
}

async fn apply_work(
    shelf: &RunsContext,
    arguments: &ApplyArguments,
    environment: &EnvironmentLayer,
    stop: CancellationToken,
) -> Result<u8, CliError> {
    let left = LeftRun::find(shelf, &arguments.run, WorkspaceView::FromHome, environment, stop).await?;
    let verified = left.verified().await?;
    match &arguments.branch {
        Some(branch) => {
            let made = to_branch(&left, &verified, branch, arguments.check).await?;
            for note in &made.notes {
                paint::line(&[(Tone::Warn, "! "), (Tone::Plain, note)]);
            }
            let commit = (!made.commit.is_empty()).then_some(&made.commit);
            let said =
                commit.map_or_else(|| format!("could be committed on {branch}"), |id| committed(id, Some(branch)));
            print_applied(&left, &verified, arguments, json!({ "branch": branch, "commit": commit }), &said)
        }
        None => {
            let (more, said) = to_workspace(&left, &verified, arguments.check).await?;
            print_applied(&left, &verified, arguments, more, &said)
        }
    }
}

/// Gives the workspace the files of the verified tree, if it still has those of the base.
async fn to_workspace(left: &LeftRun, verified: &VerifiedRun, check: bool) -> Result<(Value, String), CliError> {
    let now = left.now().await?;
    if now == verified.tree {
        let more = if verified.result.reason == Reason::NotDelivered { "; --branch NAME commits it" } else { "" };
        let said = format!("the workspace already has the verified tree{more}");
        return Ok((json!({ "changes": [], "before": now }), said));
    }
    if now != left.base {
        let paths = left.differing(&left.base, &now).await?;
        let error = anyhow!("the workspace has changed since the run began: {paths}");
        return Err(refused(error).hint("commit or stash these changes, or use --branch, which leaves the files alone"));
    }
    let changes = left.trees.changes(&now, &verified.tree, &left.stop).await.map_err(broken)?;
    let before = if check { now } else { left.put(&verified.tree).await? };
    let all: Vec<Value> = changes.iter().map(change).collect();
    let files = match (all.len(), check) {
        (1, true) => "1 file would be".to_owned(),
        (1, false) => "1 file is".to_owned(),
        (number, true) => format!("{number} files would be"),
        (number, false) => format!("{number} files are"),
    };
    Ok((json!({ "changes": all, "before": before }), format!("{files} as in {}", verified.tree)))
}

/// Commits the tree to a branch, on top of the commit where the work began.
async fn to_branch(left: &LeftRun, verified: &VerifiedRun, branch: &str, check: bool) -> Result<MadeCommit, CliError> {
    let stop = &left.stop;
    let repository = UserRepository::around(&left.trees, &left.env, stop).await.map_err(not_delivered)?;
    let repository = repository.ok_or_else(|| not_delivered(DeliveryError::NoRepository))?;
    let head = match left.story.run.head() {
        Some(head) => head.clone(),
        None => {
            let head = repository.head(stop).await.map_err(not_delivered)?;
            if repository.check(&head, &left.base, stop).await.map_err(not_delivered)? {
                return Err(differs(left, verified, &repository).await?);
            }
            head
        }
    };
    let (message, trailers) = (commit_message(&verified.result), commit_trailers(&verified.result, &verified.tree));
    let what =
        CommitRequest { head: &head, tree: &verified.tree, base: &left.base, message: &message, trailers: &trailers };
    repository.commit_to(branch, &what, check, stop).await.map_err(not_delivered)
}

/// Returns the failure that the newest commit is not the base. Names the uncommitted files with
/// which the run began.
async fn differs(
    left: &LeftRun,
    verified: &VerifiedRun,
    repository: &UserRepository<'_>,
) -> Result<CliError, CliError> {
    let own = left.trees.changes(&left.base, &verified.tree, &left.stop).await.map_err(broken)?;
    let mut files = repository.uncommitted(&left.stop).await.map_err(not_delivered)?;
    files.retain(|file| !own.iter().any(|change| change.path == *file));
    if files.is_empty() {
        let error = anyhow!("the newest commit is not the commit that the run began with");
        return Ok(refused(error).hint("check out that commit; changes that were uncommitted then cannot be committed"));
    }
    let error = anyhow!(
        "the newest commit is not the state that the run began with, which had files that are not committed: {}",
        listed(&files)
    );
    Ok(refused(error).hint(format!("commit these files, then try again: {}", adding(left.trees.root(), &files))))
}

fn print_applied(
    left: &LeftRun,
    verified: &VerifiedRun,
    arguments: &ApplyArguments,
    more: Value,
    said: &str,
) -> Result<u8, CliError> {
    if !arguments.json {
        paint::line(&[(Tone::Good, "✓ "), (Tone::Plain, said)]);
        return Ok(0);
    }
    let mut all = json!({
        "schema_version": data::RUNS_SCHEMA_VERSION,
        "run": left.row.head.id,
        "base": left.base,
        "tree": verified.tree,
        "check": arguments.check,
    });
    if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
        all.extend(more);
    }
    print_json(&all.to_string()).map_err(no_output)?;
    Ok(0)
}
