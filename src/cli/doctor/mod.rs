//! `fledge doctor`: checks of the environment for a run and its gate, with fixes. Calls no model
//! and runs no lane.

mod machine;
mod project;
mod repository;
mod room;

use super::configured;
use super::failure::CliError;
use super::output::{no_output, print_data, print_json};
use super::paint::{self, Tone};
use super::project::ProjectArguments;
use super::project_summary;
use super::runtime::block_on;
use super::steps::StyledLine;
use crate::config::{self, EnvironmentLayer};
use clap::Args;
use serde_json::{Value, json};
use std::path::Path;

/// The version of the `--json` output.
const DOCTOR_SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Args)]
#[command(after_help = "Exit code 0 if a run can start here, else 1.\n\n\
    Examples:\n  fledge doctor\n  fledge doctor --json | jq '.checks[] | select(.status != \"ok\")'")]
pub(super) struct DoctorArguments {
    /// Print JSON to standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArguments,
}

/// The health of a checked thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Good,
    /// A run can begin, but something is weaker than it could be.
    Warning,
    /// No run can begin, or no run can be judged.
    Problem,
}

impl Health {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Warning => "warn",
            Self::Problem => "fail",
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HealthCheck {
    /// Its subject, in one word.
    about: &'static str,
    /// The part of the subject, if it has several. Together they make a stable id.
    part: Option<String>,
    health: Health,
    says: String,
    /// The fix; empty if none is needed.
    hint: String,
}

impl HealthCheck {
    fn good(about: &'static str, says: impl Into<String>) -> Self {
        Self { about, part: None, health: Health::Good, says: says.into(), hint: String::new() }
    }

    fn warning(about: &'static str, says: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { about, part: None, health: Health::Warning, says: says.into(), hint: hint.into() }
    }

    fn problem(about: &'static str, says: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { about, part: None, health: Health::Problem, says: says.into(), hint: hint.into() }
    }

    /// Sets the part of the subject.
    fn part(self, part: impl Into<String>) -> Self {
        Self { part: Some(part.into()), ..self }
    }

    /// Returns the id for programs: `lane.verify`.
    fn id(&self) -> String {
        self.part.as_ref().map_or_else(|| self.about.into(), |part| format!("{}.{part}", self.about))
    }

    fn as_json(&self) -> Value {
        let fix = (!self.hint.is_empty()).then_some(&self.hint);
        json!({ "id": self.id(), "status": self.health.word(), "says": self.says, "fix": fix })
    }

    fn lines(&self) -> Vec<StyledLine> {
        let (tone, mark) = match self.health {
            Health::Good => (Tone::Good, "✓ "),
            Health::Warning => (Tone::Warn, "! "),
            Health::Problem => (Tone::Bad, "✗ "),
        };
        let line = |text: &str| paint::one_line(text);
        let first = vec![
            (tone, mark.to_owned()),
            (Tone::Strong, format!("{:<9}", self.about)),
            (Tone::Plain, line(&self.says)),
        ];
        let hint = || vec![(Tone::Faint, format!("  {:<9}→ ", "")), (Tone::Plain, line(&self.hint))];
        [first].into_iter().chain((!self.hint.is_empty()).then(hint)).collect()
    }
}

/// Returns all problems in one line.
fn every(fault: &impl std::fmt::Display) -> String {
    fault.to_string().replace('\n', "; ")
}

/// Returns the last line: whether a run can begin, and the next command.
fn close(found: &[HealthCheck], is_healthy: bool, root: &Path, environment: &EnvironmentLayer) -> StyledLine {
    if is_healthy {
        let commit = found.iter().find(|found| ["git.repository", "git.changes"].contains(&found.id().as_str()));
        let commit = commit.and_then(|found| found.hint.split('`').nth(1));
        let next = format!("Ready. Next: {}", project_summary::next_command(root, environment, commit));
        return vec![(Tone::Strong, next)];
    }
    let problems = found.iter().filter(|found| found.health == Health::Problem).count();
    let what = if problems == 1 { "1 problem is".to_owned() } else { format!("{problems} problems are") };
    vec![(Tone::Strong, format!("Not ready: {what} preventing a run (✗)"))]
}

/// Runs all checks; returns the exit code, 1 if something prevents a run.
///
/// # Errors
/// When the folder does not exist, or nothing can be printed.
pub(super) fn run(arguments: &DoctorArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let root = arguments.project.root(environment)?;
    let restored_notes = configured::restored_notes(environment, &root);
    let (set, wrong) = match config::load(environment, &root) {
        Ok(set) => (set, None),
        Err(fault) => {
            let hint = "fix the file: until then fledge ignores all of it";
            (config::ProjectConfig::default(), Some(HealthCheck::problem("config", every(&fault), hint)))
        }
    };
    let mut found = block_on(machine::look(&root, &set, environment))?;
    found.extend(
        restored_notes
            .into_iter()
            .map(|note| HealthCheck::warning("config", note, "check the copy before you trust it").part("restored")),
    );
    found.extend(wrong);
    found.extend(project::variables(environment));
    found.extend(project::models(&set, environment));
    found.extend(project::lanes(&root, environment));
    found.extend(block_on(project::rooms(&root, &set, environment))?);
    found.extend(project::runs(&root, environment));
    found.extend(project::bases(&root, environment));
    found.extend(project::worktrees(&root, environment));
    let is_healthy = found.iter().all(|found| found.health != Health::Problem);
    if arguments.json {
        let checks: Vec<Value> = found.iter().map(HealthCheck::as_json).collect();
        let all = json!({ "schema_version": DOCTOR_SCHEMA_VERSION, "healthy": is_healthy, "checks": checks });
        print_json(&all.to_string()).map_err(no_output)?;
    } else {
        let mut lines: Vec<StyledLine> = found.iter().flat_map(HealthCheck::lines).collect();
        lines.push(close(&found, is_healthy, &root, environment));
        print_data(&paint::prose(&lines)).map_err(no_output)?;
    }
    Ok(u8::from(!is_healthy))
}
