//! `fledge memory forget`: removes one, several, the expired or all memories. Asks at a terminal
//! before it removes all.

use super::super::asking::confirm;
use super::super::failure::CliError;
use super::super::output::{no_output, print_json};
use super::super::paint::{self, Tone};
use super::{MEMORY_SCHEMA_VERSION, MemoryContext};
use crate::report::count;
use crate::store::ForgetSelector;
use clap::{ArgGroup, Args};
use serde_json::json;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["id", "expired", "all"])))]
#[command(
    after_help = "Journals still contain what runs read and wrote. To remove old journals, use `fledge runs prune`.\n\n\
    Examples:\n  fledge memory forget 1f0c2b9a\n  fledge memory forget --expired"
)]
pub(super) struct ForgetArguments {
    /// Start of a memory's id; repeatable
    id: Vec<String>,
    /// Forget expired memories
    ///
    /// Otherwise they are removed when the next memory is added.
    #[arg(long)]
    expired: bool,
    /// Forget all memories of this project; asks first
    #[arg(long)]
    all: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// Forgets the memories; returns the exit code.
pub(super) fn forget(place: &MemoryContext, arguments: &ForgetArguments) -> Result<u8, CliError> {
    let mut forgotten = 0;
    // Find all memories before the first is removed.
    let found = arguments.id.iter().map(|id| place.find(id)).collect::<Result<Vec<_>, _>>()?;
    for (store, memory) in found {
        forgotten += store.forget(ForgetSelector::One(&memory.id)).map_err(CliError::own)?;
    }
    if let (true, Some(store)) = (arguments.expired, place.store()?) {
        forgotten += store.forget(ForgetSelector::Expired(place.now_ms)).map_err(CliError::own)?;
    }
    if let (true, Some(store)) = (arguments.all, place.store()?) {
        let memories = store.memories().map_err(CliError::own)?.len();
        if memories > 0 && !arguments.yes && !confirm(&format!("{} would be forgotten", named(memories as u64)))? {
            return say(0, place);
        }
        forgotten += store.forget(ForgetSelector::All).map_err(CliError::own)?;
    }
    say(forgotten, place)
}

fn say(forgotten: u64, place: &MemoryContext) -> Result<u8, CliError> {
    if place.json {
        let all = json!({ "schema_version": MEMORY_SCHEMA_VERSION, "forgotten": forgotten });
        print_json(&all.to_string()).map_err(no_output)?;
    } else if forgotten == 0 {
        paint::line(&[(Tone::Plain, "no memories were forgotten")]);
    } else {
        paint::line(&[(Tone::Plain, format!("{} forgotten", named(forgotten)))]);
    }
    Ok(0)
}

fn named(memories: u64) -> String {
    if memories == 1 { "1 memory".into() } else { format!("{} memories", count(memories)) }
}
