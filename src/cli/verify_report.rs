//! `fledge verify-report`: checks that the newest commit is the verified tree of a report, and that
//! the lanes of another commit judged it.
//!
//! A report can be edited. The check only shows that it fits the commit and the lanes.

use super::configured;
use super::failure::CliError;
use super::output::{no_output, print_json};
use super::paint::{self, Tone};
use super::project::ProjectArguments;
use super::runtime::block_on;
use crate::config::EnvironmentLayer;
use crate::gate::digest_of;
use crate::id::TreeId;
use crate::lane::Lane;
use crate::lane_files::load;
use crate::report::{rests_on, unproven};
use crate::run::TaskResult;
use crate::store::read_text;
use crate::verdict::{Proof, Reason, Verification};
use crate::workspace::delivery::{DeliveryError, UserRepository};
use crate::workspace::trees::Trees;
use anyhow::Context;
use clap::Args;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The largest report to read, in bytes.
const LARGEST: usize = 64 * 1024 * 1024;
/// The version of the `--json` output.
const SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 0 if the report holds, else 1 with the reasons. The command compares the commit and the \
    lanes with the report.\n\
    It cannot detect an edited report: to prevent edits, sign the output of `fledge runs attest`.\n\n\
    Examples:\n  fledge verify-report report.json\n  fledge verify-report report.json --lanes-from origin/main --json"
)]
pub(super) struct VerifyArguments {
    /// Report to check
    report: PathBuf,
    /// Require that the lanes which judged it are those of this commit
    ///
    /// These lanes must be `verify`, unless --lane names others.
    #[arg(long, value_name = "REF")]
    lanes_from: Option<String>,
    /// Require that this lane and no other judged it; repeat for several
    #[arg(long, value_name = "NAME")]
    lane: Vec<String>,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print JSON to standard output
    #[arg(long)]
    json: bool,
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When the report, the repository or the other commit cannot be read.
pub(super) fn verify(arguments: &VerifyArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let path = &arguments.report;
    let text = read_text(path, LARGEST).map_err(CliError::input)?;
    let text = text.ok_or_else(|| CliError::no_file("file", path))?;
    let report: TaskResult = serde_json::from_str(&text)
        .with_context(|| format!("{} is not a report of a run", path.display()))
        .map_err(CliError::input)?;
    let reasons = block_on(reasons(&report, arguments, environment))??;
    if arguments.json {
        let (holds, tree) = (reasons.is_empty(), &report.tree);
        let answer = json!({
            "schema_version": SCHEMA_VERSION, "holds": holds, "run": report.run, "tree": tree, "commit_tree": report.commit_tree, "lanes": judged_by(&report),
            "rests_on": proof(&report).map(rests_on), "unproven": proof(&report).map(unproven), "reasons": reasons,
        });
        print_json(&answer.to_string()).map_err(no_output)?;
    } else if reasons.is_empty() {
        let tree = report.tree.as_ref().map(ToString::to_string).unwrap_or_default();
        let by = judged_by(&report).join(", ");
        let line = format!("the newest commit is the verified tree {tree}, judged by {by}");
        paint::line(&[(Tone::Good, "✓ "), (Tone::Plain, &line)]);
        if let Some(proof) = proof(&report) {
            paint::line(&[(Tone::Plain, &format!("  {}", rests_on(proof)))]);
            unproven(proof).iter().for_each(|what| paint::line(&[(Tone::Warn, "! "), (Tone::Plain, what)]));
        }
    }
    if !arguments.json {
        reasons.iter().for_each(|reason| paint::line(&[(Tone::Bad, "✗ "), (Tone::Plain, reason.as_str())]));
    }
    Ok(if reasons.is_empty() { 0 } else { Reason::GateFailed.row().exit_code })
}

/// Returns the reasons against the report; empty if everything fits.
async fn reasons(
    report: &TaskResult,
    arguments: &VerifyArguments,
    environment: &EnvironmentLayer,
) -> Result<Vec<String>, CliError> {
    let mut reasons = Vec::new();
    let Some(proof) = proof(report) else {
        if report.verification == Verification::Skipped {
            return Ok(vec!["the report names no tree: the run had no gate, so nothing was verified".to_owned()]);
        }
        if report.verified && report.attempts.is_empty() {
            return Ok(vec![
                "the report names no tree: the gate passed at the start, so the run did nothing".to_owned(),
            ]);
        }
        let ended = report.reason.label();
        return Ok(vec![format!("the report has no verified tree: the run ended as `{ended}`")]);
    };
    let stop = CancellationToken::new();
    let env: Vec<(String, String)> = environment.hand_env().into_iter().collect();
    let path = env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
    let scratch = tempfile::tempdir().context("cannot create a folder").map_err(CliError::own)?;
    let root = arguments.project.root(environment)?;
    configured::restore_configuration(environment, &root);
    let trees = Trees::open(&scratch.path().join("git"), &root, path, &stop).await.map_err(CliError::input)?;
    let repository = UserRepository::around(&trees, &env, &stop).await.map_err(CliError::input)?;
    let repository = repository.ok_or_else(|| CliError::input(DeliveryError::NoRepository))?;
    let head = repository.head(&stop).await.map_err(CliError::input)?;
    match head.tree {
        Some(tree) if tree == proof.tree || Some(&tree) == report.commit_tree.as_ref() => {}
        Some(tree) => reasons.push(differs(&tree, proof, report)),
        None => reasons.push("this folder has no commit".to_owned()),
    }
    let demanded = match (&arguments.lane[..], &arguments.lanes_from) {
        ([], None) => None,
        ([], Some(_)) => Some(vec!["verify"]),
        (lanes, _) => Some(lanes.iter().map(String::as_str).collect()),
    };
    if let Some(demanded) = demanded
        && BTreeSet::from_iter(&demanded) != BTreeSet::from_iter(&judged_by(report))
    {
        let judges = judged_by(report).join(", ");
        reasons.push(format!("the run was judged by {judges}, but {} is required (--lane)", demanded.join(", ")));
    }
    if let Some(rev) = &arguments.lanes_from {
        let at = scratch.path().join("lanes");
        repository.export(rev, &at, &stop).await.map_err(CliError::input)?;
        match lanes(report, &at, path) {
            Ok(lanes) if digest_of(&lanes) == proof.lanes => {}
            Ok(_) => reasons.push(format!("the lanes that judged the run differ from those at {rev}")),
            Err(why) => reasons.push(format!("some lanes that judged the run are not at {rev}: {why}")),
        }
    }
    Ok(reasons)
}

/// Returns the reason that the newest commit is neither the verified tree nor the tree committed
/// from it.
fn differs(tree: &TreeId, proof: &Proof, report: &TaskResult) -> String {
    let committed = report.commit_tree.as_ref().map(|tree| format!(", committed as {tree}")).unwrap_or_default();
    format!("the newest commit has the tree {tree}, but the verified tree is {}{committed}", proof.tree)
}

/// Returns the proof of the report's pass, if the report does not contradict itself.
fn proof(report: &TaskResult) -> Option<&Proof> {
    let is_verified = report.verified && report.verification == Verification::Passed;
    let verdict = &report.attempts.last()?.verdict;
    let proof = verdict.proof.as_deref().filter(|_| is_verified && verdict.passed())?;
    let is_one = report.tree.as_ref() == Some(&proof.tree) && report.gate_digest == proof.lanes;
    is_one.then_some(proof)
}

/// Returns the names of the lanes of the gate.
fn judged_by(report: &TaskResult) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for step in report.attempts.last().iter().flat_map(|attempt| &attempt.verdict.steps) {
        if !names.contains(&step.lane.as_str()) {
            names.push(&step.lane);
        }
    }
    names
}

/// Returns the lanes of the gate as they are in another state of the project.
fn lanes(report: &TaskResult, root: &Path, path: &str) -> Result<Vec<Lane>, String> {
    let load = |name: &str| load(root, name, path).map(|loaded| loaded.lane).map_err(|fault| fault.to_string());
    judged_by(report).into_iter().map(load).collect()
}
