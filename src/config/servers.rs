//! The parser of programs beside the agent: the project's own hooks, and the MCP servers that tasks
//! may name.

use super::env_template::EnvTemplate;
use super::model_keys::is_header;
use super::url::url_fault;
use crate::task::Tier;
use crate::yaml::{FilePlace, Problem, Problems, TableReader, YamlKey, YamlNode, YamlValue, excerpt};
use std::collections::BTreeMap;
use std::time::Duration;

/// A command that runs after every turn in which something may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookConfig {
    /// The hook's name; by default its command.
    pub name: String,
    /// The command, for `/bin/sh`.
    pub run: String,
    /// The time limit; `None` for the default of hooks.
    pub timeout: Option<Duration>,
    /// True if the model learns of the hook's failure, and of its changes.
    pub tell_model: bool,
}

/// A configured MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// The program or the address of the server.
    pub at: McpAt,
    /// The lowest tier whose tasks may have its tools.
    pub tier: Tier,
    /// True if the server runs in the agent's sandbox.
    pub walled: bool,
    /// True if it may use the network from there.
    pub network: bool,
    /// The time limit of one call; `None` for the default of calls.
    pub timeout: Option<Duration>,
    /// True if no run may begin without it.
    pub required: bool,
}

/// The program or the address of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpAt {
    /// A program that fledge starts, and talks to by its standard streams.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// Its environment, besides the variables that every program needs.
        env: BTreeMap<String, EnvTemplate>,
    },
    /// The address of a server that already runs.
    Url {
        /// The address.
        url: String,
        /// Headers sent with each request.
        headers: BTreeMap<String, EnvTemplate>,
    },
}

/// Parses `hooks`.
pub(super) fn hooks(node: &YamlNode, problems: &mut Problems) -> Vec<HookConfig> {
    let Some(mut table) = TableReader::open(node, "`hooks`", problems) else { return Vec::new() };
    let list = match table.take("post_tools") {
        Some(YamlNode { value: YamlValue::List(items), .. }) => {
            items.iter().filter_map(|item| hook(item, problems)).collect()
        }
        Some(other) => {
            let message = format!("expected `post_tools` to be a list of commands, found {}", other.describe());
            problems.push(Problem::at(other.place, message).hint("write `post_tools: [cargo fmt]`"));
            Vec::new()
        }
        None => Vec::new(),
    };
    table.finish(problems);
    list
}

fn hook(node: &YamlNode, problems: &mut Problems) -> Option<HookConfig> {
    if let Some(run) = node.as_text().filter(|run| !run.trim().is_empty()) {
        return Some(HookConfig { name: run.into(), run: run.into(), timeout: None, tell_model: false });
    }
    let mut table = TableReader::open(node, "a hook", problems)?;
    if table.place_of("run").is_none() {
        problems.push(Problem::at(node.place, "the hook has no `run`").hint("add the command"));
    }
    let run = table.text("run", problems).map(str::to_owned);
    let name = table.text("name", problems).map(str::to_owned);
    let timeout = table.duration("timeout", problems);
    let tell_model = table.flag("tell_model", problems).unwrap_or(false);
    table.finish(problems);
    let run = run?;
    Some(HookConfig { name: name.unwrap_or_else(|| run.clone()), run, timeout, tell_model })
}

/// Parses `mcp`.
pub(super) fn servers(node: &YamlNode, problems: &mut Problems) -> BTreeMap<String, McpServer> {
    let YamlValue::Map(entries) = &node.value else {
        let message = format!("expected `mcp` to be a map from names to servers, found {}", node.describe());
        problems.push(Problem::at(node.place, message).hint("write `name: { command: [program, argument] }`"));
        return BTreeMap::new();
    };
    let entry = |(key, node): &(YamlKey, YamlNode)| Some((key.text.clone(), server(key, node, problems)?));
    entries.iter().filter_map(entry).collect()
}

