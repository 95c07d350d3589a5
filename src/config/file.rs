//! The parser of a configuration file. [`super::trust`] decides what a project's file may set.

use super::limits::{LimitSettings, limits};
use super::model::ModelSettings;
use super::servers::{HookConfig, McpServer, hooks, servers};
use super::sync::{SyncConfig, sync};
use super::trust::{self, Owner};
use super::{ConfigError, Sourced, model_keys};
use crate::process::sandbox::SandboxChoice;
use crate::task::{
    Baseline, Commit, Isolation, OnTamper, STUCK_AFTER, TaskDefaults, Tier, check_ask, check_glob, check_hidden,
    read_budget,
};
use crate::yaml::{FilePlace, Problem, Problems, TableReader, YamlValue, parse as parse_yaml};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of one file.
#[derive(Debug, Default)]
pub(super) struct Layer {
    pub(super) default_model: Option<Sourced>,
    pub(super) models: BTreeMap<String, ModelSettings>,
    /// The place of each model in the file.
    pub(super) model_places: Vec<(String, FilePlace)>,
    pub(super) protect: Vec<String>,
    pub(super) baseline: Option<Baseline>,
    pub(super) ephemeral_ttl: Option<Duration>,
    pub(super) recall_tokens: Option<usize>,
    pub(super) sandbox: Option<SandboxChoice>,
    pub(super) network: Option<bool>,
    pub(super) limits: LimitSettings,
    pub(super) defaults: TaskDefaults,
    pub(super) hooks: Vec<HookConfig>,
    pub(super) mcp: BTreeMap<String, McpServer>,
    pub(super) sync: Option<SyncConfig>,
    pub(super) trust: Vec<PathBuf>,
}

/// Planned keys. They are refused, since they would have no effect yet.
const LATER: &[&str] = &["context", "room", "specs"];
/// Keys of tasks and of other tools, each with its name in a configuration.
const OTHERS: &[(&str, &str)] = &[
    ("approval", "approve"),
    ("mcpServers", "mcp"),
    ("mcp_servers", "mcp"),
    ("model", "default_model"),
    ("providers", "models"),
    ("retries", "max_retries"),
    ("time", "budget"),
    ("turns", "budget"),
];

/// The range for the number of alike calls that make a loop.
pub(super) const LOOP_THRESHOLD: RangeInclusive<i64> = 4..=64;
/// The range for the tokens of memories in a first message.
pub(super) const RECALLED: RangeInclusive<i64> = 100..=100_000;
/// The range for the number of tries of one model call.
pub(super) const MAX_TRIES: RangeInclusive<i64> = 1..=20;
/// The range for the share of a window at which a conversation is made shorter, in percent.
pub(super) const COMPACT_AT: [f64; 2] = [20.0, 95.0];

/// Parses a configuration file; `name` is its name in messages.
pub(super) fn parse(text: &str, name: &str, owner: Owner) -> Result<Layer, ConfigError> {
    let (layer, refused) = parse_what_may_be_said(text, name, owner)?;
    if refused.is_empty() { Ok(layer) } else { Err(ConfigError::Invalid { file: name.into(), problems: refused }) }
}

/// Parses a configuration file, and returns as problems what its owner may not set. If there are
/// any, the layer has no models, hooks, servers or trusted folders.
pub(super) fn parse_what_may_be_said(text: &str, name: &str, owner: Owner) -> Result<(Layer, Problems), ConfigError> {
    let fault = |problems: Problems| {
        let problems = problems.seen_in_private(text); // a configuration may hold keys of models
        ConfigError::Invalid { file: name.into(), problems }
    };
    let root = parse_yaml(text, 1).map_err(|problem| fault(problem.into()))?;
    let mut layer = Layer::default();
    if root.value == YamlValue::Null {
        return Ok((layer, Problems::default()));
    }
    let mut problems = Problems::default();
    let Some(mut table) = TableReader::open(&root, "the configuration", &mut problems) else {
        return Err(fault(problems));
    };
    trust::guard(&table, trust::TOP, owner, &mut problems);
    let origin = table.place_of("default_model").map(|place| format!("{name}:{}", place.line)).unwrap_or_default();
    layer.default_model =
        table.text("default_model", &mut problems).map(|value| Sourced { value: value.into(), origin });
    layer.protect = table.texts_where("protect", check_glob, &mut problems).unwrap_or_default();
    layer.baseline = table.one_of("baseline", &Baseline::WORDS, &mut problems);
    if let Some(node) = table.take("models") {
        layer.models = model_keys::models(node, name, owner, &mut problems);
        if let YamlValue::Map(entries) = &node.value {
            layer.model_places = entries.iter().map(|(key, _)| (key.text.clone(), key.place)).collect();
        }
    }
    if let Some(mut memory) = table.take("memory").and_then(|node| TableReader::open(node, "`memory`", &mut problems)) {
        layer.ephemeral_ttl = memory.duration("ephemeral_ttl", &mut problems);
        let tokens = memory.int("recall_tokens", RECALLED, &mut problems);
        layer.recall_tokens = tokens.and_then(|tokens| usize::try_from(tokens).ok());
        memory.finish(&mut problems);
    }
    layer.sandbox = sandbox(&mut table, owner, &mut problems);
    layer.network = network(&mut table, owner, &mut problems);
    layer.limits = limits(&mut table, &mut problems);
    layer.defaults = defaults(&mut table, &mut problems);
    layer.hooks = table.take("hooks").map(|node| hooks(node, &mut problems)).unwrap_or_default();
    layer.mcp = table.take("mcp").map(|node| servers(node, &mut problems)).unwrap_or_default();
    layer.sync = table.take("sync").and_then(|node| sync(node, &mut problems));
    layer.trust = trusted(&mut table, &mut problems);
    table.take("tasks"); // read with the lanes that refer to them
    table.later(LATER, &mut problems);
    table.finish_with(OTHERS, &mut problems);
    if !problems.are_refusals() {
        return Err(fault(problems));
    }
    if !problems.is_empty() {
        let Layer { protect, baseline, ephemeral_ttl, sandbox, network, limits, defaults, .. } = layer;
        layer = Layer { protect, baseline, ephemeral_ttl, sandbox, network, limits, defaults, ..Layer::default() };
    }
    Ok((layer, problems.seen_in_private(text)))
}

