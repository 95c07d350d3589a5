//! A session with a server: start, use and end. The official SDK speaks the protocol, but fledge
//! provides the connection. So only `process` starts programs, and everything that a server sends
//! is read with a limit.

mod answer;
mod filter;
mod http;
mod stdio;

use super::catalog::{ServerTool, ToolCatalog};
use super::connection::ServerSandbox;
use super::server::{ServerConfig, ServerTransport};
use crate::process::sandbox::Sandbox;
use crate::process::{Dialogue, Invocation, StderrTail, visible};
use filter::FilteredTransport;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, Implementation, PaginatedRequestParams,
    PingRequest, ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stdio::{Probe, Probed, Stdio};

/// The time limit for a server to start and list its tools.
const BEGINNING: Duration = crate::limits::MCP_START;
/// The beginning of the error after that time.
const LATE: &str = "not ready within";
/// The time that a server has to end by itself after its input is closed.
const PARTING: Duration = Duration::from_millis(300);
/// The time limit for a server to show that it still listens.
const PING: Duration = Duration::from_secs(1);
/// The interval of checks whether a program that owes an answer still runs.
const PULSE: Duration = Duration::from_millis(100);
/// The maximum size of one message, in bytes.
const MAX_MESSAGE: usize = 8 * 1024 * 1024;
/// The maximum number of pages in a list of tools. No further page is read once [`MOST_LISTED`]
/// tools are listed.
const MOST_PAGES: usize = 64;
const MOST_LISTED: usize = 10_000;
/// The maximum size of a complaint shown to people or to a model, in bytes.
const MAX_WHY: usize = 400;

/// A session with a server.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) catalog: ToolCatalog,
    peer: Peer<RoleClient>,
    service: Mutex<Option<Service>>,
    dialogue: Mutex<Option<Dialogue>>,
    aside: Option<Arc<StderrTail>>,
    is_lost: AtomicBool,
}

type Service = RunningService<RoleClient, ClientConfig>;

/// The reason why a call has no result.
#[derive(Debug)]
pub(super) enum SessionError {
    /// The server or the SDK refused the call, with this message.
    Refused(String),
    /// The server is gone.
    Lost,
}

impl Session {
    /// Starts or reaches a server and asks for its tools. If this fails, no process of the server
    /// is left.
    ///
    /// # Errors
    /// A message that says why the server cannot be used.
    pub(super) async fn start(server: &ServerConfig, (place, placeholders): ServerSandbox<'_>) -> Result<Self, String> {
        if let Some(variable) = &server.lacks {
            return Err(format!("the variable `{variable}`, which its configuration names, is not set"));
        }
        let (command, env) = match &server.reach {
            ServerTransport::Http { url, headers } => {
                let begun = within(handshake(http::transport(url, headers)?, newest(), &server.name)).await;
                return begun.map(|begun| Self::of(begun, None));
            }
            ServerTransport::Program { command, env } => (command, env),
        };
        let inner = place.invocation(server, command, env)?;
        let (sandbox, rules) =
            (if server.is_walled { place.sandbox.clone() } else { Sandbox::off() }, place.rules(server));
        let mut failed = String::new();
        for outer in sandbox.builds(&rules, &inner, placeholders) {
            let mut mode = newest();
            let (why, aside) = loop {
                let (talked, probed) = Self::talk(&outer, mode, &server.name).await?;
                let failed = match talked {
                    Ok(session) => return Ok(session),
                    Err(failed) => failed,
                };
                mode = match probed {
                    _ if failed.0.starts_with(LATE) => break failed,
                    Probed::Open => ClientLifecycleMode::Initialize, // the server ends at requests that it does not know
                    Probed::Late => patient(), // the server is slow, and may end at an early request too
                    Probed::Unasked | Probed::Answered => break failed,
                };
            };
            failed = format!("{why}{}", last_words(aside.as_deref()));
            if !aside.is_some_and(|aside| sandbox.found_something_gone(&aside.last())) {
                break;
            }
        }
        Err(failed)
    }

