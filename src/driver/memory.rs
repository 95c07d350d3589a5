//! Memory in a run: planning recalls notes of earlier runs, and reporting keeps a note for later
//! runs. Neither can fail a run.

use super::{DriverSettings, now_ms};
use crate::duration::milliseconds;
use crate::error_chain::chain;
use crate::id::RunId;
use crate::limits::{EPHEMERAL_TTL, RECALL_TOKENS};
use crate::run::TaskResult;
use crate::task::Task;
use crate::tool::{MemoryAccess, Notes};
use serde::{Deserialize, Serialize};

/// Bytes that count as one token.
const TOKEN: usize = 4;
/// Bytes of the parts of a summary: the task, the outcome, the work done, the files.
const PARTS: [usize; 4] = [240, 240, 800, 480];
/// Lines of the last answer that are kept.
const LINES: usize = 8;

/// The memory settings of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySettings {
    /// The lifetime of an ephemeral memory, in milliseconds.
    pub ephemeral_ttl_ms: u64,
    /// Tokens of memories in a first message, of four bytes each.
    pub recall_tokens: usize,
}

impl Default for MemorySettings {
    /// Returns seven days and 500 tokens.
    fn default() -> Self {
        let ephemeral_ttl_ms = milliseconds(EPHEMERAL_TTL);
        Self { ephemeral_ttl_ms, recall_tokens: RECALL_TOKENS }
    }
}

/// Returns the memory of the project, unless the run has none.
pub(super) fn shelf(settings: &DriverSettings, run: Option<RunId>) -> Option<MemoryAccess> {
    let terms = settings.memory.as_ref()?;
    Some(MemoryAccess {
        state_dir: settings.state_dir.clone(),
        workspace: settings.project().to_owned(),
        run,
        ephemeral_ttl_ms: terms.ephemeral_ttl_ms,
        recall_limit: terms.recall_tokens.saturating_mul(TOKEN),
        mask: settings.secrets.clone(),
        now_ms,
    })
}

/// Recalls the memories about a task. A failure becomes a note.
pub(super) fn recalled(task: &Task, settings: &DriverSettings, notes: &mut Vec<String>) -> Option<Notes> {
    let recalled = shelf(settings, None)?.recall(&format!("{}\n{}", task.title, task.prompt));
    recalled.unwrap_or_else(|error| {
        notes.push(format!("cannot recall memories of earlier runs: {}", chain(&error)));
        None
    })
}

/// Keeps a note on the result of a run. There is one for each task and outcome, and one for each
/// run, from its last report.
pub(super) fn keep(result: &TaskResult, task: &Task, settings: &DriverSettings) {
    let Some(shelf) = shelf(settings, Some(result.run.clone())) else { return };
    // Mask before cutting: half a secret is not recognized.
    let result = TaskResult {
        title: shelf.fit(&result.title),
        message: shelf.fit(&result.message),
        summary: shelf.fit(&result.summary),
        ..result.clone()
    };
    let Some(summary) = summary(&result, &shelf.fit(&task.prompt)) else { return };
    let same_task = format!("{}\0{}", task.title, task.prompt);
    if let Err(error) = shelf.keep_of_task(&same_task, &result.reason.to_string(), &result.run, &summary) {
        tracing::warn!(error = chain(&error), "cannot remember the outcome of the run");
    }
}

/// Returns the note for later runs. `None` if nothing was done, or a person cancelled the run.
fn summary(result: &TaskResult, prompt: &str) -> Option<String> {
    let files: Vec<&str> = result.changed_paths().collect();
    let has_changes = !files.is_empty();
    if result.cancelled || (!has_changes && result.turns == 0) {
        return None;
    }
    // Add the first line of the prompt: the title may be just the name of a file.
    let asked = prompt.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
    let asked = asked.filter(|asked| *asked != result.title).map(|asked| format!(": {asked}")).unwrap_or_default();
    let message = result.message.strip_prefix("failed: ").unwrap_or(&result.message);
    let why = if result.verified { String::new() } else { format!(": {message}") };
    let lines: Vec<&str> = result.summary.lines().map(str::trim).filter(|line| !line.is_empty()).take(LINES).collect();
    let parts = [
        format!("Task: {}{asked}", one_line(&result.title)),
        format!("Outcome: {}{}", result.reason.label(), one_line(&why)),
        format!("Done: {}", lines.join("\n")),
        format!("Files changed: {}", one_line(&files.join(", "))),
    ];
    let is_there = [true, true, !lines.is_empty(), has_changes];
    let parts = parts.iter().zip(PARTS).zip(is_there).filter(|(_, is_there)| *is_there);
    Some(parts.map(|((part, limit), _)| cut(part, limit)).collect::<Vec<_>>().join("\n"))
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit { text.to_owned() } else { format!("{} […]", &text[..text.floor_char_boundary(limit)]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{FileChange, FileChangeKind};
    use crate::elapsed::Elapsed;
    use crate::run::{Event, Run, RunSpec};
    use crate::verdict::{Reason, StopCause};

    /// Returns the result of a run with these changes.
    fn result(reason: Reason, summary: &str, paths: &[&str], turns: u64) -> TaskResult {
        let mut run = Run::new();
        let spec = RunSpec::new(RunId::new("r"), "Repair\nthe parser", "Repair it");
        run.handle(Elapsed(0), Event::TaskSubmitted { spec: Box::new(spec) });
        run.handle(Elapsed(1), Event::CancelRequested { cause: StopCause::Token, partial_text: String::new() });
        let change =
            |path: &&str| FileChange { path: (*path).into(), kind: FileChangeKind::Created, added: 1, removed: 0 };
        let (verified, cancelled) = (reason == Reason::Verified, reason == Reason::Cancelled);
        let files_changed = paths.iter().map(change).collect();
        let (message, summary) = ("failed: verify/test".into(), summary.into());
        TaskResult { reason, verified, cancelled, message, summary, files_changed, turns, ..run.result().unwrap() }
    }

    #[test]
    fn a_summary_says_task_outcome_what_was_done_and_files() {
        let verified = result(Reason::Verified, "\n It took\n\nminutes.\n", &["a", "b"], 3);
        let expected =
            "Task: Repair the parser: It is off\nOutcome: verified\nDone: It took\nminutes.\nFiles changed: a, b";
        assert_eq!(summary(&verified, "\n# It is off\nby 60").as_deref(), Some(expected));
        let failed = summary(&result(Reason::GateFailed, "", &[], 1), "# Repair\nthe parser");
        assert_eq!(failed.as_deref(), Some("Task: Repair the parser: Repair\nOutcome: failed: verify/test"));
    }

    #[test]
    fn a_run_in_which_nothing_was_done_or_that_was_cancelled_leaves_nothing() {
        let kept = [
            (Reason::Cancelled, &[][..], 5),
            (Reason::Cancelled, &["a"][..], 5),
            (Reason::ProviderFailed, &[], 0),
            (Reason::MaxTurns, &[], 9),
        ];
        assert_eq!(
            kept.map(|(reason, paths, turns)| summary(&result(reason, "", paths, turns), "").is_some()),
            [false, false, false, true]
        );
    }

    #[test]
    fn however_much_was_said_and_done_a_summary_is_short() {
        let paths = ["src/é/file.rs"; 500];
        let summary = summary(&result(Reason::Verified, &"né ".repeat(5000), &paths, 3), &"ä".repeat(999)).unwrap();
        assert!(summary.len() < crate::limits::MAX_NOTE, "{}", summary.len());
    }
}
