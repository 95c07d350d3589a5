//! The generated table of all faults in all wire formats, and their outcomes.

use crate::faults::voice::WIRES;
use std::collections::BTreeMap;
use std::path::Path;

const HEAD: &str = "# Faults of models

Printed by `tests/faults`; `FLEDGE_BLESS=1 cargo test --test it faults::` writes it anew. Each cell is a run against a real socket: how it
ends, the requests that were made (r) and the tools that were run (t). Every one of them was run once more and cancelled in its middle,
which ended it within a second and closed its connection. A dash: the wire format has no such thing.

";

/// The outcome of every case: by row and case, in the order of the wires.
pub(crate) type Cells = BTreeMap<(usize, usize, String), [Option<String>; 4]>;

/// Compares the table with the generated one, or writes it.
pub(crate) fn hold(names: &[(&str, &str)], cells: &Cells) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/generated/faults.md");
    let mut whole =
        format!("{HEAD}| row | fault | {} |\n|---|---|---|---|---|---|\n", WIRES.map(|wire| wire.title()).join(" | "));
    for ((row, _, case), ends) in cells {
        let (id, fault) = names[*row];
        let what = if case.is_empty() { fault.to_owned() } else { format!("{fault}: {case}") };
        let ends = ends.each_ref().map(|end| end.clone().unwrap_or_else(|| "–".into()));
        whole.push_str(&format!("| {id} | {what} | {} |\n", ends.join(" | ")));
    }
    whole.push_str(WHOLE);
    if std::env::var_os("FLEDGE_BLESS").is_some() {
        return std::fs::write(path, whole).map_err(|error| error.to_string());
    }
    let printed = std::fs::read_to_string(path).unwrap_or_default();
    let stale: Vec<&str> = whole.lines().filter(|line| !printed.lines().any(|other| other == *line)).collect();
    match (stale.is_empty(), printed == whole) {
        (true, true) => Ok(()),
        (true, false) => Err("specs/generated/faults.md has lines that are not so any more".into()),
        (false, _) => Err(format!("not so in specs/generated/faults.md: {stale:#?}")),
    }
}

const WHOLE: &str = "
The rows that are about the whole program are run with it, in each wire format:

| row | fault | what is asserted |
|---|---|---|
| L40 | the wall clock jumps by a day at every look | the pause is as long as was asked for, and the run ends well |
| L41 | SIGTERM in the middle of each of the above that has one (a sample in the ordinary suite) | exit 143 within a second (and half a one more for a busy machine), the report written, no process left |
| L42 | the same with SIGKILL, and then resumed | the request is repeated byte by byte, its spend is booked once |
";
