//! Writes the YAML file of a detected lane, for people to edit. Comments name the files that the
//! checks come from and the checks that fledge left out. The steps are in YAML block style.

use super::{CheckEffect, DetectedCheck, DetectedLane, YamlStyle};
use crate::yaml::listed;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The environment for Node's test runners, which watch for changes unless `CI` is set.
const CI: &str = "env:\n{indent}CI: '1'{mark} test runners do not watch for changes\n";
/// The length from which Prettier folds a line.
const LONGEST: usize = 80;

/// Writes the whole file. Without checks, the file has no steps and is not a lane.
pub(super) fn write(detected: &DetectedLane) -> String {
    let style = detected.style;
    let level = " ".repeat(style.indent);
    let markers = listed(detected.markers.iter().map(String::as_str));
    let mark = mark(style);
    let mut file = if style.is_for_yamllint { String::from("---\n") } else { String::new() };
    let first = format!(
        "What every change must pass, as fledge found it out from {markers}. Edit it: it is yours, and never written again."
    );
    std::iter::once(&first).chain(&detected.remarks).for_each(|remark| comment(&mut file, "", remark));
    let _infallible = write!(
        file,
        "description: {}\ntimeout: 30m\n{}{}steps:\n",
        block(&format!("Checks detected from {markers}"), 0, "description".len(), style),
        included(detected, &level),
        if is_node(detected) {
            CI.replace('\'', if style.has_single_quotes { "'" } else { "\"" })
                .replace("{indent}", &level)
                .replace("{mark}", mark)
        } else {
            String::new()
        }
    );
    let (together, alone) =
        detected.checks.split_at(detected.checks.partition_point(|c| c.effect == CheckEffect::Reads));
    let indent = if together.len() > 1 { 2 * style.indent + 2 } else { style.indent };
    if together.len() > 1 {
        let _infallible = writeln!(file, "{level}- parallel:{mark} these only read");
    }
    together.iter().for_each(|check| write_step(&mut file, check, indent, style));
    alone.iter().for_each(|check| write_step(&mut file, check, style.indent, style));
    file
}

/// Writes the ignored files for the room, with the checks that read them.
fn included(detected: &DetectedLane, level: &str) -> String {
    let mut text = String::new();
    if !detected.included.is_empty() {
        let names: BTreeSet<String> = detected.included.values().flatten().map(|name| format!("`{name}`")).collect();
        let names = listed(names.iter().map(String::as_str));
        comment(&mut text, "", &format!("git ignores these files, and {names} passes only with them"));
        text.push_str("include_ignored:\n");
        let item = |path| format!("{level}- {}\n", scalar(path, detected.style.has_single_quotes));
        text.extend(detected.included.keys().map(|path| item(path)));
    }
    text
}

/// Adds a comment, with lines short enough for linters.
fn comment(file: &mut String, indent: &str, text: &str) {
    file.push_str(&folded(&format!("{indent}#"), text));
}

/// Folds a text into lines with this prefix.
fn folded(start: &str, text: &str) -> String {
    let (mut file, mut line) = (String::new(), start.to_owned());
    for word in text.split(|c: char| c.is_control() || c == ' ').filter(|word| !word.is_empty()) {
        if line != start && line.chars().count() + 1 + word.chars().count() > LONGEST {
            file.push_str(&(std::mem::replace(&mut line, start.to_owned()) + "\n"));
        }
        line.push(' ');
        line.push_str(word);
    }
    file + &line + "\n"
}

/// Returns the sign before a trailing comment.
fn mark(style: YamlStyle) -> &'static str {
    if style.is_for_yamllint { "  #" } else { " #" }
}

/// Returns true if the lane uses Node.
fn is_node(detected: &DetectedLane) -> bool {
    let starts = |check: &DetectedCheck| {
        ["npm ", "pnpm ", "yarn ", "bun ", "node_modules/"].iter().any(|start| check.run.starts_with(start))
    };
    detected.markers.iter().any(|marker| marker.ends_with("package.json")) || detected.checks.iter().any(starts)
}

/// Appends the step of a check to the lane file. `column` is the column of the step's `-`.
fn write_step(file: &mut String, check: &DetectedCheck, column: usize, style: YamlStyle) {
    let (indent, is_single) = (" ".repeat(column), style.has_single_quotes);
    let env_indent = " ".repeat(column + 2 + style.indent);
    let timeout = match check.effect {
        CheckEffect::Reads => "10m",
        CheckEffect::Builds | CheckEffect::Tests => "20m",
    };
    let (name, run) = (scalar(&check.name, is_single), block(&check.run, column + 2, "run".len(), style));
    let dir = check.dir.as_ref().map(|dir| format!("{indent}  dir: {}\n", scalar(dir, is_single))).unwrap_or_default();
    let from = check.from.as_ref().map(|from| format!("{} from {from}", mark(style))).unwrap_or_default();
    let mut env = String::new();
    for (place, (name, value)) in check.env.iter().enumerate() {
        let head = if place == 0 { format!("{indent}  env:\n") } else { String::new() };
        let _infallible = writeln!(env, "{head}{env_indent}{}: {}", scalar(name, is_single), scalar(value, is_single));
    }
    let _to_text =
        writeln!(file, "{indent}- name: {name}{from}\n{indent}  run: {run}\n{dir}{env}{indent}  timeout: {timeout}");
    if let Some(why) = &check.may_fail {
        let line = format!("{indent}  allow_failure: true{} {why}", mark(style));
        if line.chars().count() <= LONGEST {
            file.push_str(&(line + "\n"));
        } else {
            comment(file, &format!("{indent}  "), why);
            file.push_str(&format!("{indent}  allow_failure: true\n"));
        }
    }
}

/// Writes a text as the value of a key of this length in this column. A text without special
/// meaning in YAML is plain, any other text is a block. Formatters do not change either form,
/// except that they may fold long plain text.
fn block(text: &str, column: usize, key: usize, style: YamlStyle) -> String {
    let is_folded = (style.folds || style.is_for_yamllint) && column + key + ": ".len() + text.len() > LONGEST;
    if is_plain(text) && !is_folded {
        return text.into();
    }
    if style.is_for_yamllint && text.trim() == text && !text.contains("  ") && !text.contains(char::is_control) {
        return format!(">-\n{}", folded(&" ".repeat(column + style.indent - 1), text).trim_end());
    }
    format!("|-\n{}{text}", " ".repeat(column + style.indent))
}

/// Writes a text as a YAML scalar: plain if it has no special meaning in YAML, otherwise with the
/// quotes that Prettier would choose.
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

/// Words that some YAML versions do not read as text.
const MEANT: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