    /// Starts a program and begins a session in one mode. Also returns the outcome of the probe for
    /// the newest protocol version.
    async fn talk(
        outer: &Invocation,
        mode: ClientLifecycleMode,
        server: &str,
    ) -> Result<(Result<Self, (String, Option<Arc<StderrTail>>)>, Probed), String> {
        let dialogue = Dialogue::start_apart(outer)?;
        let (probe, is_patient) = (Arc::<Probe>::default(), matches!(mode, ClientLifecycleMode::Discover { .. }));
        let stdio = Stdio::new(dialogue.lines.clone(), dialogue.aside.clone(), probe.clone(), is_patient);
        let why = match within(handshake(FilteredTransport::new(stdio), mode, server)).await {
            Ok(begun) => return Ok((Ok(Self::of(begun, Some(dialogue))), probe.get())),
            Err(why) => why,
        };
        let aside = dialogue.aside.clone();
        dialogue.end().await;
        Ok((Err((why, aside)), probe.get()))
    }

    fn of((service, catalog): (Service, ToolCatalog), dialogue: Option<Dialogue>) -> Self {
        Self {
            catalog,
            peer: service.peer().clone(),
            service: Mutex::new(Some(service)),
            aside: dialogue.as_ref().and_then(|dialogue| dialogue.aside.clone()),
            dialogue: Mutex::new(dialogue),
            is_lost: AtomicBool::new(false),
        }
    }

    /// Calls a tool. Returns the text of the result, and whether the server reports an error.
    /// Dropping the call cancels it in the server.
    pub(super) async fn call(&self, tool: &str, input: Map<String, Value>) -> Result<(String, bool), SessionError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
        let answer = tokio::select! {
            biased;
            answer = self.peer.call_tool(params) => answer,
            () = self.died() => Err(ServiceError::TransportClosed),
        };
        match answer {
            Ok(result) => Ok(answer::read(result)),
            Err(ServiceError::McpError(error)) => Err(SessionError::Refused(error.message.into_owned())),
            Err(ServiceError::UnexpectedResponse) => {
                Err(SessionError::Refused("the server sent an unexpected answer: not a result".into()))
            }
            Err(ServiceError::TransportSend(error)) if self.is_elsewhere() => {
                Err(SessionError::Refused(short(&whole(&error))))
            }
            Err(ServiceError::TransportSend(_) | ServiceError::TransportClosed) => {
                self.is_lost.store(true, Ordering::Relaxed);
                Err(SessionError::Lost)
            }
            Err(error) => Err(SessionError::Refused(short(&error.to_string()))),
        }
    }

    /// Returns whether the server still responds. A call may take long, but a server that does not
    /// even answer a ping hangs.
    pub(super) async fn answers(&self) -> bool {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        tokio::time::timeout(PING, self.peer.send_request(ping)).await.is_ok()
    }

    /// Returns whether the session can be used.
    pub(super) fn is_open(&self) -> bool {
        let is_alive = || self.dialogue().as_ref().is_none_or(Dialogue::is_alive);
        !self.is_lost.load(Ordering::Relaxed) && !self.peer.is_transport_closed() && is_alive()
    }

    /// Returns the last output of the server on standard error, as the end of a sentence.
    pub(super) fn last_words(&self) -> String {
        last_words(self.aside.as_deref())
    }

    /// Ends the session. On return, no process that the server started is alive.
    pub(super) async fn end(&self) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut service) = service {
            let _it_takes_longer = service.close_with_timeout(PARTING).await;
        }
        let dialogue = self.dialogue().take();
        if let Some(dialogue) = dialogue
            && !dialogue.part(PARTING).await
        {
            tracing::warn!("cannot kill a process that an MCP server has started");
        }
    }

    fn is_elsewhere(&self) -> bool {
        self.aside.is_none()
    }

    /// Waits until the program has ended. Its streams do not show this, because its child processes
    /// may keep them open.
    async fn died(&self) {
        while self.is_elsewhere() || self.dialogue().as_ref().is_some_and(Dialogue::is_alive) {
            tokio::time::sleep(PULSE).await;
        }
        tokio::time::sleep(PULSE).await; // its last messages may still arrive
    }

    fn dialogue(&self) -> std::sync::MutexGuard<'_, Option<Dialogue>> {
        self.dialogue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn within<T>(begun: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| format!("{LATE} {BEGINNING:?}");
    tokio::time::timeout(BEGINNING, begun).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
}

