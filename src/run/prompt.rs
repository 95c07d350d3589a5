//! What the machine itself says to the model, state by state. One place, so that the wording can be read and judged as one.

use super::context::Context;
use crate::chat::{Message, text_of};
use crate::verdict::{Finding, Verdict};
use serde_json::Value;

/// After an answer that met the output limit.
pub(super) const GO_ON: &str = "Your answer was cut off by the output limit. Go on exactly where it stopped.";
/// After a tool call that met the output limit: it is never run, even if what came can be read.
pub(super) const CUT_CALL: &str = "Your answer was cut off by the output limit in the middle of a tool call; nothing of it was run. Do it in smaller pieces.";
/// After an answer with nothing in it.
pub(super) const NUDGE: &str = "Your answer was empty. Go on with the task by calling a tool; if it is done, say in a sentence or two what you did.";
/// When alike calls reach half of the loop threshold.
pub(super) const REPETITIVE: &str =
    "You have made nearly the same call several times with the same result. Try something else, or finish.";
/// Warns a model that changes the files to and fro.
pub(super) const TO_AND_FRO: &str = "The files are again exactly as they were after an earlier turn: you change them to and fro. Try something else, or finish.";
/// The result of a sub-agent for which nothing is left to spend.
pub(super) const NO_SHARE: &str = "too little of this run's budget is left for a sub-agent: do the work yourself";
/// Results of calls that will never run.
pub(super) const NOT_RUN: &str = "not run: the run ended before this call";
/// Results of calls that were stopped in the middle.
pub(super) const OUTCOME_UNKNOWN: &str = "the run ended while this call was running: what it did is not known";

/// The gate failed: what the model is told, with how often it may try again.
pub(super) fn gate_failed(verdict: &Verdict, retries_left: u32) -> String {
    let more = attempts_left(retries_left);
    let what = match verdict.unchanged_since {
        Some(0) => "You finished, and no file differs from the base, on which the project's checks fail.",
        Some(_) => "You finished with the same files on which the project's checks have failed.",
        None => "The project's checks were run on your work and failed.",
    };
    format!("{what} Mend the cause and finish again. {more}\n\n{}", verdict.feedback)
}

/// The final answer is not of the form that was asked for.
pub(super) fn wrong_answer(why: &str, retries_left: u32) -> String {
    format!("{why}\n\nThe checks were not run. Give the whole answer again. {}", attempts_left(retries_left))
}

fn attempts_left(retries_left: u32) -> String {
    match retries_left {
        0 => "This is the last attempt.".to_owned(),
        1 => "After this, one more attempt is left.".to_owned(),
        n => format!("After this, {n} more attempts are left."),
    }
}

/// Protected paths had been changed. `feedback` says what became of them.
pub(super) fn tampered(findings: &[Finding], feedback: &str, retries_left: u32) -> String {
    let mut text = String::from(
        "Files that define the checks were changed, so nothing was judged. Do the task without changing them:\n",
    );
    for finding in findings {
        text.push_str(&format!("- {} ({}): {}\n", finding.path, finding.change, finding.rule));
    }
    text.push_str(feedback);
    text.push_str(&format!("Attempts left after this one: {retries_left}. A second time ends the run."));
    text
}

/// What was looked up for a question in prose.
pub(super) fn answered(answer: &str) -> String {
    format!("You asked for this; next time call the tool.\n\n{answer}")
}

/// What stands in for the older part of a conversation: the task in its own words, a summary, and what the checks said last, unless that is
/// still to be read.
pub(super) fn summary(cx: &Context, summary: &str, upto: usize) -> String {
    let mut text = format!("The task:\n\n{}\n\nThe conversation so far, summarised:\n\n{summary}", cx.charter.prompt);
    if let Some(schema) = &cx.plan.output_schema {
        text.push_str(&format!("\n\n{}", output_schema(schema)));
    }
    let feedback = cx.ledger.attempts.last().map_or("", |attempt| attempt.verdict.feedback.as_str());
    let is_there = |message: &Message| text_of(&message.content).contains(feedback);
    if !feedback.is_empty() && !cx.transcript.messages().iter().skip(upto).any(is_there) {
        text.push_str(&format!("\n\nWhat the project's checks said last:\n\n{feedback}"));
    }
    text
}

/// What is said of the form that the final answer must have.
pub fn output_schema(schema: &Value) -> String {
    format!(
        "The final answer, when everything is done, is one JSON value of this JSON Schema and nothing else, bare or in one ```json block:\n\
         ```json\n{schema:#}\n```"
    )
}
