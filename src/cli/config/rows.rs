//! The table of all settings, for `fledge config show`: each key with its value as text. For an
//! unset key, the value is the default that a run uses.

use super::super::connect::key_of;
use crate::config::{EnvironmentLayer, McpAt, ModelSettings, ProjectConfig};
use crate::duration::show_duration;
use crate::limits::{EPHEMERAL_TTL, Limits, RECALL_TOKENS};
use crate::process::sandbox::{SandboxChoice, SandboxLimits};
use crate::task::{Baseline, GateChoice, Isolation, OnTamper, Task};
use std::time::Duration;

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SettingRow {
    /// The key as in a file, with `.` between its parts.
    pub(super) key: String,
    /// The value as text.
    pub(super) value: String,
    /// The variable that also sets it.
    pub(super) variable: Option<&'static str>,
}

/// Returns a row for each setting, model and MCP server. `environment` is used to say whether the
/// key of a model is set.
pub(super) fn rows(config: &ProjectConfig, environment: &EnvironmentLayer) -> Vec<SettingRow> {
    let row = |key: &str, value: String| SettingRow { key: key.into(), value, variable: None };
    let (task, limits) = (config.defaults.apply_to(Task::from_prompt("")), Limits::default());
    let unlimited = || "unlimited".to_owned();
    let ms = |ms: u64| show_duration(Duration::from_millis(ms));
    let model = config
        .default_model
        .as_ref()
        .map_or("none: the first model that has a key".into(), |model| model.value.clone());
    let lanes = match &task.gate {
        GateChoice::Lanes(lanes) => lanes.join(", "),
        GateChoice::Skip => "false".into(),
    };
    let usd = |micros: u64| format!("{:.2}", micros as f64 / 1e6);
    let mut rows = vec![
        SettingRow { variable: Some(crate::config::MODEL_VARIABLE), ..row("default_model", model) },
        row("lane", lanes),
        row("max_retries", task.max_retries.to_string()),
        row("stuck_after", task.stuck_after.map_or("off".into(), |count| count.to_string())),
        row("on_tamper", word(&OnTamper::WORDS, task.on_tamper)),
        row("tier", task.tier.name().into()),
        row("commit", task.commits().word().into()),
        row("isolation", word(&Isolation::WORDS, task.isolation)),
        row("baseline", word(&Baseline::WORDS, config.baseline.unwrap_or_default())),
        row("budget.turns", task.budget.turns.unwrap_or(limits.turns).to_string()),
        row("budget.tokens", task.budget.tokens.map_or_else(unlimited, |tokens| tokens.to_string())),
        row("budget.usd", task.budget.usd_micros.map_or_else(unlimited, usd)),
        row("budget.time", ms(task.budget.time_ms.unwrap_or(limits.time_ms))),
        row("parallel_reads", task.conduct.parallel_reads.to_string()),
        row("loop_threshold", task.conduct.loop_threshold.map_or(limits.loop_threshold as u64, u64::from).to_string()),
        row("compact_at", share(task.conduct.compact_at_percent.map_or(limits.compact_at_percent, u64::from))),
        row("confirm_within", task.conduct.confirm_within_ms.map_or("no limit".into(), ms)),
        row("approve", listed(&task.approve)),
        row("protect", listed(&config.protect)),
        row("hidden", listed(&task.hidden)),
        row("sandbox", sandbox(config.sandbox).into()),
        row("network", if config.network { "allow" } else { "deny" }.into()),
        row("limits.processes", config.limits.processes.map_or_else(unlimited, |count| count.to_string())),
        row("limits.memory", memory(config.limits)),
        row("limits.file_size", config.limits.file_size.map_or_else(unlimited, mebibytes)),
        row("memory.ephemeral_ttl", show_duration(config.ephemeral_ttl.unwrap_or(EPHEMERAL_TTL))),
        row("memory.recall_tokens", config.recall_tokens.unwrap_or(RECALL_TOKENS).to_string()),
        SettingRow {
            variable: Some("FLEDGE_NON_INTERACTIVE"),
            ..row("non_interactive", config.non_interactive.to_string())
        },
    ];
    rows.extend(config.models.iter().map(|(name, model)| row(&format!("models.{name}"), of_model(model, environment))));
    rows.extend(config.mcp.iter().map(|(name, server)| {
        let at = match &server.at {
            McpAt::Command { command, .. } => command.join(" "),
            McpAt::Url { url, .. } => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
        };
        row(&format!("mcp.{name}"), format!("{at}, for tier {} and above", server.tier.name()))
    }));
    let sync = config.sync.as_ref().map_or("none".into(), |sync| sync.url.clone());
    rows.push(SettingRow { variable: Some(crate::config::SYNC_VARIABLE), ..row("sync.url", sync) });
    let hooks: Vec<String> = config.hooks.iter().map(|hook| hook.run.clone()).collect();
    rows.push(row("hooks.post_tools", listed(&hooks)));
    let trust: Vec<String> = config.trust.iter().map(|path| path.display().to_string()).collect();
    rows.push(row("trust", listed(&trust)));
    rows
}

fn of_model(model: &ModelSettings, environment: &EnvironmentLayer) -> String {
    let (state, place) = key_of(model, environment);
    let key = place.map_or(state.to_owned(), |place| format!("key {place} ({state})"));
    format!("{}/{}, {key}", model.provider.name(), model.model)
}

fn word<T: PartialEq + Copy>(words: &[(&str, T)], value: T) -> String {
    words.iter().find(|(_, meaning)| *meaning == value).map_or("", |(word, _)| word).to_owned()
}

fn sandbox(choice: SandboxChoice) -> &'static str {
    SandboxChoice::NAMES.into_iter().find(|name| SandboxChoice::parse(name) == Some(choice)).unwrap_or_default()
}

fn listed(texts: &[String]) -> String {
    if texts.is_empty() { "none".into() } else { texts.join(", ") }
}

/// Returns the limit on memory. The default depends on the machine.
fn memory(limits: SandboxLimits) -> String {
    match limits.memory {
        memory if memory == SandboxLimits::default().memory => "3/4 of the machine's memory".into(),
        memory => memory.map_or_else(|| "unlimited".into(), mebibytes),
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{}MiB", bytes >> 20)
}

fn share(percent: u64) -> String {
    format!("{:.2}", percent as f64 / 100.0)
}
