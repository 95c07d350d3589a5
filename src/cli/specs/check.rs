//! `fledge specs check`: reports all false statements and gaps of specs.

use super::super::error_text;
use super::super::failure::CliError;
use super::super::output::{no_output, print_data};
use super::super::paint::{self, Tone};
use super::SPEC_SCHEMA_VERSION;
use super::survey::Survey;
use crate::spec::{Severity, SpecCheck, SpecFinding};
use clap::Args;
use serde_json::{Value, json};

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 1 if a spec is invalid.\n\nExamples:\n  fledge specs check\n  fledge specs check --strict"
)]
pub(in crate::cli) struct CheckSpecsArguments {
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    /// Print JSON to standard output
    #[arg(long)]
    json: bool,
}

/// Checks the specs; returns the exit code, which is 1 if one is wrong.
pub(super) fn check(survey: &Survey, arguments: &CheckSpecsArguments) -> Result<u8, CliError> {
    let mut check = SpecCheck::new(survey.specs.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    for path in survey.files() {
        let text = if SpecCheck::reads(&path) { survey.text(&path) } else { String::new() };
        check.see(&path, &text);
    }
    for path in check.unseen().iter().filter(|path| survey.has(path)) {
        check.see(path, "");
    }
    let findings = check.findings();
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let is_right = errors == 0 && (warnings == 0 || !arguments.strict);
    if arguments.json {
        let all = json!({
            "schema_version": SPEC_SCHEMA_VERSION,
            "spec_count": survey.specs.len(),
            "passed": is_right,
            "findings": findings.iter().map(as_json).collect::<Vec<_>>(),
        });
        print_data(&all.to_string()).map_err(no_output)?;
    } else {
        for finding in &findings {
            let (tone, word) = match finding.severity {
                Severity::Error => (Tone::Bad, "error: "),
                Severity::Warning => (Tone::Warn, "warning: "),
            };
            let text = survey.specs.iter().find(|(path, _)| *path == finding.file).map_or("", |(_, text)| text);
            error_text::say((tone, word), error_text::draw(&finding.file, &[finding.problem.clone().seen_in(text)]));
        }
        let (tone, word) = if is_right { (Tone::Good, "valid") } else { (Tone::Bad, "invalid") };
        let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let counts = [many(survey.specs.len(), "spec"), many(errors, "error"), many(warnings, "warning")];
        let [specs, errors, warnings] = &counts;
        paint::line(&[(tone, word), (Tone::Plain, &format!(": {specs}, {errors} and {warnings}"))]);
    }
    Ok(u8::from(!is_right))
}

fn as_json(finding: &SpecFinding) -> Value {
    let SpecFinding { severity, file, problem } = finding;
    json!({
        "severity": match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "file": file,
        "line": problem.place.map(|place| place.line),
        "column": problem.place.map(|place| place.column),
        "message": problem.message,
        "hint": problem.hint,
    })
}
