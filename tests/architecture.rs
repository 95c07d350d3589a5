//! Holds what no compiler holds: floors, purity, doors, the form of files, and that the specs say what is there. Reads the
//! sources as text.
#![expect(clippy::disallowed_methods, reason = "FLEDGE_BLESS says that a printed file is to be written anew")]

#[path = "architecture/source.rs"]
mod source;

use fledge::verdict::{Reason, StopCause};
use source::{Source, root, sources};
use std::collections::BTreeSet;
use std::fs;

/// From the ground up. A module imports only from floors below its own, so there is no circle.
const FLOORS: &[(&str, &[&str])] = &[
    ("1a", &["duration", "id", "limits", "moment"]),
    ("1b", &["process", "yaml"]),
    ("2", &["chat", "store", "task", "verdict", "workspace"]),
    ("3a", &["lane", "run", "spec"]),
    ("3b", &["lane_runner", "provider"]),
    ("3c", &["tool"]),
    ("4", &["gate", "report"]),
    ("5", &["driver"]),
    ("7", &["config"]),
    ("8", &["cli"]),
];

/// Modules and files that decide and never wait.
const PURE: &str = "chat/ duration.rs id.rs lane/ limits.rs moment.rs report/ run/ spec/ task/ verdict.rs yaml/ config/file.rs \
    config/model.rs config/url.rs gate/feedback.rs lane_runner/excerpt.rs lane_runner/lines.rs lane_runner/report.rs \
    process/text.rs provider/anthropic/ provider/codec.rs provider/complaint.rs provider/framing.rs \
    provider/openai_chat/ tool/arguments.rs tool/bound.rs tool/contract.rs tool/nearest.rs tool/pattern.rs \
    tool/rules.rs tool/text.rs";

/// What pure files do not name.
const WORLD: &str = "tokio tokio_util std::fs std::net std::process std::env std::thread reqwest rustix tempfile rand Instant::now \
    SystemTime::now Timestamp::now now_v7 println! eprintln! print! eprint!";

/// Dangerous verbs, and the rooms that may use them.
const DOORS: &[(&str, &[&str])] = &[
    ("std::process::Command", &["process/"]),
    ("tokio::process", &["process/"]),
    ("process_wrap", &["process/"]),
    ("rustix::process", &["process/"]),
    ("std::process::exit", &["cli/"]),
    ("std::process::abort", &[]),
    ("std::env", &["config/layers.rs"]),
    ("std::thread::spawn", &[]),
    ("std::thread::Builder", &["driver/bus.rs"]),
    ("tokio::spawn", &[]),
    ("tokio::task::spawn", &[]),
    ("JoinSet::new", &["cli/signals.rs", "driver/inbox.rs"]),
    ("spawn_blocking", &["driver/perform.rs", "tool/host.rs"]),
    ("Instant::now", &["driver/mod.rs", "process/", "provider/transport/watch.rs"]),
    ("SystemTime::now", &[]),
    ("Timestamp::now", &["driver/mod.rs", "provider/transport/"]),
    ("now_v7", &["cli/", "driver/mod.rs", "process/"]),
    ("reqwest", &["provider/"]),
    ("rusqlite", &["store/"]),
    ("println!", &["cli/"]),
    ("eprintln!", &["cli/"]),
    ("print!", &["cli/"]),
    ("eprint!", &["cli/"]),
    ("std::io::stdout", &["cli/"]),
    ("std::io::stderr", &["cli/"]),
    ("anstream", &["cli/"]),
];

/// Names that say nothing of what is inside.
const EMPTY_NAMES: [&str; 6] = ["util", "helper", "helpers", "common", "manager", "misc"];
const SECTIONS: [&str; 7] =
    ["Purpose", "Public API", "Invariants", "Behavioral Examples", "Error Cases", "Dependencies", "Change Log"];
/// Modules whose spec is still being written.
const WITHOUT_SPEC: [&str; 1] = ["run"];

