//! `fledge lanes list` and `show`: the project's lanes, for people and as JSON.

use super::super::failure::CliError;
use super::super::output::{no_output, print_data, print_json};
use super::super::paint::{self, Tone};
use super::{Unasked, failed, plan, say};
use crate::lane::Lane;
use crate::lane_files::{self, LaneFilesError, ListedLanes, LoadedLane};
use crate::report::lane_data;
use clap::Args;
use std::path::Path;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge lanes list\n  fledge lanes list --json | jq '.lanes[].name'")]
pub(in crate::cli) struct ListLanesArguments {
    /// Print JSON to standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    _unasked: Unasked,
}

/// Lists the lanes; returns the exit code.
pub(super) fn list(root: &Path, arguments: &ListLanesArguments, path: &str) -> Result<u8, CliError> {
    let ListedLanes { lanes, sources, is_detected, fault, remarks } = lane_files::list(root, path).map_err(failed)?;
    // Lists valid lanes even if others are broken.
    let code = if fault.files.is_empty() { 0 } else { failed(LaneFilesError::from(fault)).show() };
    if arguments.json {
        let source = |lane: &Lane| sources.get(&lane.name).map(String::as_str);
        let lanes: Vec<_> = lanes.iter().map(|lane| lane_data::listed(lane, is_detected, source(lane))).collect();
        print_json(
            &serde_json::json!({ "schema_version": lane_data::LANE_SCHEMA_VERSION, "lanes": lanes }).to_string(),
        )
        .map_err(no_output)?;
        return Ok(code);
    }
    if lanes.is_empty() && code == 0 {
        paint::line(&[(Tone::Plain, "no lanes: write lanes/verify.yaml; one step is enough")]);
    }
    for lane in &lanes {
        let mark = match sources.get(&lane.name) {
            Some(source) => format!(" (imported from {})", paint::one_line(source)),
            None if is_detected => " (detected)".to_owned(),
            None => String::new(),
        };
        let line = format!("{}{mark}  {}", paint::one_line(&lane.name), paint::one_line(&lane.description));
        print_data(line.trim_end()).map_err(no_output)?;
        for step in &lane.steps {
            print_data(&format!("  {}: {}", paint::one_line(&step.name), first_line(&step.run))).map_err(no_output)?;
        }
    }
    say(&remarks);
    Ok(code)
}

/// Returns the first line of a command, marked if there are more.
fn first_line(run: &str) -> String {
    let mut lines = run.trim().lines();
    let first = paint::one_line(lines.next().unwrap_or_default());
    if lines.next().is_some() { first + " …" } else { first }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge lanes show verify")]
pub(in crate::cli) struct ShowLaneArguments {
    /// Name of the lane
    name: String,
    /// Print JSON to standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    _unasked: Unasked,
}

/// Shows a lane; returns the exit code.
pub(super) fn show(root: &Path, arguments: &ShowLaneArguments, path: &str) -> Result<u8, CliError> {
    let LoadedLane { lane, notes, source } = lane_files::load(root, &arguments.name, path).map_err(failed)?;
    say(&notes);
    let printed = if arguments.json {
        let is_detected =
            lane_files::detect_if_no_lanes(root, path).map_err(LaneFilesError::from).map_err(failed)?.is_some();
        let mut data = lane_data::listed(&lane, is_detected, source.as_deref());
        data["schema_version"] = lane_data::LANE_SCHEMA_VERSION.into();
        print_json(&data.to_string())
    } else {
        print_data(plan::text(&lane, &[]).trim_end())
    };
    printed.map_err(no_output)?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_command_of_several_lines_the_first_is_listed() {
        assert_eq!(["a\n", "\na \u{1b}[2Jb\nc\n"].map(first_line), ["a", "a [2Jb …"]);
    }
}
