//! Messages of the machine to the model. They are in one place so that their wording can be
//! reviewed as a whole.

use super::context::RunContext;
use crate::chat::{Message, text_of};
use crate::verdict::{TamperFinding, Verdict};
use serde_json::Value;

/// Sent after an answer that met the output limit.
pub(super) const GO_ON: &str = "The output limit cut off your answer. Continue exactly where it stopped.";
/// Sent after a tool call that met the output limit. Such a call never runs, even if it can be
/// parsed.
pub(super) const CUT_CALL: &str =
    "The output limit cut off your answer in the middle of a tool call. No call ran. Use smaller pieces.";
/// Sent after an empty answer.
pub(super) const NUDGE: &str =
    "Your answer was empty. Call a tool to continue. If the task is done, say in a sentence or two what you did.";
/// Sent when similar calls reach half of the loop threshold.
pub(super) const REPETITIVE: &str =
    "You made nearly the same call several times with the same result. Try something else, or finish.";
/// Sent to a model that changes the files back and forth.
pub(super) const TO_AND_FRO: &str = "The files are again exactly as after an earlier turn: \
    you change them back and forth. Try something else, or finish.";
/// The result of a sub-agent call when too little budget is left for it.
pub(super) const NO_SHARE: &str = "too little of this run's budget is left for a sub-agent: do the work yourself";
/// The result of a call that never ran.
pub(super) const NOT_RUN: &str = "not run: the run ended before this call";
/// The result of a call that was stopped while it ran.
pub(super) const OUTCOME_UNKNOWN: &str = "the run ended while this call was running: what it did is not known";

/// Returns the message after a failed gate, with the number of attempts left.
pub(super) fn gate_failed(verdict: &Verdict, retries_left: u32) -> String {
    let more = attempts_left(retries_left);
    let what = match verdict.unchanged_since {
        Some(0) => "You finished, but no file differs from the base, and the project's checks fail on the base.",
        Some(_) => "You finished with the same files on which the project's checks already failed.",
        None => "The project's checks ran on your work and failed.",
    };
    format!("{what} Fix the cause, then finish again. {more}\n\n{}", verdict.feedback)
}

/// Returns the message after a final answer that does not fit the schema.
pub(super) fn wrong_answer(why: &str, retries_left: u32) -> String {
    format!("{why}\n\nThe checks did not run. Give the whole answer again. {}", attempts_left(retries_left))
}

fn attempts_left(retries_left: u32) -> String {
    match retries_left {
        0 => "This is the last attempt.".to_owned(),
        1 => "After this, one more attempt is left.".to_owned(),
        n => format!("After this, {n} more attempts are left."),
    }
}

/// Returns the message after changes of protected paths. `feedback` says what happened to those
/// paths.
pub(super) fn tampered(findings: &[TamperFinding], feedback: &str, retries_left: u32) -> String {
    let mut text = String::from(
        "Files that define the checks were changed, so the checks did not run. \
         Do the task without changing these files:\n",
    );
    for finding in findings {
        text.push_str(&format!("- {} ({}): {}\n", finding.path, finding.change, finding.rule));
    }
    text.push_str(feedback);
    text.push_str(&format!("Attempts left after this one: {retries_left}. If you change them again, the run ends."));
    text
}

/// Returns the answer to a question in prose.
pub(super) fn answered(answer: &str) -> String {
    format!("You asked for this. Next time, call the tool.\n\n{answer}")
}

/// Returns the replacement for the first `upto` messages: the task's text, the summary, and the
/// last feedback of the checks. The feedback is left out if a later message still contains it.
pub(super) fn summary(cx: &RunContext, summary: &str, upto: usize) -> String {
    let mut text = format!("The task:\n\n{}\n\nThe conversation so far, summarised:\n\n{summary}", cx.spec.prompt);
    if let Some(schema) = &cx.plan.output_schema {
        text.push_str(&format!("\n\n{}", output_schema(schema)));
    }
    let feedback = cx.ledger.attempts.last().map_or("", |attempt| attempt.verdict.feedback.as_str());
    let is_there = |message: &Message| text_of(&message.content).contains(feedback);
    if !feedback.is_empty() && !cx.transcript.messages().iter().skip(upto).any(is_there) {
        text.push_str(&format!("\n\nLast report of the project's checks:\n\n{feedback}"));
    }
    text
}

/// Returns the instruction for the form of the final answer.
pub fn output_schema(schema: &Value) -> String {
    format!(
        "When everything is done, answer with one JSON value that matches this JSON Schema, and nothing else. \
         Give it bare or in one ```json block:\n\
         ```json\n{schema:#}\n```"
    )
}
