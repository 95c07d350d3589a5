//! `fledge lanes validate`: reports all errors and warnings in the lanes of projects, or in single
//! lane files. Runs nothing.

use super::super::error_text;
use super::super::failure::CliError;
use super::super::output::{no_output, print_json};
use super::super::paint::{self, Tone};
use super::{Unasked, failed};
use crate::lane::LaneRemark;
use crate::lane_files::{self, CheckedLanes, LaneFilesError};
use crate::report::lane_data::LANE_SCHEMA_VERSION;
use crate::verdict::Reason;
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge lanes validate\n  fledge lanes validate ../other --strict --json")]
pub(in crate::cli) struct ValidateLanesArguments {
    /// Projects or lane files to check [default: the current project]
    path: Vec<PathBuf>,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    /// Print JSON to standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    _unasked: Unasked,
}

/// The findings.
#[derive(Default)]
struct ValidationResult {
    lanes: usize,
    problems: Vec<LaneRemark>,
    warnings: Vec<LaneRemark>,
    /// Errors of projects as a whole, and warnings about them.
    errors: Vec<String>,
    strange: Vec<String>,
}

/// Checks the lanes; returns the exit code, which is 2 if one is invalid. `search` is the search
/// path of the steps.
pub(super) fn validate(root: &Path, arguments: &ValidateLanesArguments, search: &str) -> Result<u8, CliError> {
    let mut found = ValidationResult::default();
    let all = if arguments.path.is_empty() { &vec![root.to_owned()] } else { &arguments.path };
    for path in all {
        if path.is_dir() {
            found.project(path, all.len() > 1, search)?;
        } else {
            let is_below = Path::new(".").canonicalize().is_ok_and(|current| current == root);
            let file = if is_below { path.clone() } else { std::path::absolute(path).unwrap_or_else(|_| path.clone()) };
            let CheckedLanes { lanes, problems, warnings } =
                lane_files::check_file(root, &file.to_string_lossy(), search);
            found.add(lanes.len(), problems, warnings);
        }
    }
    let ValidationResult { lanes, problems, warnings, errors, strange } = found;
    let errors = [remark_lines(&problems), errors].concat();
    let strange = [remark_lines(&warnings), strange].concat();
    let is_right = errors.is_empty() && (strange.is_empty() || !arguments.strict);
    if arguments.json {
        let paths: Vec<String> = all.iter().map(|path| whole(path).display().to_string()).collect();
        print_json(&as_json(&paths, lanes, [&errors, &strange], [&problems, &warnings])).map_err(no_output)?;
    } else {
        say((Tone::Bad, "error: "), &problems, &errors);
        say((Tone::Warn, "warning: "), &warnings, &strange);
        let (tone, word) = if is_right { (Tone::Good, "valid") } else { (Tone::Bad, "invalid") };
        let counts =
            format!("{}, {} and {}", many(lanes, "lane"), many(errors.len(), "error"), many(strange.len(), "warning"));
        paint::line(&[(tone, word), (Tone::Plain, &format!(": {counts}"))]);
    }
    Ok(if is_right { 0 } else { Reason::BadInput.row().exit_code })
}

impl ValidationResult {
    /// Adds the findings of a file. Drops duplicates, because two named paths may be one file or
    /// share a fault.
    fn add(&mut self, lanes: usize, problems: Vec<LaneRemark>, warnings: Vec<LaneRemark>) {
        self.lanes += lanes;
        for (all, new) in [(&mut self.problems, problems), (&mut self.warnings, warnings)] {
            for remark in new {
                if !all.contains(&remark) {
                    all.push(remark);
                }
            }
        }
    }

    /// Adds a project. If it is one of several, its files are named with its folder.
    fn project(&mut self, path: &Path, is_one_of_many: bool, search: &str) -> Result<(), CliError> {
        let what = || format!("there is no folder `{}`", path.display());
        let root = path.canonicalize().with_context(what).map_err(CliError::input)?;
        let CheckedLanes { lanes, mut problems, mut warnings } = lane_files::check(&root, search);
        let before =
            if is_one_of_many && path != Path::new(".") { format!("{}: ", path.display()) } else { String::new() };
        if lanes.is_empty() && problems.is_empty() {
            match lane_files::detect_if_no_lanes(&root, search).map_err(LaneFilesError::from).map_err(failed)? {
                Some(detected) if !detected.is_empty() => {
                    detected.lane().map_err(LaneFilesError::from).map_err(failed)?;
                    self.lanes += 1;
                    let says = "no lanes; fledge detected `verify`: save it with `fledge init`";
                    self.strange.push(format!("{before}{says}"));
                }
                Some(_) | None => {
                    let says = "no lanes: write lanes/verify.yaml; one step is enough";
                    self.errors.push(format!("{before}{says}"));
                }
            }
        }
        if !before.is_empty() {
            for remark in problems.iter_mut().chain(&mut warnings) {
                remark.path = path.join(&remark.path).to_string_lossy().into_owned();
            }
        }
        self.add(lanes.len(), problems, warnings);
        Ok(())
    }
}

fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Prints remarks as drawings, then the other messages. `all` starts with the remarks.
fn say((tone, word): (Tone, &str), remarks: &[LaneRemark], all: &[String]) {
    let plain = |said: &String| vec![vec![(Tone::Plain, said.clone())]];
    let drawn = remarks.iter().map(|remark| error_text::draw(&remark.path, std::slice::from_ref(&remark.problem)));
    let beside = all.iter().skip(remarks.len()).map(plain);
    drawn.chain(beside).for_each(|lines| error_text::say((tone, word), lines));
}

fn remark_lines(remarks: &[LaneRemark]) -> Vec<String> {
    remarks.iter().map(ToString::to_string).collect()
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Formats the result as JSON. `errors` and `warnings` are texts for people; `findings` have their
/// parts in separate fields.
fn as_json(
    paths: &[String],
    lanes: usize,
    [errors, warnings]: [&[String]; 2],
    [wrong, strange]: [&[LaneRemark]; 2],
) -> String {
    let finding = |severity: &'static str| {
        move |remark: &LaneRemark| -> Value {
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
        "path": paths.first(),
        "paths": paths,
        "lane_count": lanes,
        "errors": errors,
        "warnings": warnings,
        "findings": findings.collect::<Vec<_>>(),
    })
    .to_string()
}
