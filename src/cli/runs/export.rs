//! `fledge runs export`: the journal of a run as JSON lines that can be read back and verified, or
//! its conversation and state.

use super::super::failure::CliError;
use super::super::output::{no_output, print_data, print_json};
use super::super::output_path::find_output;
use super::super::record::{self, find_output_beside_git};
use super::{RunsContext, data, failed, story};
use crate::chat::{Block, Message, Role, ToolCall};
use crate::driver::ResumeError;
use crate::report::story::{RunStory, SceneKind};
use crate::run::StateName;
use crate::store::RunRow;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "The first line is the head of the run; each further line is a record: seq, at_ms, kind, data, hash. \
    The hash is the SHA-256\n\
    digest of the previous hash, seq and at_ms (8 bytes each, big-endian), the SHA-256 digest of data as written in \
    the line, and\n\
    kind. The hash of the head is the digest of `[head,task]` as written there.\n\n\
    Examples:\n  fledge runs export last | jq .kind\n  fledge runs export 0198f2 --cassette -o answers.yaml"
)]
pub(in crate::cli) struct ExportArguments {
    /// Run: the start of its id, its run key, `last`, or `last-failed`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Export the conversation and the state as one JSON document
    #[arg(long)]
    thread: bool,
    /// Export the models' answers as a cassette to play again
    #[arg(long, conflicts_with = "thread")]
    cassette: bool,
    /// Write to FILE, readable by its owner only, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Exports a run; returns the exit code.
pub(super) fn export(shelf: &RunsContext, arguments: &ExportArguments) -> Result<u8, CliError> {
    let place = if arguments.cassette { find_output_beside_git } else { find_output };
    let output = arguments.output.as_ref().map(|path| place("--output", path, &shelf.workspace)).transpose()?;
    let (store, row) = shelf.find(&arguments.run)?;
    if arguments.cassette {
        let text = record::text(&store, &row.head.id)?;
        match output {
            Some(output) => output.write(text.as_bytes(), &|| true).map_err(CliError::own)?,
            None => print_data(text.strip_suffix('\n').unwrap_or(&text)).map_err(no_output)?,
        }
        return Ok(0);
    }
    let mut whole = String::new();
    let mut put = |line: &str| match &arguments.output {
        None => print_json(line).map_err(no_output),
        Some(_) => {
            whole.push_str(line);
            whole.push('\n');
            Ok(())
        }
    };
    if arguments.thread {
        let (story, failure) = story(&store, &row);
        failure.map_or(Ok(()), Err)?;
        put(&thread(&row, &story).to_string())?;
    } else {
        crate::driver::export(&store, &row, |line| put(line).map_err(ExportStop::Unwritten)).map_err(CliError::from)?;
    }
    // Written completely or not at all, once everything was read.
    output.map_or(Ok(()), |output| output.write(whole.as_bytes(), &|| true).map_err(CliError::own))?;
    Ok(0)
}

/// The reason why an export stopped before the end of the journal.
enum ExportStop {
    Unread(ResumeError),
    Unwritten(CliError),
}

impl From<ResumeError> for ExportStop {
    fn from(fault: ResumeError) -> Self {
        Self::Unread(fault)
    }
}

impl From<ExportStop> for CliError {
    fn from(stopped: ExportStop) -> Self {
        match stopped {
            ExportStop::Unread(ResumeError::Store(error)) => failed(error),
            ExportStop::Unread(fault) => Self::own(fault),
            ExportStop::Unwritten(failure) => failure,
        }
    }
}

/// Returns the conversation so far, the state of the agent, and the system prompt and tools of each
/// model call.
fn thread(row: &RunRow, story: &RunStory) -> Value {
    let run = &story.run;
    json!({
        "schema_version": data::RUNS_SCHEMA_VERSION,
        "run": row.head.id,
        "title": row.head.title,
        "agent_state": { "kind": run.state(), "doing": run.label(), "pending_tool_calls": pending(story) },
        "system": run.system(),
        "tools": run.tools(),
        "conversation": { "messages": run.conversation().iter().map(plain_message).collect::<Vec<_>>() },
    })
}

/// Returns the tool calls without a result as JSON.
fn pending(story: &RunStory) -> Vec<Value> {
    let calls = pending_calls(story);
    calls.iter().map(|call| with_plain_input(json!(call), call)).collect()
}

/// Returns a message with its calls' arguments as plain JSON.
fn plain_message(message: &Message) -> Value {
    let plain = |block: &Block| match block {
        Block::ToolUse(call) => with_plain_input(json!(block), call),
        Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::ToolResult(_) | Block::Opaque { .. } => {
            json!(block)
        }
    };
    json!({ "role": message.role, "content": message.content.iter().map(plain).collect::<Vec<_>>() })
}

fn with_plain_input(mut data: Value, call: &ToolCall) -> Value {
    data["input"] = call.input.to_value();
    data
}

/// Returns the tool calls without a result. These are the calls of the model's newest message that
/// have not ended, if it is the last message and the run has not ended.
pub(super) fn pending_calls(story: &RunStory) -> Vec<ToolCall> {
    let last = story.run.conversation().last().filter(|last| last.role == Role::Assistant);
    let is_active = story.run.state() == StateName::Executing;
    let call = |block: &'_ Block| match block {
        Block::ToolUse(call) => Some(call.clone()),
        Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::ToolResult(_) | Block::Opaque { .. } => {
            None
        }
    };
    let last = last.filter(|_| is_active);
    let mut calls: Vec<_> = last.map(|last| last.content.iter().filter_map(call).collect()).unwrap_or_default();
    let newest = story.scenes.iter().rev().filter(|scene| scene.of.is_none());
    for scene in newest.take_while(|scene| !matches!(scene.what, SceneKind::Turn { .. })) {
        if let SceneKind::Tool(tool) = &scene.what
            && let Some(ended) =
                calls.iter().position(|call| call.name == tool.name && call.input.to_value() == tool.args)
        {
            calls.remove(ended);
        }
    }
    calls
}
