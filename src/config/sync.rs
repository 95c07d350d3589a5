//! The parser of `sync`: a server, the source of its token, and this machine's name there.

use super::model::KeyPlace;
use super::model_keys::{file_of, is_variable};
use super::url::{is_loopback, url_fault};
use crate::yaml::{Problem, Problems, TableReader, YamlNode};
use std::path::PathBuf;

/// A server to which runs are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncConfig {
    /// The server's address.
    pub url: String,
    /// The source of its token, besides the variable `FLEDGE_SYNC_TOKEN`.
    pub token: Option<KeyPlace>,
    /// This machine's name there; `None` for its own name.
    pub machine: Option<String>,
    /// A file with certificates that are trusted for the server, besides the system's.
    pub ca_file: Option<PathBuf>,
}

/// The variable with the address of the server to which runs are sent.
pub(crate) const SYNC_VARIABLE: &str = "FLEDGE_SYNC";
/// The variable with the server's token.
#[cfg(feature = "cli")]
pub(crate) const SYNC_TOKEN_VARIABLE: &str = "FLEDGE_SYNC_TOKEN";

/// Returns the settings of the server at this address. A configured token is only for the server
/// that it was configured for.
pub(crate) fn elsewhere(url: &str, said: Option<SyncConfig>) -> SyncConfig {
    match said {
        Some(said) if said.url == url => said,
        said => {
            SyncConfig { url: url.to_owned(), token: None, machine: said.and_then(|said| said.machine), ca_file: None }
        }
    }
}

/// Parses `sync`.
pub(super) fn sync(node: &YamlNode, problems: &mut Problems) -> Option<SyncConfig> {
    let mut table = TableReader::open(node, "`sync`", problems)?;
    if table.place_of("url").is_none() {
        problems
            .push(Problem::at(node.place, "`sync` has no `url`").hint("add the server's address: `url: https://host`"));
    }
    let url = address(&mut table, problems);
    let variable = variable(&mut table, problems).map(KeyPlace::Variable);
    let file = file_of(&mut table, "token_file", problems).map(KeyPlace::File);
    let command = command(&mut table, problems);
    let mut said = ["token_env", "token_file", "token_command"].into_iter().filter_map(|key| table.place_of(key));
    if let Some(second) = said.nth(1) {
        let twice = Problem::at(second, "the token has more than one source");
        problems.push(twice.hint("keep one of `token_env`, `token_file` and `token_command`"));
    }
    let machine = machine(&mut table, problems);
    let ca_file = file_of(&mut table, "ca_file", problems);
    table.finish(problems);
    url.map(|url| SyncConfig { url, token: command.or(file).or(variable), machine, ca_file })
}

fn address(table: &mut TableReader<'_>, problems: &mut Problems) -> Option<String> {
    let url = table.text("url", problems)?.to_owned();
    let place = table.take("url")?.place;
    if let Some(why) = url_fault(&url) {
        problems.push(Problem::at(place, why.replace("base_url", "url")).hint("write `https://host`"));
    } else if url.starts_with("http://") && !is_loopback(&url) {
        let open = Problem::at(place, "`url` reaches another machine without TLS: others could read the token");
        problems.push(open.hint("write `https://…`, or use a tunnel: `http://127.0.0.1:7777`"));
    }
    Some(url)
}

fn variable(table: &mut TableReader<'_>, problems: &mut Problems) -> Option<String> {
    let name = table.text("token_env", problems)?.to_owned();
    if !is_variable(&name) {
        let place = table.take("token_env")?.place;
        let wrong = Problem::at(place, "expected `token_env` to name an environment variable");
        problems.push(wrong.hint("never write the token into a file; write the variable's name, e.g. `MY_TOKEN`"));
    }
    Some(name)
}

/// Parses the program that prints the token. It runs when something is sent.
fn command(table: &mut TableReader<'_>, problems: &mut Problems) -> Option<KeyPlace> {
    let words = table.text_or_texts("token_command", problems)?;
    let is_text = table.take("token_command").is_some_and(|node| node.as_text().is_some());
    let shell = |text| ["/bin/sh", "-c", text].map(str::to_owned).to_vec();
    Some(KeyPlace::Command { command: if is_text { shell(&words[0]) } else { words }, ttl: None })
}

fn machine(table: &mut TableReader<'_>, problems: &mut Problems) -> Option<String> {
    let name = table.text("machine", problems)?.to_owned();
    if name.is_empty() || name.len() > 64 || !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
        let place = table.take("machine")?.place;
        let wrong = Problem::at(place, "expected `machine` to have 1 to 64 characters");
        problems.push(wrong.hint("use letters, digits, `.`, `_` and `-`"));
    }
    Some(name)
}
