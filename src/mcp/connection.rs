//! The connection to one server of a run. It starts the server on demand. After the server ended by
//! itself or hung, it starts the server once more, but not a third time.

use super::McpAnswer;
use super::catalog::ToolCatalog;
use super::server::{ServerConfig, ServerPlace, ServerTransport};
use super::session::{Session, SessionError};
use crate::process::sandbox::Placeholders;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// The number of times that a server may end by itself, hang, or fail to start before it is given
/// up.
const MOST_CRASHES: u32 = 2;
/// The time that a stopped call waits, so that its cancellation reaches the server.
const TELLING: Duration = Duration::from_millis(20);

const STOPPED: &str = "stopped: the run was cancelled";

/// The place where servers work, and the folders that their sandbox needs there.
pub(super) type ServerSandbox<'p> = (&'p ServerPlace, &'p Placeholders);

/// A server and its session.
#[derive(Debug)]
pub(super) struct ServerConnection {
    pub(super) server: ServerConfig,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    session: Option<Arc<Session>>,
    /// The number of times that the server ended by itself, hung, or did not start.
    crashes: u32,
}

impl ServerConnection {
    pub(super) fn new(server: ServerConfig) -> Self {
        Self { server, state: Mutex::default() }
    }

    /// Returns the tools of the server.
    ///
    /// # Errors
    /// A message that says why the server did not start.
    pub(super) async fn catalog(
        &self,
        place: ServerSandbox<'_>,
        stop: &CancellationToken,
    ) -> Result<ToolCatalog, String> {
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(STOPPED.into()),
            session = self.session(place) => session.map(|session| session.catalog.clone()),
        }
    }

    /// Calls a tool. `None` if the server has no tool with this name.
    pub(super) async fn call(
        &self,
        tool: &str,
        input: &Map<String, Value>,
        place: ServerSandbox<'_>,
        stop: &CancellationToken,
    ) -> Option<McpAnswer> {
        let session = tokio::select! {
            biased;
            () = stop.cancelled() => return Some(McpAnswer::Failed(STOPPED.into())),
            session = self.session(place) => session,
        };
        let session = match session {
            Ok(session) => session,
            Err(why) => return Some(McpAnswer::Failed(why)),
        };
        let own = session.catalog.own_name(tool)?;
        // Dropping a call also cancels it in the server.
        let answer = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            answer = tokio::time::timeout(self.server.timeout, session.call(own, input.clone())) => Some(answer),
        };
        let name = &self.server.name;
        let message = |text, is_error| McpAnswer::Said { server: name.clone(), text, is_error };
        Some(match answer {
            Some(Ok(Ok((text, is_error)))) => message(text, is_error),
            Some(Ok(Err(SessionError::Refused(text)))) => message(text, true),
            Some(Ok(Err(SessionError::Lost))) => McpAnswer::Failed(format!(
                "the MCP server `{name}` ended during this call; the call may have done all, some or none of its work{}",
                session.last_words()
            )),
            Some(Err(_)) => {
                let limit = self.server.timeout;
                let hangs = tokio::select! {
                    biased;
                    () = stop.cancelled() => false,
                    answers = session.answers() => !answers,
                };
                let end = match hangs {
                    false => "fledge told it to stop",
                    true => {
                        self.give_up(&session).await;
                        "it no longer responds, so fledge ended it and all that it had started"
                    }
                };
                McpAnswer::Failed(format!("the MCP server `{name}` did not answer within {limit:?}; {end}"))
            }
            None => {
                tokio::time::sleep(TELLING).await;
                McpAnswer::Failed(STOPPED.into())
            }
        })
    }

    /// Ends the session.
    pub(super) async fn close(&self) {
        if let Some(session) = self.state.lock().await.session.take() {
            session.end().await;
        }
    }

    /// Ends a session that is no longer usable. Keeps a newer session of another call.
    async fn give_up(&self, session: &Arc<Session>) {
        let mut state = self.state.lock().await;
        if state.session.as_ref().is_some_and(|own| Arc::ptr_eq(own, session)) {
            state.session = None;
            state.crashes += u32::from(matches!(self.server.reach, ServerTransport::Program { .. }));
        }
        drop(state);
        session.end().await;
    }

    async fn session(&self, place: ServerSandbox<'_>) -> Result<Arc<Session>, String> {
        let mut state = self.state.lock().await;
        if let Some(session) = state.session.as_ref().filter(|session| session.is_open()) {
            return Ok(session.clone());
        }
        let Self { server: ServerConfig { name, reach, .. }, .. } = self;
        // A server at an address may come back, so its failures do not count.
        let counts = u32::from(matches!(reach, ServerTransport::Program { .. }));
        if let Some(old) = state.session.take() {
            state.crashes += counts;
            old.end().await;
        }
        if state.crashes >= MOST_CRASHES {
            return Err(format!(
                "the MCP server `{name}` has ended or hung twice: fledge does not start it again in this run"
            ));
        }
        match Session::start(&self.server, place).await {
            Ok(session) => {
                let session = Arc::new(session);
                state.session = Some(session.clone());
                Ok(session)
            }
            Err(why) => {
                state.crashes += counts;
                Err(format!("the MCP server `{name}` did not start: {why}"))
            }
        }
    }
}