#[test]
fn every_path_leads_to_a_floor_below() {
    let mut wrong = Vec::new();
    for source in sources("src").iter().filter(|source| floor(source.module()).is_some()) {
        for (line, path) in source.paths(false) {
            let climbs = path.matches("super::").count() >= source.depth() && !source.is_test(line);
            let Some(target) = path.strip_prefix("crate::").map(|rest| rest.split("::").next().unwrap_or_default())
            else {
                if climbs {
                    wrong.push(format!("src/{}:{line}: `{path}` climbs to the root: write `crate::…`", source.path));
                }
                continue;
            };
            match floor(target) {
                _ if target == source.module() || target == "as" => {}
                Some(below) if Some(below) < floor(source.module()) => {}
                Some(_) => wrong.push(format!("src/{}:{line}: `{path}` is on no floor below", source.path)),
                None => {
                    wrong.push(format!("src/{}:{line}: `{path}` is no module: name the one it comes from", source.path))
                }
            }
        }
    }
    assert!(wrong.is_empty(), "a module imports only from floors below its own:\n{}", wrong.join("\n"));
}

#[test]
fn the_floors_are_those_of_the_map_and_hold_every_module() {
    let map = read("src/lib.rs");
    let rows = map.lines().filter_map(|line| line.strip_prefix("//! | ")).filter(|row| row.contains('`'));
    let row = |row: &str| {
        let mut names: Vec<String> = row.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        names.sort();
        (row.split(' ').next().unwrap_or_default().to_owned(), names)
    };
    let mut drawn: Vec<_> = rows.map(row).collect();
    drawn.reverse();
    let ours: Vec<_> =
        FLOORS.iter().map(|(name, all)| ((*name).to_owned(), all.iter().map(|m| (*m).to_owned()).collect())).collect();
    assert_eq!(drawn, ours, "the table in src/lib.rs and FLOORS here differ");
    let declared: BTreeSet<&str> = modules(&map).collect();
    let placed: BTreeSet<&str> = FLOORS.iter().flat_map(|(_, all)| *all).copied().collect();
    assert_eq!(declared, placed, "the modules of src/lib.rs and those with a floor differ");
}

#[test]
fn pure_files_name_nothing_of_the_world() {
    let mut wrong = Vec::new();
    let (known, pure): (_, Vec<&str>) = (sources("src"), PURE.split_whitespace().collect());
    for source in known.iter().filter(|source| source.is_in(&pure)) {
        for (line, path) in source.paths(true) {
            wrong.extend(
                WORLD
                    .split_whitespace()
                    .filter(|word| names(&path, word))
                    .map(|word| format!("src/{}:{line}: `{word}`", source.path)),
            );
        }
    }
    assert!(wrong.is_empty(), "what decides does not wait, read, print or look at a clock:\n{}", wrong.join("\n"));
    let gone: Vec<_> = pure.iter().filter(|place| !known.iter().any(|source| source.is_in(&[place]))).collect();
    assert!(gone.is_empty(), "PURE names what is not there: {gone:?}");
}

#[test]
fn every_dangerous_verb_has_its_rooms() {
    let mut wrong = Vec::new();
    for source in sources("src") {
        // `split_paths` only takes a text apart.
        for (line, path) in source.paths(true).into_iter().filter(|(_, path)| path != "std::env::split_paths") {
            let shut = DOORS.iter().filter(|(verb, rooms)| names(&path, verb) && !source.is_in(rooms));
            wrong.extend(
                shut.map(|(verb, rooms)| format!("src/{}:{line}: `{verb}` is for {rooms:?} only", source.path)),
            );
        }
    }
    assert!(wrong.is_empty(), "every dangerous verb has its rooms:\n{}", wrong.join("\n"));
}

