//! Shared parts of all tests: the program in a fresh folder, a scripted model, waiting, samples,
//! and requirements of the machine.

mod authority;
mod dice;
mod ended;
mod fledge;
mod folders;
mod git;
mod go;
#[cfg(debug_assertions)] // fail points exist only in debug builds
mod holding;
mod model;
mod processes;
mod pty;
mod requirements;
mod sampling;
mod schemas;
mod times;
mod waiting;
mod wire;

pub(crate) use authority::Secured;
pub(crate) use dice::Dice;
pub(crate) use ended::Ended;
pub(crate) use fledge::{Fledge, KEY, Running};
pub(crate) use folders::{place, place_on_disk, temp_dir, temp_dir_on_disk};
pub(crate) use git::git;
pub(crate) use go::go_cache;
#[cfg(debug_assertions)]
pub(crate) use holding::Hold;
pub(crate) use model::{Asked, Model};
pub(crate) use schemas::{must_be_batch_report, must_be_eval_report, must_fit_closed};

pub(crate) use processes::{WAYS, children_with, fleeing, must_be_gone, running_with, sleepers, unique};
pub(crate) use pty::open_terminal;
pub(crate) use requirements::{BEHIND_LANDLOCK, Need, WITHOUT_LAYERS};
pub(crate) use sampling::{Part, amount, dice, draw, is_drawn, is_table_drawn, is_whole, seed, wanted_rows};
pub(crate) use times::record_time;
pub(crate) use waiting::{PATIENCE, SOON, becomes, becomes_by, read_some, until, until_async};
pub(crate) use wire::{Dialect, Turn, call, garbled, hang, nothing, refuse, say, status};

use serde_json::Value;
use std::io::Write as _;

/// Returns from a long test that this test run has not drawn.
macro_rules! long_test {
    () => {
        if !$crate::support::is_drawn(concat!(module_path!(), ":", line!())) {
            return;
        }
    };
}

/// Returns from the test of a long table if this test run has not drawn the table. The test itself
/// draws rows.
macro_rules! long_table {
    () => {
        if !$crate::support::is_table_drawn(concat!(module_path!(), ":", line!())) {
            return;
        }
    };
}

/// Prints a line that the test harness does not capture.
pub(crate) fn note(line: &str) {
    let _a_closed_stream_loses_it = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Returns a lane named `verify` whose one step passes if this file exists.
pub(crate) fn needs(file: &str) -> String {
    format!("steps:\n  - {{ name: there, run: test -f {file} }}\n")
}

/// Returns a turn that writes a file.
pub(crate) fn write(path: &str, content: &str) -> Turn {
    call("files-write", serde_json::json!({ "path": path, "content": content }))
}

/// Returns a turn that runs a command.
pub(crate) fn shell(command: &str) -> Turn {
    call("shell-exec", serde_json::json!({ "command": command }))
}

/// Returns the texts of some JSON values, for comparing lists.
pub(crate) fn words<'a>(values: impl IntoIterator<Item = &'a Value>) -> Vec<&'a str> {
    values.into_iter().map(|value| value.as_str().unwrap_or("not a text")).collect()
}
