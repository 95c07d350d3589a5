//! Tools of other programs, by the Model Context Protocol. A server is started or reached on
//! demand. Its messages are limited in size, cleaned and never trusted. None of its processes
//! outlives [`McpServers::close`].

#[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only sessions use all of it"))]
mod catalog;
mod connection;
mod powers;
#[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "only sessions use all of it"))]
mod server;
#[cfg_attr(not(feature = "mcp"), path = "without.rs")]
mod session;

pub use server::{ServerConfig, ServerPlace, ServerTransport};

use crate::chat::ToolSpec;
use crate::process::sandbox::Placeholders;
use crate::task::Tier;
use catalog::prefix;
use connection::ServerConnection;
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The servers of one run, in their order.
#[derive(Debug)]
pub struct McpServers {
    connections: Vec<ServerConnection>,
    place: ServerPlace,
    placeholders: Mutex<Option<Arc<Placeholders>>>,
}

/// The tools that servers offer.
#[derive(Debug, Clone, PartialEq)]
pub struct McpOffer {
    /// The tools, under the names by which a model calls them.
    pub tools: Vec<ToolSpec>,
    /// The parts that are missing from the offer, one sentence each.
    pub warnings: Vec<String>,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpAnswer {
    /// The server answered.
    Said {
        /// The server.
        server: String,
        /// The text of the answer, unchanged.
        text: String,
        /// True if the server reports an error.
        is_error: bool,
    },
    /// The reason why no answer came.
    Failed(String),
}

impl McpServers {
    /// Creates the set without starting any server.
    pub fn new(servers: Vec<ServerConfig>, place: ServerPlace) -> Self {
        let connections = servers.into_iter().map(ServerConnection::new).collect();
        Self { connections, place, placeholders: Mutex::default() }
    }

    /// Starts all servers in parallel and asks for their tools. A server that does not start is
    /// left out with a warning.
    ///
    /// # Errors
    /// A message that says why a required server did not start.
    pub async fn offer(&self, stop: &CancellationToken) -> Result<McpOffer, String> {
        let placeholders = self.foresee();
        let started =
            join_all(self.connections.iter().map(|connection| connection.catalog((&self.place, &placeholders), stop)))
                .await;
        let (mut tools, mut warnings, mut names) = (Vec::new(), Vec::new(), HashSet::new());
        for (connection, catalog) in self.connections.iter().zip(started) {
            match catalog {
                Err(why) if connection.server.required => return Err(why),
                Err(why) => warnings.push(format!("{why}; the run continues without its tools")),
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
        Ok(McpOffer { tools, warnings })
    }

    /// Returns whether a tool with this name could belong to one of the servers.
    pub fn may_have(&self, tool: &str) -> bool {
        self.connections.iter().any(|connection| tool.starts_with(&prefix(&connection.server.name)))
    }

    /// Returns the lowest tier for a tool with this name, if the tool could belong to one of the
    /// servers.
    pub fn tier_of(&self, tool: &str) -> Option<Tier> {
        let servers = self.connections.iter().map(|connection| &connection.server);
        servers.filter(|server| tool.starts_with(&prefix(&server.name))).map(|server| server.tier).max()
    }

    /// Calls a tool. Cancelling `stop` ends the call at once. Never fails: the answer carries any
    /// error.
    pub async fn call(&self, tool: &str, input: Value, stop: &CancellationToken) -> McpAnswer {
        let placeholders = self.foresee();
        let Value::Object(input) = input else {
            return McpAnswer::Failed(format!("the arguments of {tool} are not a JSON object"));
        };
        for connection in &self.connections {
            if tool.starts_with(&prefix(&connection.server.name))
                && let Some(answer) = connection.call(tool, &input, (&self.place, &placeholders), stop).await
            {
                return answer;
            }
        }
        McpAnswer::Failed(format!("no MCP server has a tool {tool} any more"))
    }

    /// Ends all servers. On return, none of their processes is alive. The next call starts the
    /// servers again.
    pub async fn close(&self) {
        join_all(self.connections.iter().map(ServerConnection::close)).await;
    }

    /// Removes the folders that the sandbox needed in the workspace. Call it when no program in the
    /// sandbox is left.
    pub fn tidy(&self) {
        drop(self.placeholders.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Creates the folders that the sandbox needs in the workspace, and keeps them.
    fn foresee(&self) -> Arc<Placeholders> {
        let mut placeholders = self.placeholders.lock().unwrap_or_else(PoisonError::into_inner);
        placeholders.get_or_insert_with(|| Arc::new(self.place.sandbox.placeholders(&self.place.rules))).clone()
    }
}

impl Drop for McpServers {
    fn drop(&mut self) {
        self.tidy();
    }
}
