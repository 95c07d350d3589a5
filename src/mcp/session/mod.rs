//! One session with a server: begun, used, ended, by the official SDK. Its connection is ours: only `process` starts programs, and nothing
//! that a server says is read without a bound.

mod answer;
mod http;
mod sieve;
mod stdio;

use super::catalog::{Catalog, Said};
use super::connection::Behind;
use super::server::{Reach, Server};
use crate::process::wall::Wall;
use crate::process::{Aside, Dialogue, Invocation, visible};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, Implementation, PaginatedRequestParams,
    PingRequest, ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::{Map, Value};
use sieve::Sieve;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stdio::{Probe, Probed, Stdio};

/// The longest that a server may take to begin and to name its tools.
const BEGINNING: Duration = crate::limits::MCP_START;
/// How it is said that it was not.
const LATE: &str = "it was not ready within";
/// What a server has to end by itself once nothing more is said.
const PARTING: Duration = Duration::from_millis(300);
/// What a server has to say that it still listens.
const PING: Duration = Duration::from_secs(1);
/// How often is looked whether a program still runs that owes an answer.
const PULSE: Duration = Duration::from_millis(100);
/// Bytes of one message.
const MAX_MESSAGE: usize = 8 * 1024 * 1024;
/// Pages of a list of tools, and tools.
const MOST_PAGES: usize = 64;
const MOST_LISTED: usize = 10_000;
/// Bytes of a complaint that people or a model are shown.
const MAX_WHY: usize = 400;

/// A session with a server.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) catalog: Catalog,
    peer: Peer<RoleClient>,
    service: Mutex<Option<Service>>,
    dialogue: Mutex<Option<Dialogue>>,
    aside: Option<Arc<Aside>>,
    is_lost: AtomicBool,
}

type Service = RunningService<RoleClient, ClientConfig>;

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum Fault {
    /// The server says so.
    Refused(String),
    /// It is not there any more.
    Lost,
}

impl Session {
    /// Starts or reaches a server, and asks for its tools. When this fails nothing is left of it.
    ///
    /// # Errors
    /// Why it is of no use.
    pub(super) async fn start(server: &Server, (place, placeholders): Behind<'_>) -> Result<Self, String> {
        if let Some(variable) = &server.lacks {
            return Err(format!("the variable `{variable}`, which its configuration names, is not set"));
        }
        let (command, env) = match &server.reach {
            Reach::Http { url, headers } => {
                let begun = within(begin(http::transport(url, headers)?, newest(), &server.name)).await;
                return begun.map(|begun| Self::of(begun, None));
            }
            Reach::Program { command, env } => (command, env),
        };
        let inner = place.invocation(server, command, env)?;
        let (wall, holes) = (if server.is_walled { place.wall.clone() } else { Wall::off() }, place.holes(server));
        let mut failed = String::new();
        for outer in wall.builds(&holes, &inner, placeholders) {
            let mut mode = newest();
            let (why, aside) = loop {
                let (talked, probed) = Self::talk(&outer, mode, &server.name).await?;
                let failed = match talked {
                    Ok(session) => return Ok(session),
                    Err(failed) => failed,
                };
                mode = match probed {
                    _ if failed.0.starts_with(LATE) => break failed,
                    Probed::Open => ClientLifecycleMode::Initialize, // it ends on what it does not know
                    Probed::Late => patient(),                       // it is slow, and may end on that too
                    Probed::Unasked | Probed::Answered => break failed,
                };
            };
            failed = format!("{why}{}", last_words(aside.as_deref()));
            if !aside.is_some_and(|aside| wall.found_something_gone(&aside.last())) {
                break;
            }
        }
        Err(failed)
    }

    /// Starts a program and begins with it in one way; and what became of the question for the newest form.
    async fn talk(
        outer: &Invocation,
        mode: ClientLifecycleMode,
        server: &str,
    ) -> Result<(Result<Self, (String, Option<Arc<Aside>>)>, Probed), String> {
        let dialogue = Dialogue::start_apart(outer)?;
        let (probe, is_patient) = (Arc::<Probe>::default(), matches!(mode, ClientLifecycleMode::Discover { .. }));
        let stdio = Stdio::new(dialogue.lines.clone(), dialogue.aside.clone(), probe.clone(), is_patient);
        let why = match within(begin(Sieve::new(stdio), mode, server)).await {
            Ok(begun) => return Ok((Ok(Self::of(begun, Some(dialogue))), probe.get())),
            Err(why) => why,
        };
        let aside = dialogue.aside.clone();
        dialogue.end().await;
        Ok((Err((why, aside)), probe.get()))
    }

    fn of((service, catalog): (Service, Catalog), dialogue: Option<Dialogue>) -> Self {
        Self {
            catalog,
            peer: service.peer().clone(),
            service: Mutex::new(Some(service)),
            aside: dialogue.as_ref().and_then(|dialogue| dialogue.aside.clone()),
            dialogue: Mutex::new(dialogue),
            is_lost: AtomicBool::new(false),
        }
    }

