//! Patterns over the names of tools. A pattern that matches no tool is an error: a tool that the
//! pattern was meant to restrict would run.

use crate::yaml::{excerpt, meant};
use globset::Glob;

/// The names of the existing tools.
pub(crate) const TOOLS: [&str; 12] = [
    "files-delete",
    "files-edit",
    "files-glob",
    "files-list",
    "files-read",
    "files-write",
    "lane-log",
    "memory-recall",
    "memory-store",
    "search-grep",
    "shell-exec",
    "subagent-spawn",
];
/// Planned tools. A pattern may already name them, with a note that it has no effect yet.
const LATER: [&str; 10] = [
    "ask-human",
    "git-commit",
    "git-diff",
    "git-log",
    "git-show",
    "git-status",
    "lane-run",
    "search-symbols",
    "specs-list",
    "specs-read",
];
/// The prefix of the names of all tools of MCP servers.
const MCP: &str = "mcp-";
/// The tool whose commands can need approval.
const SHELL: &str = "shell-exec";

/// The kind of tool that a pattern matches, without asking any server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternMatch {
    /// An existing tool.
    Tool,
    /// At most tools of MCP servers.
    Server,
    /// Only planned tools.
    Later,
    /// No tool.
    Nothing,
}

/// Returns the kind of tool that a pattern matches.
pub(crate) fn fit(pattern: &str) -> PatternMatch {
    let Ok(glob) = Glob::new(pattern) else { return PatternMatch::Nothing };
    let glob = glob.compile_matcher();
    if TOOLS.iter().any(|tool| glob.is_match(tool)) {
        PatternMatch::Tool
    } else if LATER.iter().any(|tool| glob.is_match(tool)) {
        PatternMatch::Later
    } else if reaches(pattern, MCP) {
        PatternMatch::Server
    } else {
        PatternMatch::Nothing
    }
}

/// Returns whether a pattern may match a name with this prefix.
pub(crate) fn reaches(pattern: &str, prefix: &str) -> bool {
    let plain = pattern.split(['*', '?', '[', '{', '\\']).next().unwrap_or_default();
    let is_open = plain.len() < pattern.len();
    plain.len() > prefix.len() && plain.starts_with(prefix) || is_open && (plain == prefix || prefix.starts_with(plain))
}

/// Expands a pattern with braces. Returns nothing for a pattern without braces or with nested ones.
fn halves(pattern: &str) -> Vec<String> {
    let Some((before, (inside, after))) =
        pattern.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return Vec::new();
    };
    if inside.contains('{') || after.contains('{') || pattern.contains('\\') {
        return Vec::new();
    }
    inside.split(',').map(|half| format!("{before}{half}{after}")).collect()
}

/// Checks a pattern over the names of tools. An error is the problem and a hint.
pub(crate) fn check_tool(pattern: &str) -> Result<(), (String, String)> {
    super::file::check_pattern(pattern)?;
    for half in halves(pattern) {
        check_tool(&half).map_err(|(_, hint)| (format!("`{half}` matches no tool"), hint))?;
    }
    match fit(pattern) {
        PatternMatch::Tool | PatternMatch::Server | PatternMatch::Later => Ok(()),
        PatternMatch::Nothing => {
            let near = meant(pattern.trim_end_matches('*'), TOOLS);
            let known = || format!("known: {}, and `{MCP}…` of MCP servers", TOOLS.join(", "));
            Err(("matches no tool".into(), near.unwrap_or_else(known)))
        }
    }
}

/// Checks a pattern of calls that need approval. An error is the problem and a hint.
pub(crate) fn check_ask(pattern: &str) -> Result<(), (String, String)> {
    let refuse = |why: &str, hint: String| Err((why.to_owned(), hint));
    match pattern.split_once(':') {
        Some((tool, _)) if tool != SHELL => {
            refuse("only `shell-exec` takes a command", "write `shell-exec:git push*`, or a tool's name alone".into())
        }
        Some((_, command)) if command.trim().is_empty() => {
            refuse("names no command", "write `shell-exec:git push*`, or `shell-exec` for all commands".into())
        }
        Some(_) => super::file::check_pattern(pattern),
        None => check_tool(pattern).map_err(|(why, hint)| {
            let is_command =
                fit(pattern) == PatternMatch::Nothing && meant(pattern.trim_end_matches('*'), TOOLS).is_none();
            let example = if pattern.contains(' ') { excerpt(pattern) } else { "git push*".into() };
            (why, if is_command { format!("for commands write `{SHELL}:{example}`; {hint}") } else { hint })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_half_of_a_pattern_with_braces_has_to_fit_something() {
        assert_eq!(check_tool("{files-*,shell-exec}"), Ok(()));
        assert_eq!(check_tool("files-{read,write}"), Ok(()));
        let (why, hint) = check_tool("{files-*,shell-exce}").unwrap_err();
        assert_eq!((why.as_str(), hint.contains("shell-exec")), ("`shell-exce` matches no tool", true), "{hint}");
        assert_eq!(check_ask("files-{read,rite}").unwrap_err().0, "`files-rite` matches no tool");
    }

    #[test]
    fn a_pattern_fits_what_there_is_what_is_planned_a_server_or_nothing() {
        let cases = [
            ("*", PatternMatch::Tool),
            ("files-*", PatternMatch::Tool),
            ("m*", PatternMatch::Tool),
            ("subagent-spawn", PatternMatch::Tool),
            ("*-push", PatternMatch::Server),
            ("mcp-docs-*", PatternMatch::Server),
            ("mcp-docs-find", PatternMatch::Server),
            ("mcp-", PatternMatch::Nothing),
            ("git-*", PatternMatch::Later),
            ("git-push*", PatternMatch::Nothing),
            ("git push*", PatternMatch::Nothing),
            ("shell-exce", PatternMatch::Nothing),
            ("Files-read", PatternMatch::Nothing),
            ("", PatternMatch::Nothing),
            ("[", PatternMatch::Nothing),
        ];
        for (pattern, wanted) in cases {
            assert_eq!(fit(pattern), wanted, "{pattern}");
        }
        let of_docs = ["mcp-docs-find", "mcp-*", "*", "mcp-docs-*", "mcp-docs-", "mcp-web-*", "files-*"];
        let reached = of_docs.map(|pattern| reaches(pattern, "mcp-docs-"));
        assert_eq!(reached, [true, true, true, true, false, false, false]);
    }
}
