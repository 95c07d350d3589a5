//! The report: the result of a run as data. Pure; the driver writes it.

pub mod attest;
mod course;
mod ending;
mod human;
#[cfg(feature = "cli")]
pub(crate) mod job;
#[cfg(feature = "cli")]
pub(crate) mod junit;
#[cfg(feature = "cli")]
pub(crate) mod lane;
pub mod lane_data;
pub mod patch;
mod proof;
#[cfg(feature = "cli")]
pub mod runs;
pub mod story;

pub use ending::{EndingTone, Headline, NamedRun, NextStep, headline, next_steps, number};
pub use human::{SummaryFact, ago, closing, committed, count, hint, money, seconds};
pub use proof::{found, grounds, held_back, is_by_exit_codes_alone, proof_of, rests_on, unproven};

use crate::run::TaskResult;
use serde::Serialize;
use std::path::Path;

/// The version of the report's format.
pub const REPORT_SCHEMA_VERSION: u32 = 1;

/// The report of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Report {
    /// The version of the report's format.
    pub schema_version: u32,
    /// The version of fledge that created the report.
    pub fledge: &'static str,
    /// The task.
    pub task: TaskFacts,
    /// The workspace.
    pub workspace: String,
    /// The run's folder, with its journal and logs.
    pub folder: String,
    /// The result of the run.
    #[serde(flatten)]
    pub result: TaskResult,
}

/// The task of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TaskFacts {
    /// The source of the task's text: a path, or `-`.
    pub source: String,
    /// The SHA-256 digest of the prompt, in hexadecimal.
    pub digest: String,
}

impl Report {
    /// Creates the report of a result.
    pub fn new(result: TaskResult, source: &str, task_digest: String, workspace: &Path, folder: &Path) -> Self {
        Self {
            schema_version: REPORT_SCHEMA_VERSION,
            fledge: env!("CARGO_PKG_VERSION"),
            task: TaskFacts { source: source.to_owned(), digest: task_digest },
            workspace: workspace.display().to_string(),
            folder: folder.display().to_string(),
            result,
        }
    }

    /// Formats the report as JSON, indented and with a final newline.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elapsed::Elapsed;
    use crate::run::{Event, Run};
    use crate::verdict::StopCause;

    #[test]
    fn a_report_has_its_version_and_the_result_beside_it() {
        let mut run = Run::new();
        run.handle(Elapsed(5), Event::CancelRequested { cause: StopCause::Terminate, partial_text: String::new() });
        let result = run.result().unwrap();
        let report = Report::new(result, "task.md", "d1".into(), Path::new("/w"), Path::new("/s")).to_json();
        let json: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(json["schema_version"], REPORT_SCHEMA_VERSION);
        assert_eq!(json["task"], serde_json::json!({ "source": "task.md", "digest": "d1" }));
        assert_eq!((&json["reason"], &json["exit_code"]), (&"cancelled".into(), &143.into()));
    }
}