    /// Calls a tool: what it says, and whether it calls that an error. When this is dropped, the server is told that nobody waits.
    pub(super) async fn call(&self, tool: &str, input: Map<String, Value>) -> Result<(String, bool), Fault> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
        let answer = tokio::select! {
            biased;
            answer = self.peer.call_tool(params) => answer,
            () = self.died() => Err(ServiceError::TransportClosed),
        };
        match answer {
            Ok(result) => Ok(answer::read(result)),
            Err(ServiceError::McpError(error)) => Err(Fault::Refused(error.message.into_owned())),
            Err(ServiceError::UnexpectedResponse) => {
                Err(Fault::Refused("it answered with something that is no result".into()))
            }
            Err(ServiceError::TransportSend(error)) if self.is_elsewhere() => {
                Err(Fault::Refused(short(&whole(&error))))
            }
            Err(ServiceError::TransportSend(_) | ServiceError::TransportClosed) => {
                self.is_lost.store(true, Ordering::Relaxed);
                Err(Fault::Lost)
            }
            Err(error) => Err(Fault::Refused(short(&error.to_string()))),
        }
    }

    /// Whether it still answers at all: a call may take its time, but who does not even say so hangs.
    pub(super) async fn answers(&self) -> bool {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        tokio::time::timeout(PING, self.peer.send_request(ping)).await.is_ok()
    }

    /// Whether it can be used.
    pub(super) fn is_open(&self) -> bool {
        let is_alive = || self.dialogue().as_ref().is_none_or(Dialogue::is_alive);
        !self.is_lost.load(Ordering::Relaxed) && !self.peer.is_transport_closed() && is_alive()
    }

    /// The last that the server has said aside, as the end of a sentence.
    pub(super) fn last_words(&self) -> String {
        last_words(self.aside.as_deref())
    }

    /// Ends it. When this returns nothing that the server has started is alive.
    pub(super) async fn end(&self) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut service) = service {
            let _it_takes_longer = service.close_with_timeout(PARTING).await;
        }
        let dialogue = self.dialogue().take();
        if let Some(dialogue) = dialogue
            && !dialogue.part(PARTING).await
        {
            tracing::warn!("something that an MCP server has started cannot be killed");
        }
    }

    fn is_elsewhere(&self) -> bool {
        self.aside.is_none()
    }

    /// Waits until the program has ended: what it has started may still hold its streams.
    async fn died(&self) {
        while self.is_elsewhere() || self.dialogue().as_ref().is_some_and(Dialogue::is_alive) {
            tokio::time::sleep(PULSE).await;
        }
        tokio::time::sleep(PULSE).await; // what it has said is still on its way
    }

    fn dialogue(&self) -> std::sync::MutexGuard<'_, Option<Dialogue>> {
        self.dialogue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn within<T>(begun: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| format!("{LATE} {BEGINNING:?}");
    tokio::time::timeout(BEGINNING, begun).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
}

/// The newest form that both know.
fn newest() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::LATEST], legacy_version: None }
}

/// The newest form, however long the answer takes.
fn patient() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] }
}

/// Shakes hands, and lists the tools.
async fn begin<T>(transport: T, mode: ClientLifecycleMode, server: &str) -> Result<(Service, Catalog), String>
where
    T: rmcp::transport::Transport<RoleClient> + 'static,
{
    let ours =
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("fledge", env!("CARGO_PKG_VERSION")));
    let service = ours.serve_with_lifecycle(transport, mode).await.map_err(|error| short(&whole(&error)))?;
    let said = list(service.peer()).await?;
    Ok((service, Catalog::new(server, said)))
}

async fn list(peer: &Peer<RoleClient>) -> Result<Vec<Said>, String> {
    let (mut said, mut cursor) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer
            .list_tools(Some(params))
            .await
            .map_err(|error| format!("no list of tools: {}", short(&whole(&error))))?;
        said.extend(page.tools.into_iter().map(|tool| Said {
            name: tool.name.into_owned(),
            description: tool.description.map(|text| text.into_owned()).unwrap_or_default(),
            schema: Value::Object((*tool.input_schema).clone()),
        }));
        cursor = page.next_cursor;
        if cursor.is_none() || said.len() >= MOST_LISTED {
            break;
        }
    }
    Ok(said)
}

fn last_words(aside: Option<&Aside>) -> String {
    let said = aside.map(Aside::last).unwrap_or_default();
    let said = visible(&said);
    let tail = &said[said.ceil_char_boundary(said.len().saturating_sub(MAX_WHY))..];
    let line = tail.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { String::new() } else { format!("; the last that it said aside: {line:?}") }
}

/// An error with its causes, without what is nobody's business: the SDK names the types of the connection.
fn whole(error: &dyn std::error::Error) -> String {
    let said = plain(&error.to_string());
    match error.source().map(whole) {
        Some(cause) if !said.ends_with(&cause) => format!("{said}: {cause}"),
        Some(_) | None => said,
    }
}

/// The same words without `Transport […] error: `, whatever stands in the brackets, and what leads to it.
fn plain(text: &str) -> String {
    let (before, after) = match (text.find("Transport ["), text.find("] error: ")) {
        (Some(from), Some(to)) if from < to => (&text[..from], &text[to + "] error: ".len()..]),
        _ => return text.to_owned(),
    };
    let before = before.trim_end_matches("Send message error ").trim_end_matches("Transport send error: ");
    format!("{before}{}", plain(after))
}

/// Bounded and without what cannot be seen: there may be words of the server in it.
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
        let said =
            "Send message error Transport [a::Sieve<b::Worker<[u8]>>] error: HTTP 401, when send initialize request";
        assert_eq!(plain(said), "HTTP 401, when send initialize request");
        assert_eq!(plain("Transport [a] error: Transport [b] error: gone"), "gone");
        assert_eq!(plain("it is [here] error: x"), "it is [here] error: x");
    }
}
