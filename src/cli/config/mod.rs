//! `fledge config`: the values, the layer that sets each, and the place of each layer. For an API
//! key, it shows only whether the key exists.

mod rows;

use super::configured;
use super::failure::CliError;
use super::output::{no_output, print_data, print_json};
use super::paint::{self, Tone};
use super::project::ProjectArguments;
use super::steps::StyledLine;
use crate::config::{self, EnvironmentLayer, LayerSeen};
use crate::yaml::{self, YamlNode, YamlValue as Yaml};
use clap::{Args, Subcommand};
use rows::{SettingRow, rows};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The version of the `--json` output.
const CONFIG_SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Args)]
#[command(after_help = "Later layers win: built-in defaults, your user file, fledge.yaml, fledge.local.yaml, the \
    environment, a task's\n\
    front matter, flags.\n\nExamples:\n  fledge config show\n  fledge config show --json | jq '.values[] | \
    select(.from != \"default\")'\n  \
    fledge config path")]
pub(super) struct ConfigArguments {
    #[command(flatten)]
    project: ProjectArguments,
    /// Print JSON to standard output
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum ConfigVerb {
    /// Show every value and the layer that it comes from
    #[command(
        after_help = "Examples:\n  fledge config show\n  fledge config show --json | jq '.values[] | select(.from != \"default\")'"
    )]
    Show,
    /// Show the path of each layer
    #[command(after_help = "Examples:\n  fledge config path\n  fledge config path -C ../other --json")]
    Path,
}

/// Prints the values or the places; returns the exit code.
///
/// # Errors
/// When a layer is invalid, the folder does not exist, or standard output cannot be written.
pub(super) fn run(arguments: &ConfigArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let root = arguments.project.root(environment)?;
    for note in configured::restored_notes(environment, &root) {
        paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &paint::one_line(&note))]);
    }
    for (name, meant) in environment.misspelt() {
        let says = format!("{name} is set, but fledge does not read it (did you mean `{meant}`?)");
        paint::line(&[(Tone::Warn, "! "), (Tone::Plain, &paint::one_line(&says))]);
    }
    let (lines, data) = match arguments.verb {
        ConfigVerb::Show => shown(&config::layers(environment, &root).map_err(CliError::input)?, environment),
        ConfigVerb::Path => places(&config::places(environment, &root), environment),
    };
    let printed = if arguments.json { print_json(&data.to_string()) } else { print_data(&paint::page(&lines)) };
    printed.map_err(no_output).map(|()| 0)
}

/// A value after all layers, and its source.
struct Setting {
    row: SettingRow,
    /// The name of a file, `default`, or the name of a variable.
    from: String,
    /// The line in the file.
    line: Option<usize>,
}

fn shown(layers: &[LayerSeen], environment: &EnvironmentLayer) -> (Vec<StyledLine>, Value) {
    let settings = settings(layers, environment);
    let width = |of: fn(&Setting) -> &str| settings.iter().map(|set| of(set).chars().count()).max().unwrap_or(0);
    let (keys, values) = (width(|set| &set.row.key), width(|set| &set.row.value).min(60));
    let line = |set: &Setting| {
        let place = set.line.map(|line| format!(":{line}")).unwrap_or_default();
        let tone = if set.from == "default" { Tone::Faint } else { Tone::Good };
        vec![
            (Tone::Strong, format!("{:<keys$}  ", set.row.key)),
            (Tone::Plain, format!("{:<values$}  ", paint::one_line(&set.row.value))),
            (tone, paint::one_line(&format!("{}{place}", set.from))),
        ]
    };
    let value =
        |set: &Setting| json!({ "key": set.row.key, "value": set.row.value, "from": set.from, "line": set.line });
    let data: Vec<Value> = settings.iter().map(value).collect();
    (settings.iter().map(line).collect(), json!({ "schema_version": CONFIG_SCHEMA_VERSION, "values": data }))
}

/// Returns every value with the last layer that changed it.
fn settings(layers: &[LayerSeen], environment: &EnvironmentLayer) -> Vec<Setting> {
    let seen: Vec<(Vec<SettingRow>, &LayerSeen)> =
        layers.iter().map(|seen| (rows(&seen.so_far, environment), seen)).collect();
    let Some((last, _)) = seen.last() else { return Vec::new() };
    let value_in = |rows: &[SettingRow], key: &str| rows.iter().find(|row| row.key == key).map(|row| row.value.clone());
    let setting = |row: &SettingRow| {
        let is_changed = |at: usize| value_in(&seen[at].0, &row.key) != value_in(&seen[at - 1].0, &row.key);
        let is_said =
            |at: usize| !is_narrowed(&row.key) && said_in(seen[at].1, &row.key).is_some_and(|(_, whole)| whole);
        let source = (1..seen.len()).rev().find(|at| is_changed(*at) || is_said(*at));
        let layer = source.map_or(seen[0].1, |at| seen[at].1);
        let line = said_in(layer, &row.key).map(|(line, _)| line);
        let from = match row.variable {
            Some(variable) if layer.name == "environment" => variable.to_owned(),
            Some(_) | None => layer.name.clone(),
        };
        Setting { row: row.clone(), from, line }
    };
    last.iter().map(setting).collect()
}

/// Returns true if a project's file may only lower the value: a value in the file is then not
/// always the one in effect.
fn is_narrowed(key: &str) -> bool {
    key.starts_with("budget.") || ["tier", "on_tamper", "confirm_within"].contains(&key)
}

/// Returns the line of a key like `budget.turns` in a file, or of the nearest key above it. The
/// second value is true if it is the key itself.
fn said_in(layer: &LayerSeen, key: &str) -> Option<(usize, bool)> {
    let root = yaml::parse(layer.text.as_deref()?, 1).ok()?;
    let (mut node, mut line, mut is_whole) = (&root, None, true);
    for part in key.split('.') {
        let found: Option<&(yaml::YamlKey, YamlNode)> = match &node.value {
            Yaml::Map(entries) => entries.iter().find(|(key, _)| key.text == part),
            _ => None,
        };
        let Some((key, below)) = found else {
            is_whole = false;
            break;
        };
        (node, line) = (below, Some(key.place.line));
    }
    line.map(|line| (line, is_whole))
}

fn places(places: &[(String, PathBuf)], environment: &EnvironmentLayer) -> (Vec<StyledLine>, Value) {
    let is_there = |path: &PathBuf| path.is_file();
    let line = |(_, path): &(String, PathBuf)| {
        let (tone, said) = if is_there(path) { (Tone::Good, "✓ ") } else { (Tone::Faint, "- ") };
        vec![(tone, said.to_owned()), (Tone::Plain, paint::one_line(&path.display().to_string()))]
    };
    let mut lines: Vec<StyledLine> = places.iter().map(line).collect();
    let state = environment.state_dir().ok();
    if let Some(state) = &state {
        lines.push(vec![(Tone::Faint, "state: ".into()), (Tone::Plain, paint::one_line(&state.display().to_string()))]);
    }
    let file = |(name, path): &(String, PathBuf)| json!({ "name": name, "path": path, "exists": is_there(path) });
    let files: Vec<Value> = places.iter().map(file).collect();
    (lines, json!({ "schema_version": CONFIG_SCHEMA_VERSION, "files": files, "state": state }))
}
