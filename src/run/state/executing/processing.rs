//! Evaluation of a complete answer of the model. It is not a state: it runs within the event that
//! brought the answer.

use super::super::NextState;
use super::turn::ToolTurn;
use crate::chat::{Block, Message, Reply, StopReason, text_of};
use crate::id::CallId;
use crate::limits::ANSWER;
use crate::run::answer;
use crate::run::context::RunContext;
use crate::run::prompt;
use crate::run::query::{self, ModelQuery};
use crate::verdict::Reason;

/// Books the answer, adds it to the conversation, and decides the next transition.
pub(super) fn process(call: CallId, mut reply: Reply, cx: &mut RunContext) -> NextState {
    cx.charge_reply(call, &reply);
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
            let message = text_of(&reply.content);
            keep_words(reply, cx);
            NextState::end(
                Reason::Refused,
                if message.trim().is_empty() { "the model refused".into() } else { message },
            )
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

/// Warns once for each model that its server omits the end marker of an answer.
fn warn_of_its_end(cx: &mut RunContext) {
    let model = cx.spec.models.get(cx.model).map_or("the model", String::as_str);
    cx.warn_once(format!(
        "the server of {model} does not mark the end of an answer (`[DONE]`, a finish reason or `message_stop`): \
         fledge accepts complete answers without the mark"
    ));
}

/// Handles an answer without text or calls: asks the model once to continue, then ends the run. An
/// empty answer never means "done".
fn empty(reply: Reply, cx: &mut RunContext) -> NextState {
    if cx.streaks.empties > 1 {
        return NextState::end(Reason::EmptyResponse, Reason::EmptyResponse.row().meaning);
    }
    if reply.stop == StopReason::ToolUse {
        cx.warn("the model awaits tools but called none: fledge asked it to continue".into());
    }
    keep_words(reply, cx);
    cx.transcript.say(prompt::NUDGE.into());
    NextState::CallModel
}

/// Returns true if fledge set the limit that the answer met and the model allows longer answers.
/// The limit is raised once, and this does not count as a continuation.
fn may_be_longer(cx: &RunContext) -> bool {
    let terms = cx.spec.terms_of(cx.model);
    let is_ours = terms.max_output_tokens.is_none() && !cx.raised;
    is_ours && terms.largest_output.is_some_and(|largest| largest > ANSWER)
}

/// Asks the model to continue, a limited number of times. A call that was cut off never runs, even
/// if it can be parsed.
fn cut_off(reply: Reply, cx: &mut RunContext) -> NextState {
    if cx.streaks.continuations > cx.spec.limits.continuations {
        let what = if reply.stop == StopReason::Pause { "paused" } else { "reached its output limit" };
        return NextState::end(Reason::ModelProtocol, format!("the model {what} too often"));
    }
    let had_calls = reply.tool_calls().next().is_some();
    if reply.stop == StopReason::Pause && !had_calls {
        keep_words(reply, cx);
        return NextState::CallModel;
    }
    keep_words(reply, cx);
    cx.transcript.say(if had_calls { prompt::CUT_CALL } else { prompt::GO_ON }.into());
    NextState::CallModel
}

/// Keeps everything but tool calls if the answer has text. Providers would reject a message of
/// reasoning alone.
fn keep_words(reply: Reply, cx: &mut RunContext) {
    if !text_of(&reply.content).trim().is_empty() || reply.stop == StopReason::Pause {
        let content: Vec<Block> =
            reply.content.into_iter().filter(|block| !matches!(block, Block::ToolUse(_))).collect();
        if !content.is_empty() {
            cx.transcript.push(Message::assistant(content));
        }
    }
}

/// Handles an answer that says the task is done. A question in prose is answered first, and an
/// answer that does not fit the schema is sent back. Otherwise the gate runs.
fn said_it_is_done(text: &str, cx: &mut RunContext) -> NextState {
    let answer = cx.plan.output_schema.as_ref().map(|schema| answer::judge(schema, &cx.transcript.said_last()));
    let is_answer = matches!(answer, Some(Ok(_)));
    if !is_answer
        && cx.streaks.queries < cx.spec.limits.queries
        && cx.exhausted().is_none() // the model needs a turn to read the answer
        && let Some(query) = query::detect(text)
        && (cx.rule("files-read").is_some() || matches!(query, ModelQuery::Env { .. }))
    {
        cx.streaks.queries += 1;
        return NextState::Answer(query);
    }
    match answer {
        Some(Err(why)) => {
            cx.answer = None;
            return NextState::Reject(why);
        }
        Some(Ok(value)) => cx.answer = Some(value),
        None => {}
    }
    if cx.spec.verify { NextState::Verify } else { NextState::end(Reason::Skipped, Reason::Skipped.row().meaning) }
}

/// Gives each call a unique id and queues it. A call that may not run gets its result at once.
fn use_tools(mut reply: Reply, cx: &mut RunContext) -> NextState {
    if reply.stop == StopReason::EndTurn {
        cx.warn_once("the model called a tool in an answer that ends its turn: fledge ran the tool".into());
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
    NextState::UseTools(turn)
}
