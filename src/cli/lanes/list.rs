//! `fledge lanes list`: the lanes that there are, for people and as data.

use super::super::failure::Failure;
use super::super::paint::{self, Tone};
use super::super::{no_output, print_data};
use super::{failed, plan, say};
use crate::gate::{self, GateFault, Loaded};
use crate::lane::Lane;
use crate::report::lane_data;
use clap::Args;
use std::path::Path;

/// Arguments of `fledge lanes list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// As JSON, to standard output
    #[arg(long)]
    json: bool,
}

/// Lists the lanes; gives the exit code.
pub(super) fn list(root: &Path, arguments: &ListArguments, path: &str) -> Result<u8, Failure> {
    let detected = gate::look_if_no_lanes(root, path).map_err(GateFault::from).map_err(failed)?;
    let (mut lanes, mut code): (Vec<Lane>, u8) = (Vec::new(), 0);
    match &detected {
        Some(detected) if detected.is_empty() => {}
        Some(detected) => lanes.push(detected.lane().map_err(GateFault::from).map_err(failed)?),
        None => {
            for name in gate::names(root).map_err(failed)? {
                match gate::load(root, &name, path) {
                    Ok(loaded) => lanes.push(loaded.lane),
                    Err(fault) => code = code.max(failed(fault).show()), // what is right is listed all the same
                }
            }
        }
    }
    if arguments.json {
        let lanes: Vec<_> = lanes.iter().map(|lane| lane_data::listed(lane, detected.is_some())).collect();
        print_data(
            &serde_json::json!({ "schema_version": lane_data::LANE_SCHEMA_VERSION, "lanes": lanes }).to_string(),
        )
        .map_err(no_output)?;
        return Ok(code);
    }
    if lanes.is_empty() && code == 0 {
        paint::line(&[(Tone::Plain, "no lanes: there is nothing in lanes/")]);
    }
    for lane in &lanes {
        let mark = if detected.is_some() { " (detected)" } else { "" };
        let line = format!("{}{mark}  {}", lane.name, paint::harmless(&lane.description));
        print_data(line.trim_end()).map_err(no_output)?;
        for step in &lane.steps {
            print_data(&format!("  {}: {}", step.name, paint::harmless(&step.run))).map_err(no_output)?;
        }
    }
    say(detected.iter().flat_map(|detected| &detected.remarks));
    Ok(code)
}

/// Arguments of `fledge lanes show`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ShowArguments {
    /// The lane
    name: String,
    /// As JSON, to standard output
    #[arg(long)]
    json: bool,
}

/// Shows one lane; gives the exit code.
pub(super) fn show(root: &Path, arguments: &ShowArguments, path: &str) -> Result<u8, Failure> {
    let Loaded { lane, notes } = gate::load(root, &arguments.name, path).map_err(failed)?;
    say(&notes);
    let text = if arguments.json { lane_data::listed(&lane, false).to_string() } else { plan::text(&lane, &[]) };
    print_data(text.trim_end()).map_err(no_output)?;
    Ok(0)
}
