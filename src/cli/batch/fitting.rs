//! What a task has to be to be raced, or to be a measure of models.

use super::Request;
use crate::task::{Candidates, Commit, GateChoice, Isolation, Task};

/// A task, as the request has it.
///
/// # Errors
/// Why it cannot be that, and what to do.
pub(super) fn fitted(task: Task, request: &Request<'_>) -> Result<Task, String> {
    if request.eval.is_some() { compared(task) } else { raced(task, request) }
}

/// A task whose candidates have worktrees.
fn raced(mut task: Task, request: &Request<'_>) -> Result<Task, String> {
    if let Some(count) = request.arguments.candidates {
        task.candidates = Some(Candidates::Count(count));
    }
    match &task.candidates {
        None => Ok(task),
        Some(_) if task.isolation == Isolation::InPlace => {
            Err("candidates each have a worktree, and this is worked on in place (leave `isolation: in-place` out)"
                .into())
        }
        Some(Candidates::Models(_)) if request.options.has_models() => {
            Err("`candidates` names the models, and so does --model (leave one of the two out, or say --candidates N)"
                .into())
        }
        Some(Candidates::Models(_) | Candidates::Count(_)) => Ok(task),
    }
}

/// A task that measures: each run by itself, judged, and nothing delivered.
fn compared(task: Task) -> Result<Task, String> {
    if !task.needs.is_empty() {
        return Err(
            "it needs other tasks, and an evaluation delivers nothing that it could go on from (leave it out)".into()
        );
    }
    if task.gate == GateChoice::Skip {
        return Err("it skips its gate, and without one nothing says whether a run succeeds (name a lane)".into());
    }
    Ok(Task { candidates: None, isolation: Isolation::Worktree, commit: Some(Commit::None), ..task })
}
