//! What the machine itself says to the model, state by state. One place, so that the wording can be read and judged as one.

use crate::verdict::Finding;

/// After an answer that met the output limit.
pub(super) const GO_ON: &str = "Your answer was cut off by the output limit. Go on exactly where it stopped.";
/// After a tool call that met the output limit: it is never run, even if what came can be read.
pub(super) const CUT_CALL: &str = "Your answer was cut off by the output limit in the middle of a tool call; nothing of it was run. Do it in smaller pieces.";
/// After an answer with nothing in it.
pub(super) const NUDGE: &str = "Your answer was empty. Go on with the task by calling a tool; if it is done, say in a sentence or two what you did.";
/// When alike calls reach half of the loop threshold.
pub(super) const REPETITIVE: &str =
    "You have made nearly the same call several times with the same result. Try something else, or finish.";
/// Results of calls that will never run.
pub(super) const NOT_RUN: &str = "not run: the run ended before this call";
/// Results of calls that were stopped in the middle.
pub(super) const OUTCOME_UNKNOWN: &str = "the run ended while this call was running: what it did is not known";

/// The gate failed: what the model is told, with how often it may try again.
pub(super) fn gate_failed(feedback: &str, retries_left: u32) -> String {
    let more = match retries_left {
        0 => "This is the last attempt.".to_owned(),
        1 => "After this, one more attempt is left.".to_owned(),
        n => format!("After this, {n} more attempts are left."),
    };
    format!(
        "The project's checks were run on your work and failed. Mend the cause and finish again. {more}\n\n{feedback}"
    )
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

/// A summary that stands in for the older part of a conversation.
pub(super) fn summary(prompt: &str, summary: &str) -> String {
    format!("The task:\n\n{prompt}\n\nThe conversation so far, summarised:\n\n{summary}")
}
