//! The MCP servers of a run: the servers of its task, their tools, and the results of calls.

use super::error::PlanError;
use super::prepared_workspace::PreparedWorkspace;
use super::tool_lists::{patterns, share_tools};
use super::{DriverSettings, enclosure};
use crate::chat::ToolOutcome;
use crate::mcp::{McpAnswer, McpServers, ServerConfig, ServerPlace, ServerTransport};
use crate::process::sandbox::{PathRules, SandboxKind};
use crate::run::{RunPlan, ToolAccess, ToolRole, ToolRule};
use crate::store::RunDir;
use crate::task::{Task, Tier};
use crate::tool::{ToolHost, ToolRequest};
use crate::verdict::Reason;
use crate::yaml::meant;
use tokio_util::sync::CancellationToken;

/// The lowest tier that has tools of MCP servers.
const TIER: Tier = Tier::Tool;

/// Returns the configuration of the servers that a task names, without those of a higher tier.
///
/// # Errors
/// [`PlanError`] if a server is unknown, or if the agent could have written what it runs.
pub(super) fn named_servers(task: &Task, settings: &DriverSettings) -> Result<Vec<ServerConfig>, PlanError> {
    let mut servers: Vec<ServerConfig> = Vec::new();
    for name in &task.mcp {
        let Some(server) = settings.mcp.iter().find(|server| server.name == *name) else {
            let known: Vec<&str> = settings.mcp.iter().map(|server| server.name.as_str()).collect();
            let meant = meant(name, known.iter().copied()).map(|meant| format!("{meant} ")).unwrap_or_default();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let why = format!(
                "{}: unknown MCP server `{name}` ({meant}known: {known}); define servers under `mcp:` in fledge.yaml",
                task.source
            );
            return Err(PlanError::bad(why).of_value("mcp", name));
        };
        if task.tier >= server.tier.max(TIER) && !servers.contains(server) {
            if let Some(why) = server.trespass(&settings.workspace, enclosure::variable(settings, "PATH")) {
                return Err(PlanError::bad(format!("MCP server `{name}`: {why}")));
            }
            servers.push(server.clone());
        }
    }
    Ok(servers)
}

/// Returns the servers that a task names, for a run.
///
/// # Errors
/// Those of [`named_servers`].
pub(super) fn task_servers(
    task: &Task,
    settings: &DriverSettings,
    run: &RunDir,
    workspace: &PreparedWorkspace,
) -> Result<McpServers, PlanError> {
    let servers = named_servers(task, settings)?;
    // Computing the rules walks through the whole workspace.
    let mut rules = match servers.is_empty() {
        true => PathRules::default(),
        false => enclosure::rules(settings, task, run, &workspace.dependencies),
    };
    let sandbox = workspace.sandbox.clone();
    rules.writable.retain(|path| *path != run.outputs()); // servers need no results of tools
    Ok(McpServers::new(
        servers,
        ServerPlace { dir: settings.workspace.clone(), env: settings.env.clone(), sandbox, rules },
    ))
}

/// Asks the servers for their tools and adds these to the plan.
///
/// # Errors
/// [`PlanError`] if a server is missing that the run needs.
pub(super) async fn offer(
    servers: &McpServers,
    task: &Task,
    settings: &DriverSettings,
    plan: &mut RunPlan,
    stop: &CancellationToken,
) -> Result<(), PlanError> {
    if !task.mcp.is_empty() && task.tier < TIER {
        plan.notes.push("tasks of the tier `read` get no tools of MCP servers".into());
        return Ok(());
    }
    let too_low = settings.mcp.iter().filter(|server| task.mcp.contains(&server.name) && task.tier < server.tier);
    plan.notes.extend(too_low.map(|server| format!("MCP server `{}` is for tasks of a higher tier", server.name)));
    let offer = servers.offer(stop).await;
    let offer = offer.map_err(|message| PlanError::new(Reason::PlanFailed, message))?;
    let (allow, deny) = (patterns(&task.tools.allow)?, patterns(&task.tools.deny)?);
    let mut offered = plan.tools.to_vec();
    for tool in offer.tools {
        let is_allowed = allow.is_match(&tool.name) && !deny.is_match(&tool.name);
        let access = if is_allowed { ToolAccess::Allowed } else { ToolAccess::Denied };
        // Whatever the tool says of itself, it may change something. So it runs alone and is not
        // run again.
        plan.rules.push(ToolRule { name: tool.name.clone(), access, role: ToolRole::Writer });
        if is_allowed {
            offered.push(tool);
        }
    }
    plan.tools = share_tools(&offered);
    plan.notes.extend(offer.warnings);
    let named = settings.mcp.iter().filter(|server| task.mcp.contains(&server.name));
    plan.notes.extend(named.flat_map(|server| cautions(server, plan.sandbox)));
    Ok(())
}

/// Returns warnings about a server for a person who trusts the sandbox.
fn cautions(server: &ServerConfig, sandbox: Option<SandboxKind>) -> Vec<String> {
    let name = &server.name;
    match &server.reach {
        ServerTransport::Http { .. } => {
            vec![format!("MCP server `{name}`: data that the agent sends to it leaves this machine or its sandbox")]
        }
        ServerTransport::Program { .. } if sandbox == Some(SandboxKind::Off) => Vec::new(),
        ServerTransport::Program { .. } if !server.is_walled => {
            vec![format!("MCP server `{name}` runs outside the sandbox")]
        }
        ServerTransport::Program { .. } if server.network => vec![format!("MCP server `{name}` reaches the network")],
        ServerTransport::Program { .. } => Vec::new(),
    }
}

/// Calls a tool of a server.
pub(super) async fn call(
    servers: &McpServers,
    host: &ToolHost,
    request: ToolRequest,
    stop: &CancellationToken,
) -> ToolOutcome {
    match servers.call(&request.name, request.input, stop).await {
        McpAnswer::Said { server, text, is_error } => {
            host.receive(request.call, &format!("the MCP server `{server}`"), &text, is_error)
        }
        McpAnswer::Failed(why) => ToolOutcome::error(why),
    }
}
