//! `fledge lanes validate`: everything that is wrong or strange in a project's lanes, at once, and nothing is run.

use super::super::drawing;
use super::super::failure::Failure;
use super::super::paint::{self, Tone};
use super::super::{no_output, print_json};
use super::{Unasked, failed};
use crate::gate::{self, Checked, GateFault};
use crate::lane::Remark;
use crate::report::lane_data::LANE_SCHEMA_VERSION;
use crate::verdict::Reason;
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Arguments of `fledge lanes validate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge lanes validate\n  fledge lanes validate ../other --strict --json")]
pub(in crate::cli) struct ValidateArguments {
    /// The project
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Take warnings for errors
    #[arg(long)]
    strict: bool,
    /// As JSON, to standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    _unasked: Unasked,
}

/// Checks the lanes; gives the exit code: 2 when one is wrong. `search` is the search path that steps will have.
pub(super) fn validate(arguments: &ValidateArguments, search: &str) -> Result<u8, Failure> {
    let what = || format!("there is no folder `{}`", arguments.path.display());
    let root = arguments.path.canonicalize().with_context(what).map_err(Failure::input)?;
    let Checked { mut lanes, problems, warnings } = gate::check(&root, search);
    let (mut errors, mut strange) = (said(&problems), said(&warnings));
    if lanes.is_empty() && problems.is_empty() {
        match gate::look_if_no_lanes(&root, search).map_err(GateFault::from).map_err(failed)? {
            Some(detected) if !detected.is_empty() => {
                lanes.push(detected.lane().map_err(GateFault::from).map_err(failed)?);
                strange.push("there are no lanes; `verify` is detected: keep it with `fledge lanes init`".into());
            }
            Some(_) | None => errors.push("there are no lanes: write lanes/verify.yaml; one step is enough".into()),
        }
    }
    let is_right = errors.is_empty() && (strange.is_empty() || !arguments.strict);
    if arguments.json {
        print_json(&as_json(&root, lanes.len(), [&errors, &strange], [&problems, &warnings])).map_err(no_output)?;
    } else {
        say((Tone::Bad, "error: "), &problems, &errors);
        say((Tone::Warn, "warning: "), &warnings, &strange);
        let (tone, word) = if is_right { (Tone::Good, "right") } else { (Tone::Bad, "not right") };
        let counts = format!(
            "{}, {} and {}",
            many(lanes.len(), "lane"),
            many(errors.len(), "error"),
            many(strange.len(), "warning")
        );
        paint::line(&[(tone, word), (Tone::Plain, &format!(": {counts}"))]);
    }
    Ok(if is_right { 0 } else { Reason::BadInput.row().exit_code })
}

/// Remarks drawn, and what is said beside them: `all` has the remarks first.
fn say((tone, word): (Tone, &str), remarks: &[Remark], all: &[String]) {
    let plain = |said: &String| vec![vec![(Tone::Plain, said.clone())]];
    let drawn = remarks.iter().map(|remark| drawing::draw(&remark.path, std::slice::from_ref(&remark.problem)));
    let beside = all.iter().skip(remarks.len()).map(plain);
    drawn.chain(beside).for_each(|lines| drawing::say((tone, word), lines));
}

fn said(remarks: &[Remark]) -> Vec<String> {
    remarks.iter().map(ToString::to_string).collect()
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `errors` and `warnings` are for people; what is in `findings` has its parts apart.
fn as_json(root: &Path, lanes: usize, [errors, warnings]: [&[String]; 2], [wrong, strange]: [&[Remark]; 2]) -> String {
    let finding = |severity: &'static str| {
        move |remark: &Remark| -> Value {
            json!({
                "severity": severity,
                "file": remark.path,
                "lane": remark.lane,
                "line": remark.problem.place.map(|place| place.line),
                "column": remark.problem.place.map(|place| place.column),
                "message": remark.problem.message,
                "hint": remark.problem.hint,
            })
        }
    };
    let findings = wrong.iter().map(finding("error")).chain(strange.iter().map(finding("warning")));
    json!({
        "schema_version": LANE_SCHEMA_VERSION,
        "path": root.display().to_string(),
        "lane_count": lanes,
        "errors": errors,
        "warnings": warnings,
        "findings": findings.collect::<Vec<_>>(),
    })
    .to_string()
}