#[test]
fn files_open_with_a_promise_are_short_and_are_named_for_what_is_in_them() {
    let mut wrong = Vec::new();
    for (folder, source) in
        ["src", "tests"].iter().flat_map(|folder| sources(folder).into_iter().map(move |s| (folder, s)))
    {
        let Source { path, text, .. } = &source;
        if !text.starts_with("//! ") {
            wrong.push(format!("{folder}/{path}:1: does not open with `//!` and what it promises"));
        }
        if text.lines().count() > 400 {
            wrong.push(format!("{folder}/{path}:400: {} lines; no file has more than 400", text.lines().count()));
        }
        if path.split(['/', '.']).any(|name| EMPTY_NAMES.contains(&name)) {
            wrong.push(format!("{folder}/{path}:1: the name does not say what is inside"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_has_a_spec_that_is_true() {
    let (ours, theirs) = (sources("src"), sources("tests"));
    let is_test = |name: &str| {
        let (place, test) = name.rsplit_once("::").unwrap_or(("", name));
        let place = place.split("::").next().unwrap_or_default();
        let says =
            |source: &Source| ["fn {}(", "mod {};"].iter().any(|form| source.text.contains(&form.replace("{}", test)));
        let there = |source: &Source| (place.is_empty() || source.module() == place) && says(source);
        ours.iter().chain(&theirs).any(there)
    };
    let (mut wrong, map) = (Vec::new(), read("src/lib.rs"));
    for module in modules(&map) {
        let path = format!("specs/{module}/{module}.spec.md");
        let Ok(text) = fs::read_to_string(root().join(&path)) else {
            if !WITHOUT_SPEC.contains(&module) {
                wrong.push(format!("{path}:1: `{module}` has no spec"));
            }
            continue;
        };
        let spec = fledge::spec::parse(&text, &path).unwrap_or_else(|fault| panic!("{fault}"));
        let gone = spec.files.iter().filter(|file| !root().join(file.trim_end_matches("/**")).exists());
        wrong.extend(gone.map(|file| format!("{path}:1: there is no file `{file}`")));
        let used: BTreeSet<String> =
            ours.iter().filter(|source| source.module() == module).flat_map(Source::imports).collect();
        if spec.module != module || spec.depends_on.iter().cloned().collect::<BTreeSet<_>>() != used {
            wrong.push(format!("{path}:1: `module` or `depends_on` is not what the sources say: {module}, {used:?}"));
        }
        let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        if headings != SECTIONS {
            wrong.push(format!("{path}:1: the sections are not {SECTIONS:?}"));
        }
        let mut laws: Vec<(usize, String)> = Vec::new();
        let inside = text.lines().enumerate().skip_while(|(_, line)| *line != "## Invariants").skip(1);
        for (at, line) in inside.take_while(|(_, line)| !line.starts_with("## ")) {
            match (line.starts_with(|c: char| c.is_ascii_digit()), laws.last_mut()) {
                (true, _) => laws.push((at + 1, line.to_owned())),
                (false, Some((_, law))) if line.starts_with(' ') => law.push_str(line),
                (false, _) => {}
            }
        }
        let held = |law: &str| law.ends_with('`') && law.rsplit('`').nth(1).is_some_and(is_test);
        let unheld = laws.iter().filter(|(_, law)| !held(law));
        wrong.extend(unheld.map(|(line, law)| format!("{path}:{line}: no test of that name holds `{law}`")));
        if laws.is_empty() {
            wrong.push(format!("{path}:1: no invariants"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_of_exit_codes_is_the_printed_one() {
    let mut table = String::from(
        "# Exit codes\n\nOne row for each reason that a run can end with. Printed from `verdict::Reason` by a test; to write it anew, run\n\
         `FLEDGE_BLESS=1 cargo test --test architecture`.\n\n| reason | done_reason | exit code | meaning |\n|---|---|---|---|\n",
    );
    for reason in Reason::ALL {
        let (row, terminated) = (reason.row(), reason.exit_code(Some(StopCause::Terminate)));
        let code = if terminated == row.exit_code {
            terminated.to_string()
        } else {
            format!("{}, by SIGTERM {terminated}", row.exit_code)
        };
        table.push_str(&format!("| {reason} | {} | {code} | {} |\n", row.done_reason, row.meaning));
    }
    let path = root().join("specs/generated/exit-codes.md");
    if std::env::var_os("FLEDGE_BLESS").is_some() {
        fs::write(&path, &table).expect("specs/generated can be written");
    }
    let printed = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(printed, table, "specs/generated/exit-codes.md is old: FLEDGE_BLESS=1 writes it anew");
}

/// How high a module stands.
fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|(_, modules)| modules.contains(&module))
}

/// The modules that `src/lib.rs` declares.
fn modules(map: &str) -> impl Iterator<Item = &str> {
    map.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
}

/// Whether a path goes through this word or words.
fn names(path: &str, word: &str) -> bool {
    format!("::{path}::").contains(&format!("::{word}::"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("it is there and is text")
}
