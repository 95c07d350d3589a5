//! `shell-exec`: runs a command line with `sh` in the root of the workspace. No process of the
//! command survives the call.

use super::tool_context::{MAX_FILE, OUTPUT, ToolContext};
use super::{Call, Progress, Run, Tool, ToolEffect, ToolError, ToolFlags, bound};
use crate::chat::OutcomeDetail;
use crate::chat::ToolOutcome;
use crate::duration::milliseconds;
use crate::limits;
use crate::process::{self, EndedProcess, Invocation, ProcessEnd};
use crate::task::Tier;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The maximum number of bytes of an unfinished line that are withheld from the progress.
const MAX_HELD: usize = 4096;

pub(super) const TOOL: Tool = Tool {
    name: "shell-exec",
    description: "Run a command with `sh -c` in the workspace root. No input; nothing it starts outlives the call.",
    flags: ToolFlags { effect: ToolEffect::Mutating, dangerous: true, tier: Tier::Code },
    schema,
    run: Run::Process(run),
};

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["command"], "properties": {
        "command": {"type": "string"},
        "timeout": {"type": "integer", "minimum": 1, "description": "seconds"}
    }})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    timeout: Option<NonZeroU64>,
}

fn run<'a>(
    context: &'a ToolContext,
    call: &'a Call,
    progress: Progress<'a>,
) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
    Box::pin(execute(context, call, progress))
}

async fn execute(context: &ToolContext, call: &Call, progress: Progress<'_>) -> Result<ToolOutcome, ToolError> {
    let arguments: Arguments = call.arguments()?;
    let asked = arguments.timeout.map_or(context.shell_timeout, |seconds| Duration::from_secs(seconds.get()));
    let timeout = asked.min(context.shell_timeout);
    let invocation = Invocation {
        program: "/bin/sh".into(), // by path: PATH may lead to a program that the agent wrote
        args: vec!["-c".into(), arguments.command],
        dir: context.jail.root().into(),
        env: context.env.clone().into(),
        timeout: Some(timeout),
        grace: limits::GRACE,
        linger: limits::LINGER,
        log: Some(context.output_file(call.id)?),
        log_limit: MAX_FILE / 2,
    };
    let lines = WholeLines { held: Mutex::default(), progress };
    let ended = process::run_within(context.bounds, invocation, &call.stop, &|bytes| lines.take(bytes)).await;
    lines.end();
    Ok(outcome(context, call, &ended, timeout))
}

fn outcome(context: &ToolContext, call: &Call, ended: &EndedProcess, timeout: Duration) -> ToolOutcome {
    let (said, exit_code, signal) = match &ended.end {
        ProcessEnd::Exited(code) => (format!("exit code {code}"), Some(*code), None),
        ProcessEnd::Signalled(signal) => (format!("killed by signal {signal}"), None, Some(*signal)),
        ProcessEnd::TimedOut => (format!("timed out after {} s and was killed", timeout.as_secs_f64()), None, None),
        ProcessEnd::Stopped => ("stopped: the run was cancelled".into(), None, None),
        ProcessEnd::Exceeded(how) => (format!("the command and all that it started were ended: {how}"), None, None),
        ProcessEnd::NotStarted(why) => (format!("could not be started: {}", bound::line(why, 400)), None, None),
    };
    let mut content = said + "\n";
    if ended.leaked {
        content.push_str("[fledge killed processes that the command left behind]\n");
    }
    let room = context.max_result.saturating_sub(content.len() + bound::NOTE);
    content.push_str(&ended.output.text(room));
    if ended.output.total > room as u64 {
        content.push_str(&format!("\n[{} bytes in all: files-read {OUTPUT}{}]", ended.output.total, call.id));
    } else if let Ok(place) = context.output(call.id) {
        let _ = place.delete(); // the result shows the whole output
    }
    ToolOutcome {
        is_error: !matches!(ended.end, ProcessEnd::Exited(_)), // a command that fails has still done what was asked
        detail: OutcomeDetail::Output {
            exit_code,
            signal,
            timed_out: ended.end == ProcessEnd::TimedOut,
            duration_ms: milliseconds(ended.duration),
        },
        ..ToolOutcome::ok(content)
    }
}

/// Passes output on as whole lines, so that no character is split between two pieces.
struct WholeLines<'p> {
    held: Mutex<Vec<u8>>,
    progress: Progress<'p>,
}

impl WholeLines<'_> {
    fn take(&self, bytes: &[u8]) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.extend_from_slice(bytes);
        let whole = match held.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if held.len() > MAX_HELD => held.len(),
            None => return,
        };
        let whole: Vec<u8> = held.drain(..whole).collect();
        (self.progress)(String::from_utf8_lossy(&whole).into_owned());
    }

    fn end(self) {
        let held = self.held.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !held.is_empty() {
            (self.progress)(String::from_utf8_lossy(&held).into_owned());
        }
    }
}
