//! What a whole answer of the model means. Transient: it is left inside the event that brought the answer.

use super::super::Next;
use super::turn::ToolTurn;
use crate::chat::{Block, Message, Reply, StopReason, text_of};
use crate::id::CallId;
use crate::limits::ANSWER;
use crate::run::answer;
use crate::run::context::Context;
use crate::run::prompt;
use crate::run::query::{self, Query};
use crate::verdict::Reason;

/// Books the answer, keeps it in the conversation, and decides where it leads.
pub(super) fn process(call: CallId, mut reply: Reply, cx: &mut Context) -> Next {
    cx.book_reply(call, &reply);
    if reply.lacks_end {
        warn_of_its_end(cx);
    }
    reply.content.retain(|block| !matches!(block, Block::ToolResult(_)));
    let streaks = cx.streaks;
    cx.streaks.continuations = 0;
    cx.streaks.empties = 0;
    cx.streaks.queries = 0;
    match reply.stop {
        StopReason::Refusal => {
            let said = text_of(&reply.content);
            keep_words(reply, cx);
            Next::end(Reason::Refused, if said.trim().is_empty() { "the model refused".into() } else { said })
        }
        StopReason::OutputLimit | StopReason::Pause => {
            let is_raised = reply.stop == StopReason::OutputLimit && may_be_longer(cx);
            cx.raised |= is_raised;
            cx.streaks.continuations = streaks.continuations + u32::from(!is_raised);
            cut_off(reply, cx)
        }
        StopReason::EndTurn | StopReason::ToolUse if reply.tool_calls().next().is_some() => use_tools(reply, cx),
        StopReason::EndTurn | StopReason::ToolUse => {
            let text = text_of(&reply.content);
            if text.trim().is_empty() || reply.stop == StopReason::ToolUse {
                cx.streaks.empties = streaks.empties + 1;
                return empty(reply, cx);
            }
            cx.streaks.queries = streaks.queries;
            keep_words(reply, cx);
            said_it_is_done(&text, cx)
        }
    }
}

/// Says once of each model that its server leaves out what ends an answer.
fn warn_of_its_end(cx: &mut Context) {
    let model = cx.charter.models.get(cx.model).map_or("the model", String::as_str);
    let warning = format!(
        "the server of {model} left out what ends an answer (`[DONE]`, a finish reason or `message_stop`): \
         complete answers are accepted without it"
    );
    if !cx.ledger.warnings.contains(&warning) {
        cx.warn(warning);
    }
}

/// Neither an answer nor a call: one nudge, then the end, never "done".
fn empty(reply: Reply, cx: &mut Context) -> Next {
    if cx.streaks.empties > 1 {
        return Next::end(Reason::EmptyResponse, Reason::EmptyResponse.row().meaning);
    }
    if reply.stop == StopReason::ToolUse {
        cx.warn("the model waits for tools and called none: it was asked to go on".into());
    }
    keep_words(reply, cx);
    cx.transcript.say(prompt::NUDGE.into());
    Next::CallModel
}

/// Whether the bound that an answer met was ours, and the model can make longer ones: it is raised once, which is no continuation yet.
fn may_be_longer(cx: &Context) -> bool {
    let terms = cx.charter.terms_of(cx.model);
    let is_ours = terms.max_output_tokens.is_none() && !cx.raised && !cx.is_before(2);
    is_ours && terms.largest_output.is_some_and(|largest| largest > ANSWER)
}

/// Asked to go on, a bounded number of times. A call that was cut is never run, even if what came of it can be read.
fn cut_off(reply: Reply, cx: &mut Context) -> Next {
    if cx.streaks.continuations > cx.charter.limits.continuations {
        let what = if reply.stop == StopReason::Pause { "paused" } else { "met its output limit" };
        return Next::end(Reason::ModelProtocol, format!("the model {what} again and again"));
    }
    let had_calls = reply.tool_calls().next().is_some();
    if reply.stop == StopReason::Pause && !had_calls {
        keep_words(reply, cx);
        return Next::CallModel;
    }
    keep_words(reply, cx);
    cx.transcript.say(if had_calls { prompt::CUT_CALL } else { prompt::GO_ON }.into());
    Next::CallModel
}

/// Keeps everything but tool calls, when there is a word in it: a message of reasoning alone would be rejected.
fn keep_words(reply: Reply, cx: &mut Context) {
    if !text_of(&reply.content).trim().is_empty() || reply.stop == StopReason::Pause {
        let content: Vec<Block> =
            reply.content.into_iter().filter(|block| !matches!(block, Block::ToolUse(_))).collect();
        if !content.is_empty() {
            cx.transcript.push(Message::assistant(content));
        }
    }
}

/// The model says that it is done. A question in prose is answered instead, and an answer of the wrong form is sent back; otherwise the
/// gate has the word.
fn said_it_is_done(text: &str, cx: &mut Context) -> Next {
    let answer = cx.plan.output_schema.as_ref().map(|schema| answer::judge(schema, &cx.transcript.said_last()));
    let is_answer = matches!(answer, Some(Ok(_)));
    if !is_answer
        && cx.streaks.queries < cx.charter.limits.queries
        && cx.exhausted().is_none() // the model needs a turn to read the answer
        && let Some(query) = query::detect(text)
        && (cx.rule("files-read").is_some() || matches!(query, Query::Env { .. }))
    {
        cx.streaks.queries += 1;
        return Next::Answer(query);
    }
    match answer {
        Some(Err(why)) => {
            cx.answer = None;
            return Next::Reject(why);
        }
        Some(Ok(value)) => cx.answer = Some(value),
        None => {}
    }
    if cx.charter.verify { Next::Verify } else { Next::end(Reason::Skipped, Reason::Skipped.row().meaning) }
}

/// Gives every call an id of its own, then queues the calls; those that may not run have their result at once.
fn use_tools(mut reply: Reply, cx: &mut Context) -> Next {
    if reply.stop == StopReason::EndTurn {
        cx.warn("the model ended its turn and called a tool in it: the tool was run".into());
    }
    let turn_number = cx.ledger.turns;
    let mut turn = ToolTurn::default();
    let mut seen: Vec<String> = Vec::new();
    let calls = reply.content.iter_mut().filter_map(|block| match block {
        Block::ToolUse(call) => Some(call),
        Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::ToolResult(_) | Block::Opaque { .. } => {
            None
        }
    });
    for (place, call) in calls.enumerate() {
        let repeated = !call.id.is_empty() && seen.contains(&call.id);
        seen.push(call.id.clone());
        let wanted = if repeated { "" } else { call.id.as_str() };
        call.id = cx.transcript.take_id(wanted, turn_number, place);
        turn.queue(call.clone(), repeated, cx);
    }
    cx.transcript.push(Message::assistant(reply.content));
    Next::UseTools(turn)
}
