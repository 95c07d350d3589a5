//! Checks of a task's patterns for tools.
//!
//! fledge refuses a pattern that fits no tool, because the pattern would have no effect. A pattern
//! for tools that may come later gets a note.

use crate::driver::error::PlanError;
use crate::driver::tool_lists::patterns;
use crate::mcp::ServerConfig;
use crate::run::RunPlan;
use crate::task::{PatternMatch, Task, check_ask, check_tool, fit, reaches};
use crate::yaml::meant;

/// Returns all patterns for names of tools, each with its key in the task.
fn all(task: &Task) -> impl Iterator<Item = (&'static str, &String)> {
    let asked = task.approve.iter().filter(|ask| !ask.contains(':')).map(|ask| ("approve.ask", ask));
    let allowed = task.tools.allow.iter().map(|allow| ("tools.allow", allow));
    allowed.chain(task.tools.deny.iter().map(|deny| ("tools.deny", deny))).chain(asked)
}

/// Checks that each pattern can fit a tool of fledge, a planned one, or a tool of a configured
/// server.
///
/// # Errors
/// [`PlanError`] if a pattern is invalid or can fit none of these.
pub(in crate::driver) fn must_fit(task: &Task, servers: &[ServerConfig]) -> Result<(), PlanError> {
    let wrong = |key: &str, pattern: &str, (why, hint): (String, String)| {
        PlanError::bad(format!("{}: `{pattern}` in `{key}`: {why} ({hint})", task.source))
    };
    for ask in &task.approve {
        check_ask(ask).map_err(|fault| wrong("approve.ask", ask, fault))?;
    }
    for (key, pattern) in all(task) {
        check_tool(pattern).map_err(|fault| wrong(key, pattern, fault))?;
        let prefixes: Vec<String> = servers.iter().map(ServerConfig::prefix).collect();
        if fit(pattern) == PatternMatch::Server && !prefixes.iter().any(|prefix| reaches(pattern, prefix)) {
            let known: Vec<String> = prefixes.iter().map(|prefix| format!("`{prefix}*`")).collect();
            let known = match known.is_empty() {
                true => "no MCP server is configured".into(),
                false => format!("configured: {}", known.join(", ")),
            };
            let near = nearest_server(pattern, servers).unwrap_or(known);
            return Err(wrong(key, pattern, ("it matches no tool and no configured MCP server".into(), near)));
        }
    }
    Ok(())
}

/// Suggests the server with the name closest to the one in a pattern such as `mcp-docs-*`.
fn nearest_server(pattern: &str, servers: &[ServerConfig]) -> Option<String> {
    let prefixes: Vec<String> = servers.iter().map(ServerConfig::prefix).collect();
    let named = pattern.trim_start_matches("mcp-").split(['-', '*']).next()?;
    meant(&format!("mcp-{named}-"), prefixes.iter().map(String::as_str))
}

/// Adds a note for each pattern that fits no tool now. `plan` must have the rules of all tools,
/// those of servers included.
///
/// # Errors
/// [`PlanError`] if a pattern is not a glob.
pub(in crate::driver) fn note_strays(
    task: &Task,
    servers: &[ServerConfig],
    plan: &mut RunPlan,
) -> Result<(), PlanError> {
    for (key, pattern) in all(task) {
        let globs = patterns(std::slice::from_ref(pattern))?;
        let is_there = |prefix: &String| plan.rules.iter().any(|rule| rule.name.starts_with(prefix.as_str()));
        let mut reached = servers.iter().map(ServerConfig::prefix).filter(|prefix| reaches(pattern, prefix));
        let note = match fit(pattern) {
            PatternMatch::Later => Some("matches only tools that do not exist yet"),
            PatternMatch::Server if plan.rules.iter().any(|rule| globs.is_match(&rule.name)) => None,
            PatternMatch::Server if reached.any(|prefix| is_there(&prefix)) => {
                Some("matches no tool that the MCP servers have now")
            }
            PatternMatch::Tool | PatternMatch::Server | PatternMatch::Nothing => None,
        };
        plan.notes.extend(note.map(|note| format!("`{pattern}` in `{key}` {note}: it has no effect")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::spawn;
    use crate::task::{TOOLS, ToolChoice};
    use crate::tool;

    fn refused(task: &Task, servers: &[ServerConfig]) -> String {
        must_fit(task, servers).map_or_else(|fault| fault.message, |()| String::new())
    }

    #[test]
    fn the_names_that_patterns_are_judged_by_are_those_of_the_tools_that_there_are() {
        let mut names: Vec<&str> = tool::TOOLS.iter().map(|tool| tool.name).chain([spawn::NAME]).collect();
        names.sort_unstable();
        assert_eq!(names, TOOLS);
    }

    #[test]
    fn a_pattern_that_fits_nothing_is_refused_whichever_way_the_task_came() {
        let servers = [ServerConfig::program("docs", vec!["serve".into()])];
        let asks = |ask: &str| Task { approve: vec![ask.into()], ..Task::from_prompt("go") };
        let denies = |deny: &str| Task {
            tools: ToolChoice { deny: vec![deny.into()], ..ToolChoice::default() },
            ..Task::from_prompt("go")
        };
        for fits in ["shell-exec:git push*", "files-*", "mcp-docs-*", "mcp-*", "git-*"] {
            assert_eq!(refused(&asks(fits), &servers), "", "{fits}");
        }
        let known = "did you mean `shell-exec`?";
        assert_eq!(
            refused(&denies("shell-exce"), &[]),
            format!("-: `shell-exce` in `tools.deny`: matches no tool ({known})")
        );
        let wrong = refused(&asks("mcp-dosc-find"), &servers);
        assert!(wrong.ends_with("no configured MCP server (did you mean `mcp-docs-`?)"), "{wrong}");
        let wrong = refused(&asks("*-push"), &[]);
        assert!(wrong.ends_with("(no MCP server is configured)"), "{wrong}");
        assert!(refused(&asks("git push*"), &servers).contains("for commands write `shell-exec:git push*`"));
        assert!(refused(&asks("shell-exec: "), &servers).contains("names no command"));
    }
}
