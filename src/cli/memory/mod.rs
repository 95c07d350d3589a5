//! `fledge memory`: the memories of a project, for people and as JSON. Reading creates no files.

mod forget;
mod list;

use super::configured;
use super::failure::{CliError, start_of};
use super::output::{no_output, print_data, print_json};
use super::paint::{self, Tone};
use super::project::ProjectArguments;
use super::tasks::read_source;
use crate::config::EnvironmentLayer;
use crate::driver::project_of;
use crate::limits::MAX_NOTE;
use crate::report::runs::rfc3339;
use crate::setup::{memory_terms, secrets};
use crate::store::{Store, StoredMemory};
use crate::tool::{LateSecrets, MemoryAccess};
use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The version of the output of `fledge memory`.
const MEMORY_SCHEMA_VERSION: u32 = 1;

#[derive(Debug, Args)]
#[command(after_help = "Name a memory by its id or a unique prefix of the id.\n\n\
    Examples:\n  fledge memory list\n  fledge memory add \"releases are cut from the branch `stable`\"\n  fledge memory forget 1f0c2b9a\n  \
    fledge memory export > memory.jsonl")]
pub(super) struct MemoryArguments {
    #[command(flatten)]
    project: ProjectArguments,
    /// Print JSON to standard output
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: MemoryVerb,
}

#[derive(Debug, Subcommand)]
enum MemoryVerb {
    /// List memories, newest first
    #[command(after_help = "Examples:\n  fledge memory list\n  fledge memory list --json")]
    List,
    /// Show a memory in full
    #[command(after_help = "Examples:\n  fledge memory show 1f0c2b9a")]
    Show {
        /// Start of the memory's id
        id: String,
    },
    /// Remember a text
    Add(AddMemoryArguments),
    /// Forget memories
    Forget(forget::ForgetArguments),
    /// Print all memories as JSON lines
    #[command(after_help = "Examples:\n  fledge memory export > memory.jsonl")]
    Export,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fledge memory add \"releases are cut from the branch `stable`\"\n  git log -1 --format=%B | fledge memory add - --ephemeral"
)]
struct AddMemoryArguments {
    /// Text to remember, or `-` for standard input
    text: String,
    /// Keep the text only for a while, like the notes of runs
    ///
    /// Default: 7 days, or `memory.ephemeral_ttl` of the configuration.
    #[arg(long)]
    ephemeral: bool,
}

/// Runs the verb; returns the exit code.
///
/// # Errors
/// When the memory does not exist, or the store cannot be read or written.
pub(super) fn run(arguments: MemoryArguments, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let workspace = arguments.project.root(environment)?;
    let state = environment.state_dir().map_err(CliError::input)?;
    let workspace = project_of(&state, &workspace);
    let shelf = MemoryContext { state, workspace, now_ms: now_ms(), json: arguments.json };
    match arguments.verb {
        MemoryVerb::List => list::list(&shelf)?,
        MemoryVerb::Show { id } => list::show(&shelf, &id)?,
        MemoryVerb::Add(arguments) => add(&shelf, &arguments, environment)?,
        MemoryVerb::Forget(arguments) => return forget::forget(&shelf, &arguments),
        MemoryVerb::Export => list::export(&shelf)?,
    }
    Ok(0)
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// The project with the memories, the time, and the form of the output.
#[derive(Debug)]
struct MemoryContext {
    state: PathBuf,
    workspace: PathBuf,
    /// Milliseconds since 1970.
    now_ms: i64,
    json: bool,
}

impl MemoryContext {
    /// Returns the store of the project, if it exists.
    fn store(&self) -> Result<Option<Store>, CliError> {
        Store::existing(&self.state, &self.workspace).map_err(CliError::own)
    }

    /// Returns the memories that are not expired, newest first, each with the short form of its id.
    fn all(&self) -> Result<Vec<(String, StoredMemory)>, CliError> {
        let Some(store) = self.store()? else { return Ok(Vec::new()) };
        let memories = store.memories().map_err(CliError::own)?.into_iter().filter(|m| !m.is_expired(self.now_ms));
        memories.map(|memory| Ok((store.short_memory(&memory.id).map_err(CliError::own)?, memory))).collect()
    }

    /// Finds the memory whose id begins with `id`.
    fn find(&self, id: &str) -> Result<(Store, StoredMemory), CliError> {
        let none = || {
            CliError::input(anyhow!("there is no memory `{id}`")).hint("run `fledge memory list` to see all memory ids")
        };
        let store = self.store()?.filter(|_| !id.is_empty()).ok_or_else(none)?;
        let none = || {
            let ids = store.memories().unwrap_or_default();
            none().near(id, ids.iter().map(|memory| start_of(&memory.id, id)))
        };
        let mut found = store.memories_called(&id.to_ascii_lowercase()).map_err(CliError::own)?;
        match (found.pop(), found.len()) {
            (Some(memory), 0) => Ok((store, memory)),
            (Some(_), others) => {
                let many = anyhow!("`{id}` is the start of {} memories", others + 1);
                Err(CliError::input(many).hint("give a longer prefix; `fledge memory list` shows unique prefixes"))
            }
            (None, _) => Err(none()),
        }
    }
}

fn add(place: &MemoryContext, arguments: &AddMemoryArguments, environment: &EnvironmentLayer) -> Result<(), CliError> {
    let text = if arguments.text == "-" { read_source("-")? } else { arguments.text.clone() };
    let set = configured::load_without_models(environment, &place.workspace).map_err(CliError::input)?;
    let shelf = MemoryAccess {
        state_dir: place.state.clone(),
        workspace: place.workspace.clone(),
        run: None,
        ephemeral_ttl_ms: memory_terms(&set).ephemeral_ttl_ms,
        recall_limit: 0,
        mask: secrets(environment, &set, &LateSecrets::default()),
        now_ms,
    };
    let bytes = shelf.fit(&text).len();
    if bytes == 0 {
        return Err(CliError::input(anyhow!("the text is empty: pass the text to remember in quotes")));
    }
    if bytes > MAX_NOTE {
        return Err(CliError::input(anyhow!("the text is too long: {bytes} bytes, at most {MAX_NOTE}")));
    }
    let short = shelf.keep(&text, arguments.ephemeral).map_err(CliError::own)?;
    if place.json {
        let (store, memory) = place.find(&short)?;
        let short = store.short_memory(&memory.id).map_err(CliError::own)?;
        return print_json(&with_version(data(&memory, &short)).to_string()).map_err(no_output);
    }
    paint::line(&[(Tone::Plain, "remembered")]);
    print_data(&short).map_err(no_output)
}

/// Returns a memory as JSON.
fn data(memory: &StoredMemory, short: &str) -> Value {
    json!({
        "id": memory.id,
        "short_id": short,
        "kind": memory.kind(),
        "text": memory.text,
        "run": memory.run,
        "created_at": rfc3339(memory.created_at_ms),
        "expires_at": memory.expires_at_ms.map(rfc3339),
    })
}

fn with_version(mut data: Value) -> Value {
    data["schema_version"] = MEMORY_SCHEMA_VERSION.into();
    data
}