/// Selects the newest protocol version that both sides know.
fn newest() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::LATEST], legacy_version: None }
}

/// Selects the newest protocol version and waits for the answer without a limit.
fn patient() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] }
}

/// Initializes the session and lists the tools.
async fn handshake<T>(transport: T, mode: ClientLifecycleMode, server: &str) -> Result<(Service, ToolCatalog), String>
where
    T: rmcp::transport::Transport<RoleClient> + 'static,
{
    let ours =
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("fledge", env!("CARGO_PKG_VERSION")));
    let service = ours.serve_with_lifecycle(transport, mode).await.map_err(|error| short(&whole(&error)))?;
    let tools = list(service.peer()).await?;
    Ok((service, ToolCatalog::new(server, tools)))
}

async fn list(peer: &Peer<RoleClient>) -> Result<Vec<ServerTool>, String> {
    let (mut tools, mut cursor) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer
            .list_tools(Some(params))
            .await
            .map_err(|error| format!("cannot list its tools: {}", short(&whole(&error))))?;
        tools.extend(page.tools.into_iter().map(|tool| ServerTool {
            name: tool.name.into_owned(),
            description: tool.description.map(|text| text.into_owned()).unwrap_or_default(),
            schema: Value::Object((*tool.input_schema).clone()),
        }));
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() >= MOST_LISTED {
            break;
        }
    }
    Ok(tools)
}

fn last_words(aside: Option<&StderrTail>) -> String {
    let output = aside.map(StderrTail::last).unwrap_or_default();
    let output = visible(&output);
    let tail = &output[output.ceil_char_boundary(output.len().saturating_sub(MAX_WHY))..];
    let line = tail.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { String::new() } else { format!("; last line on its standard error: {line:?}") }
}

/// Formats an error with its causes. Omits the types of the connection that the SDK names.
fn whole(error: &dyn std::error::Error) -> String {
    let message = plain(&error.to_string());
    match error.source().map(whole) {
        Some(cause) if !message.ends_with(&cause) => format!("{message}: {cause}"),
        Some(_) | None => message,
    }
}

/// Removes `Transport […] error: ` with any text in the brackets, and the words that lead to it.
fn plain(text: &str) -> String {
    let (before, after) = match (text.find("Transport ["), text.find("] error: ")) {
        (Some(from), Some(to)) if from < to => (&text[..from], &text[to + "] error: ".len()..]),
        _ => return text.to_owned(),
    };
    let before = before.trim_end_matches("Send message error ").trim_end_matches("Transport send error: ");
    format!("{before}{}", plain(after))
}

/// Shortens a text and removes invisible characters, because the text may come from the server.
fn short(text: &str) -> String {
    let line = visible(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let kept = &line[..line.floor_char_boundary(MAX_WHY)];
    if kept.len() < line.len() { format!("{kept} […]") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_of_a_connection_are_nobody_s_business() {
        let message =
            "Send message error Transport [a::Sieve<b::Worker<[u8]>>] error: HTTP 401, when send initialize request";
        assert_eq!(plain(message), "HTTP 401, when send initialize request");
        assert_eq!(plain("Transport [a] error: Transport [b] error: gone"), "gone");
        assert_eq!(plain("it is [here] error: x"), "it is [here] error: x");
    }
}
