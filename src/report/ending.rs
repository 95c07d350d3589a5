//! The end of a run for people: one line on how it ended, and the commands that make sense next.
//! Pure.

use super::human::{count, seconds};
use super::proof::proof_of;
use crate::chat::money;
use crate::duration::show_duration;
use crate::limits::LimitName;
use crate::run::{TaskResult, WorkplaceState};
use crate::verdict::{Reason, StopCause, shell_word};
use std::time::Duration;

/// The mood of an ending, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndingTone {
    /// The checks passed.
    Good,
    /// The run ended as a person wanted it, but its work is not fully verified.
    Mixed,
    /// The run failed.
    Bad,
}

/// One line on how a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// The mood.
    pub mood: EndingTone,
    /// The first words: `✓ Verified`.
    pub lead: String,
    /// The rest, including the separator before it: ` in 41.2s · 2 attempts · src/lib.rs +2 -2 ·
    /// $0.0400`.
    pub rest: String,
}

/// A command that makes sense after a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    /// The command line.
    pub command: String,
    /// The purpose of the command.
    pub does: &'static str,
}

/// A run as commands name it.
#[derive(Debug, Clone, Copy)]
pub struct NamedRun<'n> {
    /// The name: `last`, or an id.
    pub name: &'n str,
    /// Git's name in commands, with the project's folder if that is not the current one; `None`
    /// without a repository, where its work cannot be committed.
    pub git: Option<&'n str>,
    /// The command that commits the files which the run began with and no commit has; empty without
    /// such files.
    pub commit_first: &'n str,
    /// The models that its task names; if empty, the configured one.
    pub models: &'n [String],
}

/// Returns the line on how a run ended: `✓ Verified in 41.2s · 2 attempts · src/lib.rs +2 -2 ·
/// $0.0400`, `✗ Failed after 4 attempts: verify/test`.
pub fn headline(result: &TaskResult) -> Headline {
    let time = seconds(result.duration_ms);
    let (mood, lead, rest) = match result.reason {
        Reason::Verified if result.turns == 0 => (EndingTone::Good, "✓ Verified", format!(": {}", result.message)),
        Reason::Verified if !result.protected.is_empty() => {
            (EndingTone::Mixed, "✓ Verified, without the restored changes,", format!(" in {time}{}", work(result)))
        }
        Reason::Verified => (EndingTone::Good, "✓ Verified", format!(" in {time}{}", work(result))),
        Reason::Skipped => (EndingTone::Mixed, "✓ Done, not verified,", format!(" in {time}{}", work(result))),
        Reason::Cancelled => (EndingTone::Mixed, "✗ Cancelled", format!(" after {time}{}", work(result))),
        reason => (EndingTone::Bad, failed(reason), cause(result)),
    };
    Headline { mood, lead: lead.to_owned(), rest }
}

/// Returns the first words on a run that failed.
fn failed(reason: Reason) -> &'static str {
    match reason {
        Reason::BadInput | Reason::PlanFailed => "✗ Not started",
        Reason::MaxTurns
        | Reason::BudgetTokens
        | Reason::BudgetMoney
        | Reason::BudgetTime
        | Reason::LoopDetected
        | Reason::GateTampered => "✗ Stopped",
        Reason::Blocked => "✗ Blocked",
        Reason::NotDelivered => "✗ Verified, but not committed",
        _ => "✗ Failed",
    }
}

/// Formats the attempts, the changes and the cost, each after a dot.
fn work(result: &TaskResult) -> String {
    let attempts = result.attempts.len() as u64;
    let parts = [(attempts > 0).then(|| number(attempts, "attempt")), changes(result), cost(result)];
    parts.into_iter().flatten().map(|part| format!(" · {part}")).collect()
}

fn changes(result: &TaskResult) -> Option<String> {
    let difference = result.difference.as_ref()?;
    Some(match (difference.files, difference.changes.first()) {
        (0, _) => "no file changed".to_owned(),
        (1, Some(file)) => file.line(),
        (files, _) => {
            format!("{} +{} -{}", number(files, "file"), count(difference.added), count(difference.removed))
        }
    })
}

/// Formats the known cost, marked if it is incomplete or an estimate.
fn cost(result: &TaskResult) -> Option<String> {
    let micros = result.usage.total.cost_micros.filter(|micros| *micros > 0)?;
    let about = match () {
        () if !result.usage.unpriced().is_empty() => "at least ",
        () if result.usage.total.estimated_tokens > 0 => "about ",
        () => "",
    };
    Some(format!("{about}{}", money(micros)))
}

