//! Checks that a task fits a race or an evaluation.

use super::BatchRequest;
use crate::task::{Candidates, Commit, GateChoice, Isolation, Task};

/// Adapts a task to the request.
///
/// # Errors
/// The reason why the task does not fit, and a fix.
pub(super) fn fitted(task: Task, request: &BatchRequest<'_>) -> Result<Task, String> {
    if request.eval.is_some() { compared(task) } else { raced(task, request) }
}

/// Adapts a task for `fledge run`. Candidates need worktrees.
fn raced(mut task: Task, request: &BatchRequest<'_>) -> Result<Task, String> {
    if let Some(count) = request.arguments.candidates {
        task.candidates = Some(Candidates::Count(count));
    }
    match &task.candidates {
        None => Ok(task),
        Some(_) if task.isolation == Isolation::InPlace => {
            Err("candidates need worktrees, but this task runs in place (remove `isolation: in-place`)".into())
        }
        Some(Candidates::Models(_)) if request.options.has_models() => {
            Err("both `candidates` and --model name models (omit one of them, or use --candidates N)".into())
        }
        Some(Candidates::Models(_) | Candidates::Count(_)) => Ok(task),
    }
}

/// Adapts a task for an evaluation: a separate run in a worktree, with a gate and without delivery.
fn compared(task: Task) -> Result<Task, String> {
    if !task.needs.is_empty() {
        return Err(
            "this task needs other tasks, but an evaluation delivers nothing to build on (leave the task out)".into()
        );
    }
    if task.gate == GateChoice::Skip {
        return Err("this task skips its gate, so no run can succeed or fail (name a lane)".into());
    }
    Ok(Task { candidates: None, isolation: Isolation::Worktree, commit: Some(Commit::None), ..task })
}