fn server(key: &YamlKey, node: &YamlNode, problems: &mut Problems) -> Option<McpServer> {
    let name = &key.text;
    if name.is_empty() || name.len() > 32 || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) {
        let message = format!("`{}` is not a valid server name", excerpt(name));
        problems.push(Problem::at(key.place, message).hint("use at most 32 letters, digits, `_` and `-`"));
    }
    let mut table = TableReader::open(node, &format!("the server `{name}`"), problems)?;
    let command = table.text_or_texts("command", problems).map(|words| {
        let is_text = table.take("command").is_some_and(|node| node.as_text().is_some());
        if is_text { ["/bin/sh", "-c", &words[0]].map(str::to_owned).to_vec() } else { words }
    });
    let url = table.text("url", problems).map(str::to_owned);
    let place = |table: &mut TableReader<'_>, key: &str| table.take(key).map_or(node.place, |node| node.place);
    // Some servers have their key in the query.
    let base = url.as_deref().map(|url| url.split_once('?').map_or(url, |(base, _)| base));
    if let Some(why) = base.and_then(url_fault) {
        let why = why.replace("base_url", "url");
        problems.push(Problem::at(place(&mut table, "url"), why).hint("write `https://host/path`"));
    }
    let env = table.map_of_text("env", problems).unwrap_or_default();
    let headers = table.map_of_text("headers", problems).unwrap_or_default();
    if let Some((header, _)) = headers.iter().find(|(name, value)| !is_header(name, value)) {
        let message = format!("invalid header `{}`", excerpt(header));
        problems.push(Problem::at(place(&mut table, "headers"), message).hint("use letters, digits and `-`"));
    }
    let env = woven(env, place(&mut table, "env"), problems);
    let headers = woven(headers, place(&mut table, "headers"), problems);
    let misplaced = match (&command, &url) {
        (Some(_), None) => !headers.is_empty(),
        (None, Some(_)) => !env.is_empty(),
        (None, None) | (Some(_), Some(_)) => {
            let both = format!("the server `{name}` needs exactly one of `command` and `url`");
            problems
                .push(Problem::at(key.place, both).hint("write `command: [program, argument]`, or `url: https://…`"));
            false
        }
    };
    if misplaced {
        let stray = format!("in the server `{name}`, `env` needs `command`, and `headers` needs `url`");
        problems.push(Problem::at(key.place, stray).hint("remove the key that does not fit"));
    }
    let walled = table.one_of("sandbox", &[("auto", true), ("off", false)], problems).unwrap_or(true);
    let network = table.one_of("network", &[("deny", false), ("allow", true)], problems).unwrap_or(false);
    let tier = table.one_of("tier", &Tier::WORDS, problems).unwrap_or(Tier::Tool);
    let timeout = table.duration("timeout", problems);
    let required = table.flag("required", problems).unwrap_or(false);
    table.finish(problems);
    let at = match (command, url) {
        (Some(command), _) => McpAt::Command { command, env },
        (None, url) => McpAt::Url { url: url?, headers },
    };
    Some(McpServer { at, tier, walled, network, timeout, required })
}

/// Parses texts with references to variables, by their names.
fn woven(texts: Vec<(String, String)>, place: FilePlace, problems: &mut Problems) -> BTreeMap<String, EnvTemplate> {
    let mut all = BTreeMap::new();
    for (name, text) in texts {
        match EnvTemplate::read(&text) {
            Ok(woven) => drop(all.insert(name, woven)),
            Err(why) => {
                let message = format!("in `{}`, {why}", excerpt(&name));
                let hint = "write `${NAME}` with capitals, digits and `_`; for a literal `${` write `$${`";
                problems.push(Problem::at(place, message).hint(hint));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::parse;
    use crate::config::trust::Owner;

    #[test]
    fn hooks_and_servers_are_read_with_all_that_is_said_of_them() {
        let text = "hooks: { post_tools: [cargo fmt, { name: gen, run: make gen, timeout: 30s, tell_model: true }] }\n\
            mcp:\n  docs: { command: [docs-server, --stdio], env: { A: '${B}' }, tier: read, sandbox: off, timeout: 5s }\n  \
            web: { url: 'https://mcp.example/x', headers: { x-key: 'Bearer ${K}' }, required: true, network: allow }\n  sh: { command: ./serve --all }\n";
        let layer = parse(text, "f", Owner::User).unwrap();
        let second = Duration::from_secs(1);
        let hook = |run: &str| HookConfig { name: run.into(), run: run.into(), timeout: None, tell_model: false };
        assert_eq!(
            layer.hooks,
            [
                hook("cargo fmt"),
                HookConfig { name: "gen".into(), timeout: Some(30 * second), tell_model: true, ..hook("make gen") }
            ]
        );
        let texts = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), EnvTemplate::read(value).unwrap())]);
        let server =
            |at| McpServer { at, tier: Tier::Tool, walled: true, network: false, timeout: None, required: false };
        let command = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let docs = McpAt::Command { command: command(&["docs-server", "--stdio"]), env: texts("A", "${B}") };
        let web = McpAt::Url { url: "https://mcp.example/x".into(), headers: texts("x-key", "Bearer ${K}") };
        let shell = McpAt::Command { command: command(&["/bin/sh", "-c", "./serve --all"]), env: BTreeMap::new() };
        let docs = McpServer { tier: Tier::Read, walled: false, timeout: Some(5 * second), ..server(docs) };
        let web = McpServer { network: true, required: true, ..server(web) };
        let all = [("docs", docs), ("sh", server(shell)), ("web", web)].map(|(name, server)| (name.to_owned(), server));
        assert_eq!(layer.mcp, BTreeMap::from(all));
    }
    #[test]
    fn what_names_no_variable_is_refused_with_its_place_and_without_its_value() {
        let wrong = |text: &str| parse(text, "f", Owner::User).unwrap_err().to_string();
        let env = wrong("mcp:\n  docs: { command: [x], env: { TOKEN: 's3cret-${docs_token}' } }");
        assert!(env.starts_with("f:2:30: in `TOKEN`, `${docs_token}` is not a valid environment variable"), "{env}");
        let header = wrong("mcp:\n  web: { url: 'https://mcp.example', headers: { x-key: 's3cret ${KEY' } }");
        assert!(header.contains("in `x-key`, `${` has no closing `}`") && header.contains("`$${`"), "{header}");
        assert!(!env.contains("s3cret") && !header.contains("s3cret"));
    }
}