/// Parses the defaults for tasks that do not set a value.
fn defaults(table: &mut TableReader<'_>, problems: &mut Problems) -> TaskDefaults {
    let small = |int: Option<i64>| int.and_then(|int| u32::try_from(int).ok());
    let approve =
        table.take("approve").and_then(|node| TableReader::open(node, "`approve`", problems)).map(|mut approve| {
            let ask = approve.texts_where("ask", check_ask, problems);
            approve.finish(problems);
            ask.unwrap_or_default()
        });
    let budget = table.take("budget").map(|node| read_budget(node, problems));
    let milliseconds = |time: Option<Duration>| time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let within = table.duration("confirm_within", problems);
    let max_wait = table.duration("max_wait", problems);
    TaskDefaults {
        lanes: table.text_or_texts("lane", problems),
        max_retries: small(table.int("max_retries", 0..=100, problems)),
        stuck_after: small(table.int("stuck_after", STUCK_AFTER, problems)),
        on_tamper: table.one_of("on_tamper", &OnTamper::WORDS, problems),
        tier: table.one_of("tier", &Tier::WORDS, problems),
        commit: table.one_of("commit", &Commit::WORDS, problems),
        isolation: table.one_of("isolation", &Isolation::WORDS, problems),
        budget: budget.unwrap_or_default(),
        approve: approve.unwrap_or_default(),
        hidden: table.text_or_texts_where("hidden", check_hidden, problems).unwrap_or_default(),
        parallel_reads: table.flag("parallel_reads", problems),
        loop_threshold: small(table.int("loop_threshold", LOOP_THRESHOLD, problems)),
        compact_at_percent: compact_at(table, problems),
        confirm_within_ms: milliseconds(within),
        max_tries: small(table.int("max_tries", MAX_TRIES, problems)),
        max_wait_ms: milliseconds(max_wait),
    }
}

/// Parses the share of its window at which a conversation is made shorter: `0.7`, as whole
/// percents.
fn compact_at(table: &mut TableReader<'_>, problems: &mut Problems) -> Option<u32> {
    let node = table.take("compact_at")?;
    let percents = match node.value {
        YamlValue::Float(share) => {
            Some((share * 100.0).round()).filter(|percents| (share * 100.0 - percents).abs() < 1e-9)
        }
        _ => None,
    };
    let fits =
        percents.filter(|percents| (COMPACT_AT[0]..=COMPACT_AT[1]).contains(percents)).map(|percents| percents as u32);
    if fits.is_none() {
        let message = format!("expected `compact_at` to be a share from 0.20 to 0.95, found {}", node.describe());
        problems.push(Problem::at(node.place, message).hint("write `0.7` for 70 % of the model's context window"));
    }
    fits
}

/// Parses the projects whose own files may set everything.
fn trusted(table: &mut TableReader<'_>, problems: &mut Problems) -> Vec<PathBuf> {
    let is_whole = |path: &str| match path.starts_with('/') {
        true => Ok(()),
        false => Err(("not an absolute path".into(), "write the absolute path of the project's folder".into())),
    };
    table.texts_where("trust", is_whole, problems).unwrap_or_default().into_iter().map(PathBuf::from).collect()
}

fn sandbox(table: &mut TableReader<'_>, owner: Owner, problems: &mut Problems) -> Option<SandboxChoice> {
    let place = table.place_of("sandbox");
    let name = table.text("sandbox", problems)?;
    let place = place?;
    match (SandboxChoice::parse(name), owner) {
        (Some(SandboxChoice::Off), Owner::Project) => {
            trust::refuse("sandbox", place, "cannot be `off`: agents would run without a sandbox", problems);
            None
        }
        (Some(choice), Owner::User | Owner::Project) => Some(choice),
        (None, Owner::User | Owner::Project) => {
            let message = format!("`sandbox` cannot be `{}`", crate::yaml::excerpt(name));
            let problem = Problem::at(place, message).hint("write `auto`, `required` or `off`");
            problems.push(problem.near(name, SandboxChoice::NAMES));
            None
        }
    }
}

fn network(table: &mut TableReader<'_>, owner: Owner, problems: &mut Problems) -> Option<bool> {
    let place = table.place_of("network");
    let word = table.text("network", problems)?;
    let place = place?;
    match (word, owner) {
        ("deny", _) => Some(false),
        ("allow", Owner::User) => Some(true),
        ("allow", Owner::Project) => {
            trust::refuse("network", place, "cannot be `allow`: agents could send what they read", problems);
            None
        }
        (other, _) => {
            let message = format!("`network` cannot be `{}`", crate::yaml::excerpt(other));
            problems.push(Problem::at(place, message).hint("write `deny` or `allow`").near(other, ["deny", "allow"]));
            None
        }
    }
}
