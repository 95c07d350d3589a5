//! `fledge schema`: JSON Schemas of input and output. Schemas of input files are written beside
//! their readers; those of output are generated from types.

use super::failure::CliError;
use super::output::{no_output, print_json};
use crate::batch::evaluation::Evaluation;
use crate::batch::{BatchRecord, BatchSummary, plan};
use crate::driver::EventRecord;
use crate::report::Report;
use crate::report::job::unbegun_report;
use crate::verdict::Reason;
use crate::yaml::schema::{DIALECT, document};
use crate::{config, lane, task};
use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fledge schema lane > lane.schema.json\n  fledge schema report | jq .properties\n\n\
    In an editor with the YAML language server, the first line of a lane or a configuration may say where its schema is:\n  \
    # yaml-language-server: $schema=../lane.schema.json"
)]
pub(super) struct SchemaArguments {
    /// File or output to print the schema of
    name: SchemaName,
}

/// The schemas. A new one needs a name here and an arm in [`SchemaName::schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SchemaName {
    /// Front matter of a task
    Task,
    /// `lanes/<name>.yaml`
    Lane,
    /// `fledge.yaml`, and your own configuration file
    Config,
    /// Report of a run (`--report`)
    Report,
    /// Line of `fledge run --json`
    Event,
    /// `batch.yaml`
    Batch,
    /// Report of several tasks (`--report`)
    BatchReport,
    /// Line of `--json` for several tasks that is not an event of one run
    BatchEvent,
    /// Report of `fledge eval` (`--report`)
    EvalReport,
}

impl SchemaName {
    fn schema(self) -> Value {
        match self {
            Self::Task => task::schema(),
            Self::Lane => lane::schema(),
            Self::Config => config::schema(),
            Self::Report => of_report(),
            Self::Event => of_type::<EventRecord>(
                "event",
                "A fledge event",
                "Something that a run tells: a line of `fledge run --json`.",
            ),
            Self::Batch => plan::schema(),
            Self::BatchReport => of_type::<BatchSummary>(
                "batch-report",
                "A fledge batch report",
                "What many tasks came to: what `--report` writes for them.",
            ),
            Self::BatchEvent => of_type::<BatchRecord<'_>>(
                "batch-event",
                "A fledge batch event",
                "Something that a batch tells: a line of `--json` with a `batch` in it. Lines between them are events of its runs.",
            ),
            Self::EvalReport => of_type::<Evaluation>(
                "eval-report",
                "A fledge evaluation",
                "What models came to on tasks: what `--report` writes for `fledge eval`.",
            ),
        }
    }
}

/// Prints a schema; returns the exit code.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn run(arguments: &SchemaArguments) -> Result<u8, CliError> {
    print_json(&format!("{:#}", arguments.name.schema())).map_err(no_output).map(|()| 0)
}

/// Returns the schema of a serialized type. The type's documentation describes each part; later
/// versions may add parts.
fn of_type<T: JsonSchema>(name: &str, title: &str, what: &str) -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.meta_schema = Some(DIALECT.into());
    let mut root = settings.into_generator().into_root_schema_for::<T>().to_value();
    for key in ["title", "description"] {
        root.as_object_mut().map(|root| root.remove(key));
    }
    document(name, title, what, root)
}

/// Returns the schema of a run's report. A report of a run that could not begin has fewer keys, and
/// a `run` of null.
fn of_report() -> Value {
    let mut schema = of_type::<Report>("report", "A fledge report", "What a run came to: what `--report` writes.");
    let unbegun = unbegun_report(0, Reason::BadInput, "");
    let unbegun: Vec<&String> = unbegun.as_object().into_iter().flatten().map(|(key, _)| key).collect();
    let required = schema["required"].take();
    let run = schema["properties"]["run"].take();
    schema["properties"]["run"] = json!({ "description": run["description"], "anyOf": [run, { "type": "null" }] });
    schema["required"] = json!(unbegun);
    schema["if"] = json!({ "properties": { "run": { "type": "string" } } });
    schema["then"] = json!({ "required": required });
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_a_report_takes_that_of_a_run_that_could_not_begin() {
        let schema = jsonschema::draft202012::new(&of_report()).unwrap();
        let mut report = unbegun_report(2, Reason::BadInput, "no task");
        assert!(schema.is_valid(&report));
        report["run"] = json!("0198f2c4-0000-7000-8000-000000000000");
        assert!(!schema.is_valid(&report), "a run that began has more keys");
    }

    #[test]
    fn every_schema_is_one_by_the_rules_of_its_dialect() {
        for name in SchemaName::value_variants() {
            let schema = name.schema();
            assert_eq!(schema["$schema"], DIALECT, "{name:?}");
            assert!(jsonschema::draft202012::meta::is_valid(&schema), "{name:?}");
            assert!(schema["title"].is_string() && schema["$id"].is_string(), "{name:?}");
        }
    }
}