/// Formats the number of attempts of a failed run and the cause.
fn cause(result: &TaskResult) -> String {
    let attempts = result.attempts.len() as u64;
    let after = if attempts == 0 { String::new() } else { format!(" after {}", number(attempts, "attempt")) };
    let message = match result.message.as_str() {
        "" => result.reason.row().meaning,
        message => ["failed: ", "the work is verified, but could not be committed: "]
            .iter()
            .find_map(|start| message.strip_prefix(start))
            .unwrap_or(message),
    };
    format!("{after}: {message}")
}

/// Formats a number with its noun: `1 turn`, `2 turns`.
pub fn number(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Returns the commands that make sense after a run, the most useful first; at most three.
pub fn next_steps(
    result: &TaskResult,
    NamedRun { name: run, git, commit_first, models }: NamedRun<'_>,
) -> Vec<NextStep> {
    let step = |command: String, does| NextStep { command: format!("fledge {command}"), does };
    let has_changed = result.changed_paths().next().is_some();
    let is_in_place = result.worktree.is_none() && result.commit.is_none();
    let diff = || has_changed.then(|| step(format!("runs diff {run}"), "see what changed"));
    let undo = || (has_changed && is_in_place).then(|| step(format!("runs undo {run}"), "put the files back"));
    let log =
        || failed_step(result).map(|name| step(format!("runs logs {run} {}", shell_word(&name)), "read the output"));
    let go_on = |text: &str| Some(step(format!("runs continue {run} \"{text}\""), "continue the conversation"));
    let resume = |does| Some(step(format!("runs resume {run}"), does));
    let raise = || {
        let is_gone = result.worktree.as_ref().is_some_and(|worktree| worktree.state == WorkplaceState::Removed);
        let limit = result.reason.limit().filter(|_| !is_gone)?;
        let command = format!("runs resume {run} {} {}", limit.flag(), higher(limit, result));
        Some(step(command, "continue with a higher limit"))
    };
    let steps = match result.reason {
        Reason::Verified if proof_of(result).is_some() && result.commit.is_none() => {
            let apply = || step(format!("apply {run} --branch NAME"), "commit the work to a branch");
            let after = |apply: NextStep| match commit_first {
                "" => apply,
                first => {
                    NextStep { command: format!("{first} && {}", apply.command), does: "commit the work after yours" }
                }
            };
            vec![diff(), (has_changed && git.is_some()).then(|| after(apply())), undo()]
        }
        Reason::Verified if result.commit.is_some() => {
            let branch = result.worktree.as_ref().map(|worktree| worktree.branch.as_str());
            let merge =
                |(git, branch)| NextStep { command: format!("{git} merge {}", shell_word(branch)), does: "merge it" };
            vec![diff(), git.zip(branch).map(merge)]
        }
        Reason::Verified | Reason::Skipped => vec![diff(), undo()],
        Reason::Cancelled if result.stopped_by == Some(StopCause::Terminate) => {
            vec![resume("continue"), diff(), undo()]
        }
        Reason::Blocked => vec![resume("continue later"), diff(), undo()],
        Reason::NotDelivered => {
            let apply = step(format!("apply {run} --branch NAME"), "commit the work to another branch");
            vec![Some(apply), resume("try the commit again"), diff()]
        }
        Reason::IoError => vec![resume("continue once files can be written")],
        Reason::BadInput | Reason::PlanFailed | Reason::NoSandbox => {
            vec![Some(step("doctor".into(), "check the environment"))]
        }
        Reason::GateErrored => vec![log(), Some(step("doctor".into(), "check the environment")), undo()],
        Reason::ProviderFailed | Reason::Refused | Reason::EmptyResponse | Reason::ModelProtocol => {
            let names: String = models.iter().map(|model| format!(" {}", shell_word(model))).collect();
            vec![Some(step(format!("models check{names}"), "check that each model answers")), diff(), undo()]
        }
        Reason::GateFailed | Reason::Stuck => vec![log(), diff(), raise(), go_on("…")],
        Reason::MaxTurns
        | Reason::BudgetTokens
        | Reason::BudgetMoney
        | Reason::BudgetTime
        | Reason::LoopDetected
        | Reason::GateTampered
        | Reason::Cancelled => vec![raise(), diff(), go_on("…"), undo()],
        Reason::Internal => Vec::new(),
    };
    steps.into_iter().flatten().collect()
}

/// The least tokens and the least money, in millionths of a US dollar, of a higher limit. A low
/// limit may end a run because of what its next call could take.
const LEAST_TOKENS: u64 = 100_000;
const LEAST_MICROS: u64 = 1_000_000;

/// Returns twice the limit that ended a run, or twice what the run used if that is more. For
/// retries, it is three more.
fn higher(limit: LimitName, result: &TaskResult) -> String {
    let (limits, used) = (&result.limits, &result.usage.total);
    let count = |number: u64| number.saturating_mul(2).min(u64::from(u32::MAX)).to_string();
    match limit {
        LimitName::Retries => (result.attempts.len() + 2).min(100).to_string(),
        LimitName::Turns => count(limits.turns),
        LimitName::Tokens => count(limits.tokens.unwrap_or(0).max(used.total()).max(LEAST_TOKENS / 2)),
        LimitName::Cost => {
            let micros = limits.usd_micros.unwrap_or(0).max(used.cost_micros.unwrap_or(0));
            let micros = micros.saturating_mul(2).max(LEAST_MICROS);
            let dollars = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
            dollars.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        LimitName::Time => show_duration(Duration::from_millis(limits.time_ms.saturating_mul(2))),
    }
}

/// Returns the first step that failed in the newest verdict and has a log.
fn failed_step(result: &TaskResult) -> Option<String> {
    let steps = &result.attempts.last()?.verdict.steps;
    steps
        .iter()
        .find(|step| step.status.is_failure() && step.log.is_some())
        .map(|step| format!("{}/{}", step.lane, step.step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elapsed::Elapsed;
    use crate::run::{ChangedFile, ChangedLines, Event, Run, TreeDifference};

    fn result(reason: Reason) -> TaskResult {
        let mut run = Run::new();
        run.handle(Elapsed(5), Event::CancelRequested { cause: StopCause::Interrupt, partial_text: String::new() });
        let result = TaskResult { reason, turns: 3, duration_ms: 41_200, ..run.result().unwrap() };
        TaskResult { message: reason.row().meaning.into(), ..result }
    }

    fn changed(result: TaskResult) -> TaskResult {
        let file = ChangedFile {
            path: "src/lib.rs".into(),
            from: None,
            mode_before: Some("100644".into()),
            mode: Some("100644".into()),
            lines: Some(ChangedLines { added: 2, removed: 2 }),
        };
        TaskResult { difference: Some(Box::new(TreeDifference::new([file]))), ..result }
    }

    fn line(result: &TaskResult) -> String {
        let Headline { lead, rest, .. } = headline(result);
        lead + &rest
    }

    fn commands(result: &TaskResult) -> Vec<String> {
        steps(result, true)
    }

    fn steps(result: &TaskResult, has_repository: bool) -> Vec<String> {
        next_steps(
            result,
            NamedRun { name: "last", git: has_repository.then_some("git"), commit_first: "", models: &[] },
        )
        .into_iter()
        .map(|step| step.command)
        .collect()
    }

    #[test]
    fn an_ending_is_one_line_with_time_change_and_cost() {
        let mut verified = changed(result(Reason::Verified));
        verified.usage.total.cost_micros = Some(40_000);
        assert_eq!(line(&verified), "✓ Verified in 41.2s · src/lib.rs +2 -2 · $0.0400");
        verified.usage.total.estimated_tokens = 7;
        assert_eq!(line(&verified), "✓ Verified in 41.2s · src/lib.rs +2 -2 · about $0.0400");
        assert_eq!(line(&changed(result(Reason::Cancelled))), "✗ Cancelled after 41.2s · src/lib.rs +2 -2");
        let failed = TaskResult { message: "failed: verify/test".into(), ..result(Reason::GateFailed) };
        assert_eq!(line(&failed), "✗ Failed: verify/test");
    }

    #[test]
    fn no_ending_has_an_internal_word() {
        for reason in Reason::ALL {
            let line = line(&result(reason));
            assert!(!line.contains('_') && line.starts_with(['✓', '✗']), "{line}");
        }
    }

    #[test]
    fn each_ending_names_commands_that_make_sense() {
        let wanted = |reason| commands(&changed(result(reason)));
        assert_eq!(wanted(Reason::Skipped), ["fledge runs diff last", "fledge runs undo last"]);
        let (diff, resume) = ("fledge runs diff last", "fledge runs resume last");
        let (go_on, undo) = ("fledge runs continue last \"…\"", "fledge runs undo last");
        assert_eq!(wanted(Reason::GateFailed), [diff, &format!("{resume} --max-retries 2"), go_on]);
        assert_eq!(wanted(Reason::Stuck), [diff, go_on]);
        assert_eq!(wanted(Reason::BudgetTime), [&format!("{resume} --max-time 2h"), diff, go_on, undo]);
        assert_eq!(wanted(Reason::Blocked)[0], "fledge runs resume last");
        assert_eq!(wanted(Reason::PlanFailed), ["fledge doctor"]);
        let terminated = TaskResult { stopped_by: Some(StopCause::Terminate), ..result(Reason::Cancelled) };
        assert_eq!(commands(&terminated), ["fledge runs resume last"]);
        assert_eq!(commands(&result(Reason::Skipped)), [""; 0]);
    }
}
