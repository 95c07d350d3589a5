//! Tools of other programs, by the Model Context Protocol. A server is started, or reached, when it is needed; what it says is bounded, cleaned
//! and never trusted. Nothing of it outlives [`Servers::close`].

#[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only sessions use all of it"))]
mod catalog;
mod connection;
mod powers;
#[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only sessions use all of it"))]
mod server;
#[cfg_attr(not(feature = "mcp"), path = "without.rs")]
mod session;

pub use server::{Place, Reach, Server};

use crate::chat::ToolSpec;
use crate::process::wall::Placeholders;
use crate::task::Tier;
use catalog::prefix;
use connection::Connection;
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The servers of one run, in their order.
#[derive(Debug)]
pub struct Servers {
    connections: Vec<Connection>,
    place: Place,
    placeholders: Mutex<Option<Arc<Placeholders>>>,
}

/// What servers have to offer.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Their tools, under the names by which they are called.
    pub tools: Vec<ToolSpec>,
    /// What is missing, a sentence each.
    pub warnings: Vec<String>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The server said this.
    Said {
        /// The server.
        server: String,
        /// Its words, as they are.
        text: String,
        /// Whether it calls that a failure.
        is_error: bool,
    },
    /// It said nothing, for this reason.
    Failed(String),
}

impl Servers {
    /// These servers, none of which is started yet.
    pub fn new(servers: Vec<Server>, place: Place) -> Self {
        let connections = servers.into_iter().map(Connection::new).collect();
        Self { connections, place, placeholders: Mutex::default() }
    }

    /// Starts all of them, at the same time, and asks for their tools. One that does not start is left out, with a warning.
    ///
    /// # Errors
    /// Why one that is required did not start.
    pub async fn offer(&self, stop: &CancellationToken) -> Result<Offer, String> {
        let placeholders = self.foresee();
        let started =
            join_all(self.connections.iter().map(|connection| connection.catalog((&self.place, &placeholders), stop)))
                .await;
        let (mut tools, mut warnings, mut names) = (Vec::new(), Vec::new(), HashSet::new());
        for (connection, catalog) in self.connections.iter().zip(started) {
            match catalog {
                Err(why) if connection.server.required => return Err(why),
                Err(why) => warnings.push(format!("{why}; the run goes on without its tools")),
                Ok(catalog) => {
                    let name = &connection.server.name;
                    warnings.extend(catalog.warnings.iter().map(|warning| format!("MCP server `{name}`: {warning}")));
                    for tool in catalog.tools() {
                        if names.insert(tool.name.clone()) {
                            tools.push(tool.clone());
                        } else {
                            warnings.push(format!(
                                "MCP server `{name}`: another server has a tool `{}`; this one is left out",
                                tool.name
                            ));
                        }
                    }
                }
            }
        }
        Ok(Offer { tools, warnings })
    }

    /// Whether a tool of that name could be one of theirs.
    pub fn may_have(&self, tool: &str) -> bool {
        self.connections.iter().any(|connection| tool.starts_with(&prefix(&connection.server.name)))
    }

    /// The lowest tier that a tool of that name is for, if it could be one of theirs.
    pub fn tier_of(&self, tool: &str) -> Option<Tier> {
        let servers = self.connections.iter().map(|connection| &connection.server);
        servers.filter(|server| tool.starts_with(&prefix(&server.name))).map(|server| server.tier).max()
    }

    /// Calls a tool, which `stop` brings to its end at once. Never fails: what goes wrong is in the answer.
    pub async fn call(&self, tool: &str, input: Value, stop: &CancellationToken) -> Answer {
        let placeholders = self.foresee();
        let Value::Object(input) = input else {
            return Answer::Failed(format!("the arguments of {tool} are no JSON object"));
        };
        for connection in &self.connections {
            if tool.starts_with(&prefix(&connection.server.name))
                && let Some(answer) = connection.call(tool, &input, (&self.place, &placeholders), stop).await
            {
                return answer;
            }
        }
        Answer::Failed(format!("no MCP server has a tool {tool} any more"))
    }

    /// Ends all servers. When this returns nothing that they started is alive; the next call starts them again.
    pub async fn close(&self) {
        join_all(self.connections.iter().map(Connection::close)).await;
    }

    /// Takes away what the wall needed in the workspace, once nobody stands behind it any more.
    pub fn tidy(&self) {
        drop(self.placeholders.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Holds what the wall needs in the workspace.
    fn foresee(&self) -> Arc<Placeholders> {
        let mut placeholders = self.placeholders.lock().unwrap_or_else(PoisonError::into_inner);
        placeholders.get_or_insert_with(|| Arc::new(self.place.wall.placeholders(&self.place.holes))).clone()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.tidy();
    }
}
