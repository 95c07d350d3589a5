//! Writes a detected lane as a file for people: what it was made from, what is not in it, then steps in block style.

use super::{Check, Detected, Effect};
use crate::yaml::listed;
use std::fmt::Write as _;

/// Test runners of Node watch for changes unless `CI` is set.
const CI: &str = "env:\n  CI: '1' # test runners do not watch for changes\n";

/// The whole file. Without checks it has no steps, and is no lane.
pub(super) fn write(detected: &Detected) -> String {
    let is_single = detected.has_single_quotes;
    let markers = listed(detected.markers.iter().map(String::as_str));
    let mut page = format!(
        "# What every change must pass, as fledge found it out from {markers}. Edit it: it is yours, and never written again.\n"
    );
    for remark in &detected.remarks {
        let line: String = remark.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _to_text = writeln!(page, "# {line}");
    }
    let _to_text = write!(
        page,
        "description: Checks detected from {markers}\ntimeout: 30m\n{}steps:\n",
        if is_node(detected) { CI.replace('\'', if is_single { "'" } else { "\"" }) } else { String::new() }
    );
    let (together, alone) = detected.checks.split_at(detected.checks.partition_point(|c| c.effect == Effect::Reads));
    let indent = if together.len() > 1 { "      " } else { "  " };
    if together.len() > 1 {
        page.push_str("  - parallel: # these only read\n");
    }
    together.iter().for_each(|check| step(&mut page, check, indent, is_single));
    alone.iter().for_each(|check| step(&mut page, check, "  ", is_single));
    page
}

/// Returns whether something runs by Node.
fn is_node(detected: &Detected) -> bool {
    let starts = |check: &Check| {
        ["npm ", "pnpm ", "yarn ", "bun ", "node_modules/"].iter().any(|start| check.run.starts_with(start))
    };
    detected.markers.iter().any(|marker| marker.ends_with("package.json")) || detected.checks.iter().any(starts)
}

fn step(page: &mut String, check: &Check, indent: &str, is_single: bool) {
    let timeout = match check.effect {
        Effect::Reads => "10m",
        Effect::Builds | Effect::Tests => "20m",
    };
    let (name, run) = (scalar(&check.name, is_single), block(&check.run, indent));
    let dir = check.dir.as_ref().map(|dir| format!("{indent}  dir: {}\n", scalar(dir, is_single))).unwrap_or_default();
    let from = check.from.as_ref().map(|from| format!(" # from {from}")).unwrap_or_default();
    let mut env = String::new();
    for (place, (name, value)) in check.env.iter().enumerate() {
        let head = if place == 0 { format!("{indent}  env:\n") } else { String::new() };
        let _to_text = writeln!(env, "{head}{indent}    {}: {}", scalar(name, is_single), scalar(value, is_single));
    }
    let _to_text =
        writeln!(page, "{indent}- name: {name}{from}\n{indent}  run: {run}\n{dir}{env}{indent}  timeout: {timeout}");
    if let Some(why) = &check.may_fail {
        let _to_text = writeln!(page, "{indent}  allow_failure: true # {why}");
    }
}

/// A command: plain where nothing in it means anything to YAML, else as a block, in which nothing
/// does. Formatters leave both as they are.
fn block(text: &str, indent: &str) -> String {
    if is_plain(text) { text.into() } else { format!("|-\n{indent}    {text}") }
}

/// A text as YAML reads it back: plain where nothing in it means anything to YAML, else in quotes,
/// of the kind that Prettier would choose.
fn scalar(text: &str, is_single: bool) -> String {
    let is_simple = !text.contains(['\\', '"']) && text.chars().all(|c| !c.is_control());
    if is_plain(text) {
        text.into()
    } else if is_simple && (!is_single || text.contains('\'')) {
        format!("\"{text}\"")
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || " ._/:=@,+-".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic()) || (text.starts_with('.') && text.contains('/'));
    let is_map = text.contains(": ") || text.ends_with([':', ' ']);
    let is_meant = MEANT.contains(&text.to_ascii_lowercase().as_str());
    begins && text.chars().all(plain) && !text.contains("  ") && !is_map && !is_meant
}

/// Words that some YAML takes for something else than text.
const MEANT: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
