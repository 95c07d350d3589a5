//! `fledge specs`: the promises of the project's modules, and checks of them.

mod check;
mod survey;

use super::failure::CliError;
use super::output::{no_output, print_data};
use super::paint::{self, Tone};
use super::project::ProjectArguments;
use crate::config::EnvironmentLayer;
use crate::spec::{self, Spec};
use crate::task::SpecChoice;
use crate::verdict::Reason;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use survey::Survey;

/// The version of the JSON output.
const SPEC_SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Subcommand)]
pub(super) enum SpecsVerb {
    /// List the modules that have a spec
    List(ListSpecsArguments),
    /// Show the spec of a module
    Show(ShowSpecArguments),
    /// Check specs for errors and gaps
    Check(check::CheckSpecsArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge specs list\n  fledge specs list --json | jq '.specs[].module'")]
pub(super) struct ListSpecsArguments {
    /// Print JSON to standard output
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge specs show dates")]
pub(super) struct ShowSpecArguments {
    /// Name of the module
    module: String,
    /// Print JSON to standard output, with the whole text
    #[arg(long)]
    json: bool,
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When a file cannot be read, or a module has no spec.
pub(super) fn run(verb: SpecsVerb, project: &ProjectArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let root = project.root(environment)?;
    let survey = Survey::read(&root)?;
    match verb {
        SpecsVerb::List(arguments) => list(&survey, &arguments),
        SpecsVerb::Show(arguments) => show(&survey, &arguments),
        SpecsVerb::Check(arguments) => check::check(&survey, &arguments),
    }
}

fn list(survey: &Survey, arguments: &ListSpecsArguments) -> Result<u8, CliError> {
    let (specs, code) = read(survey);
    if arguments.json {
        let specs: Vec<Value> = specs.iter().map(listed).collect();
        let all = json!({ "schema_version": SPEC_SCHEMA_VERSION, "specs": specs });
        print_data(&all.to_string()).map_err(no_output)?;
        return Ok(code);
    }
    if survey.specs.is_empty() {
        paint::line(&[(Tone::Plain, "no specs: the folder specs/ is empty")]);
    }
    for spec in &specs {
        let line = format!("{}  {}", spec.module, spec.purpose);
        print_data(paint::one_line(&line).trim_end()).map_err(no_output)?;
    }
    Ok(code)
}

fn listed(spec: &Spec) -> Value {
    json!({
        "module": spec.module,
        "version": spec.version,
        "status": spec.status,
        "path": spec.path,
        "files": spec.files,
        "depends_on": spec.depends_on,
        "purpose": spec.purpose,
    })
}

/// Prints the file unchanged. An invalid spec is found by the name of its folder.
fn show(survey: &Survey, arguments: &ShowSpecArguments) -> Result<u8, CliError> {
    let here = format!("specs/{0}/{0}.spec.md", arguments.module);
    let (path, text) = match survey.specs.iter().find(|(path, _)| *path == here) {
        Some((path, text)) => (path.as_str(), text.as_str()),
        None => {
            let (specs, _) = read(survey);
            let choice = SpecChoice::Modules(vec![arguments.module.clone()]);
            let wanted = spec::select(&specs, &choice, &[]).map_err(CliError::input)?.remove(0).path.clone();
            let found = survey.specs.iter().find(|(path, _)| *path == wanted);
            found.map_or(("", ""), |(path, text)| (path, text))
        }
    };
    if arguments.json {
        let mut all = listed(&spec::parse(text, path).map_err(CliError::input)?);
        all["schema_version"] = SPEC_SCHEMA_VERSION.into();
        all["text"] = text.into();
        print_data(&all.to_string()).map_err(no_output)?;
        return Ok(0);
    }
    print_data(paint::harmless(text).trim_end()).map_err(no_output)?;
    Ok(0)
}

/// Returns the valid specs and the exit code. Prints the faults of the others.
fn read(survey: &Survey) -> (Vec<Spec>, u8) {
    let (mut specs, mut code) = (Vec::new(), 0);
    for (path, text) in &survey.specs {
        match spec::parse(text, path) {
            Ok(spec) => specs.push(spec),
            Err(fault) => {
                paint::line(&[(Tone::Bad, "error: "), (Tone::Plain, &fault.to_string())]);
                code = Reason::BadInput.row().exit_code;
            }
        }
    }
    (specs, code)
}
