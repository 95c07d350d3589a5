//! Lines about sub-agents, between the lines of the run, each behind the path of its sub-agent.
//! Several may work at once, so their text is not streamed; the result of the call that started
//! them has it.

use super::call::{GIST, cut};
use super::{RunDisplay, gist_of_args, upshot, verb};
use crate::cli::paint::{self, Tone};
use crate::report::seconds;
use crate::run::AgentEvent;
use crate::verdict::Reason;

impl RunDisplay {
    /// Shows one event of the sub-agent with this path.
    pub(in crate::cli) fn show_of(&mut self, path: &str, event: &AgentEvent) {
        let mark = format!("  {path} ┆ ");
        let plain = |tone: Tone, text: String| vec![(Tone::Faint, mark.clone()), (tone, paint::one_line(&text))];
        let line = match event {
            AgentEvent::Started { title, .. } => plain(Tone::Strong, format!("started: {title}")),
            AgentEvent::Finished { reason: Reason::Skipped, .. } => plain(Tone::Strong, "done".into()),
            AgentEvent::Finished { message, .. } => plain(Tone::Bad, format!("ended: {message}")),
            AgentEvent::ToolResult { success, .. } => {
                self.nested.insert(path.to_owned(), *success);
                return;
            }
            AgentEvent::ToolDetail { name, args, denied, duration_ms, output, change, detail, .. } => {
                let succeeded = self.nested.get(path).copied().unwrap_or(true);
                let (tone, result) = upshot(*denied, succeeded, change.is_some(), output, detail);
                let slow = if *duration_ms >= 1000 { format!(" ({})", seconds(*duration_ms)) } else { String::new() };
                let mut line = plain(Tone::Plain, format!("{} {}", verb(name), cut(&gist_of_args(args), GIST)));
                line.extend([(tone, format!("  {}", paint::one_line(&result))), (Tone::Faint, slow)]);
                line
            }
            AgentEvent::Retry { what, tries, wait_ms, error } => {
                plain(Tone::Warn, format!("{what} failed ({error}); try {} in {}", tries + 1, seconds(*wait_ms)))
            }
            AgentEvent::Confirmation { name, approved: Some(approved), .. } => {
                plain(Tone::Warn, format!("{name} was {}", if *approved { "approved" } else { "denied" }))
            }
            AgentEvent::Limit { reason } => plain(Tone::Warn, reason.row().meaning.to_owned()),
            AgentEvent::Warning(message) => plain(Tone::Warn, message.clone()),
            _ => return,
        };
        self.clear();
        paint::line(&line);
        let doing = std::mem::take(&mut self.doing);
        self.start_activity(doing);
    }
}
