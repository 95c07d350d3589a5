//! Whether the patterns of a task for its tools fit any. One that fits none is refused, since somebody relies on it in vain; one for tools
//! that may come is told.

use super::{PlanFault, patterns};
use crate::mcp::Server;
use crate::run::Plan;
use crate::task::{Fit, Task, check_ask, check_tool, fit, reaches};
use crate::yaml::meant;

/// The patterns over names of tools, each with the key that it stands under.
fn all(task: &Task) -> impl Iterator<Item = (&'static str, &String)> {
    let asked = task.approve.iter().filter(|ask| !ask.contains(':')).map(|ask| ("approve.ask", ask));
    let allowed = task.tools.allow.iter().map(|allow| ("tools.allow", allow));
    allowed.chain(task.tools.deny.iter().map(|deny| ("tools.deny", deny))).chain(asked)
}

/// # Errors
/// When a pattern fits nothing that this project has, its configured servers included.
pub(in crate::driver) fn must_fit(task: &Task, servers: &[Server]) -> Result<(), PlanFault> {
    let wrong = |key: &str, pattern: &str, (why, hint): (String, String)| {
        PlanFault::bad(format!("{}: `{pattern}` in `{key}`: {why} ({hint})", task.source))
    };
    for ask in &task.approve {
        check_ask(ask).map_err(|fault| wrong("approve.ask", ask, fault))?;
    }
    for (key, pattern) in all(task) {
        check_tool(pattern).map_err(|fault| wrong(key, pattern, fault))?;
        let prefixes: Vec<String> = servers.iter().map(Server::prefix).collect();
        if fit(pattern) == Fit::Server && !prefixes.iter().any(|prefix| reaches(pattern, prefix)) {
            let known: Vec<String> = prefixes.iter().map(|prefix| format!("`{prefix}*`")).collect();
            let known = if known.is_empty() { "no MCP server is configured".into() } else { known.join(", ") };
            let near = nearest_server(pattern, servers).unwrap_or(known);
            return Err(wrong(
                key,
                pattern,
                ("it fits no tool, and those of no MCP server that is configured".into(), near),
            ));
        }
    }
    Ok(())
}

/// The server whose name is most like the one in a pattern such as `mcp-docs-*`.
fn nearest_server(pattern: &str, servers: &[Server]) -> Option<String> {
    let prefixes: Vec<String> = servers.iter().map(Server::prefix).collect();
    let named = pattern.trim_start_matches("mcp-").split(['-', '*']).next()?;
    meant(&format!("mcp-{named}-"), prefixes.iter().map(String::as_str))
}

/// Tells of patterns that hold for nothing now: the tools of servers are known, and `plan` has the rules of all.
///
/// # Errors
/// When a pattern is none.
pub(in crate::driver) fn note_strays(task: &Task, servers: &[Server], plan: &mut Plan) -> Result<(), PlanFault> {
    for (key, pattern) in all(task) {
        let globs = patterns(std::slice::from_ref(pattern))?;
        let is_there = |prefix: &String| plan.rules.iter().any(|rule| rule.name.starts_with(prefix.as_str()));
        let mut reached = servers.iter().map(Server::prefix).filter(|prefix| reaches(pattern, prefix));
        let note = match fit(pattern) {
            Fit::Later => Some("fits only tools that there are not yet"),
            Fit::Server if plan.rules.iter().any(|rule| globs.is_match(&rule.name)) => None,
            Fit::Server if reached.any(|prefix| is_there(&prefix)) => {
                Some("fits no tool that the MCP servers have now")
            }
            Fit::Tool | Fit::Server | Fit::Nothing => None,
        };
        plan.notes.extend(note.map(|note| format!("`{pattern}` in `{key}` {note}: it holds for nothing")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::spawn;
    use crate::task::{TOOLS, ToolChoice};
    use crate::tool;

    fn refused(task: &Task, servers: &[Server]) -> String {
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
        let servers = [Server::program("docs", vec!["serve".into()])];
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
            format!("-: `shell-exce` in `tools.deny`: it fits no tool ({known})")
        );
        let wrong = refused(&asks("mcp-dosc-find"), &servers);
        assert!(wrong.ends_with("that is configured (did you mean `mcp-docs-`?)"), "{wrong}");
        let wrong = refused(&asks("*-push"), &[]);
        assert!(wrong.ends_with("(no MCP server is configured)"), "{wrong}");
        assert!(refused(&asks("git push*"), &servers).contains("for commands write `shell-exec:git push*`"));
        assert!(refused(&asks("shell-exec: "), &servers).contains("it names no command"));
    }
}
