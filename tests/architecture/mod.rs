//! Architecture checks that the compiler cannot make: floors, purity, restricted APIs, file layout,
//! and documents that match the code. The checks read the sources as text.

mod documents;
mod source;
mod verbs;

use source::{Source, modules, read, sources};
use std::collections::BTreeSet;

/// The floors, lowest first. A module imports only from lower floors, so imports form no circle.
const FLOORS: &[(&str, &[&str])] = &[
    ("1a", &["duration", "elapsed", "error_chain", "fail_point", "id", "limits", "pattern", "sandbox_kind"]),
    ("1b", &["http", "process", "queue", "schedule", "yaml"]),
    ("2", &["chat", "file_watch", "monitor", "task", "verdict"]),
    ("3a", &["lane", "run", "spec"]),
    ("3b", &["store", "workspace"]),
    ("3c", &["lane_files", "lane_runner", "mcp", "provider"]),
    ("3d", &["tool"]),
    ("4", &["gate", "report"]),
    ("5", &["driver"]),
    ("6a", &["batch", "scheduler", "sync"]),
    ("6b", &["serve"]),
    ("7a", &["config"]),
    ("7b", &["setup"]),
    ("8", &["cli"]),
];

/// Modules and files that decide without waiting or input and output.
const PURE: &str = "batch/job_scheduler.rs batch/evaluation/ batch/forms.rs batch/outcome.rs batch/plan/ batch/budget.rs batch/record.rs batch/summary.rs error_chain.rs chat/ duration.rs id.rs lane/ limits.rs elapsed.rs monitor/ report/ run/ schedule/ spec/ task/ verdict/ yaml/ config/file.rs \
    config/model.rs config/model_keys.rs config/prices.rs config/schema.rs config/servers.rs config/trust.rs config/url.rs config/env_template.rs gate/feedback.rs gate/locks/ gate/policy/ \
    lane_runner/excerpt/ lane_runner/junit/ lane_runner/lines.rs lane_runner/report.rs \
    mcp/catalog.rs mcp/session/answer.rs process/text.rs provider/answer.rs provider/anthropic/ provider/codec.rs provider/api_error.rs provider/framing.rs provider/ollama/ \
    provider/openai_chat/ provider/openai_responses/ provider/text_tools/splitter.rs provider/text_tools/translation.rs queue/ store/words.rs \
    tool/arguments.rs tool/bound.rs tool/contract.rs tool/foreign.rs tool/mask.rs tool/nearest.rs tool/notes.rs tool/picture.rs \
    tool/rules.rs tool/text.rs file_watch/debounce.rs pattern.rs sandbox_kind.rs workspace/protection.rs";

/// APIs that pure files must not name.
const WORLD: &str = "tokio tokio_util std::fs std::net std::process std::env std::thread reqwest rustix tempfile rand Instant::now \
    SystemTime::now Timestamp::now now_v7 println! eprintln! print! eprint!";

/// Restricted APIs, each with the files and folders that may use it.
const DOORS: &[(&str, &[&str])] = &[
    ("std::process::Command", &["process/"]),
    ("tokio::process", &["process/"]),
    ("process_wrap", &["process/"]),
    ("nix::spawn", &["process/"]),
    ("rustix::process", &["process/"]),
    ("std::process::exit", &["cli/"]),
    ("std::process::abort", &["fail_point.rs"]),
    (
        "std::env",
        &["cli/internal.rs", "config/layers.rs", "fail_point.rs", "process/sandbox/seccomp.rs", "test_support.rs"],
    ),
    ("std::thread::spawn", &[]),
    ("std::thread::Builder", &["cli/live.rs", "cli/output_buffer.rs", "driver/watcher.rs", "serve/engine/mod.rs"]),
    ("tokio::spawn", &[]),
    ("tokio::task::spawn", &[]),
    ("JoinSet::new", &["cli/signals.rs", "driver/inbox.rs", "scheduler/shared.rs", "serve/http/listener.rs"]),
    (
        "spawn_blocking",
        &[
            "cli/drive.rs",
            "driver/configuration.rs",
            "driver/planning.rs",
            "driver/report.rs",
            "gate/base.rs",
            "gate/clean.rs",
            "gate/gits.rs",
            "gate/judge.rs",
            "gate/masked.rs",
            "gate/planted.rs",
            "gate/room_watcher.rs",
            "lane_runner/explain.rs",
            "lane_runner/existing_reports.rs",
            "cli/serve/jobs.rs",
            "scheduler/shared.rs",
            "scheduler/scheduler_store.rs",
            "scheduler/tests.rs",
            "serve/engine/mod.rs",
            "serve/app_state.rs",
            "store/queue/mod.rs",
            "sync/outbox.rs",
            "tool/host.rs",
            "file_watch/mod.rs",
            "workspace/trees/mod.rs",
        ],
    ),
    (
        "Instant::now",
        &["driver/mod.rs", "process/", "provider/pace.rs", "provider/pace_tests.rs", "provider/transport/watch.rs"],
    ),
    ("rustix::time", &["store/queue/clock.rs"]),
    ("SystemTime::now", &[]),
    (
        "Timestamp::now",
        &[
            "cli/past_batches.rs",
            "cli/jobs/mod.rs",
            "cli/memory/mod.rs",
            "cli/monitors/mod.rs",
            "cli/runs/mod.rs",
            "cli/serve/",
            "cli/left_worktrees.rs",
            "driver/mod.rs",
            "provider/transport/",
            "scheduler/clock.rs",
            "serve/clock.rs",
            "store/queue/clock.rs",
        ],
    ),
    ("now_v7", &["cli/", "driver/mod.rs", "process/", "serve/engine/"]),
    ("reqwest", &["http/", "mcp/session/http.rs", "provider/"]),
    ("notify", &["file_watch/fs_events.rs"]),
    ("rusqlite", &["store/"]),
    ("println!", &["cli/"]),
    ("eprintln!", &["cli/", "test_support.rs"]),
    ("print!", &["cli/"]),
    ("eprint!", &["cli/"]),
    ("std::io::stdout", &["cli/", "process/dialogue.rs"]),
    ("std::io::stderr", &["cli/"]),
    ("anstream", &["cli/"]),
];

/// Module names that do not describe their contents.
const EMPTY_NAMES: [&str; 6] = ["util", "helper", "helpers", "common", "manager", "misc"];

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
                None => wrong.push(format!(
                    "src/{}:{line}: `{path}` is not a module: name the module that defines the item",
                    source.path
                )),
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
                    .filter(|word| names(path, word))
                    .map(|word| format!("src/{}:{line}: `{word}`", source.path)),
            );
        }
    }
    assert!(wrong.is_empty(), "what decides does not wait, read, print or look at a clock:\n{}", wrong.join("\n"));
    let gone: Vec<_> = pure.iter().filter(|place| !known.iter().any(|source| source.is_in(&[place]))).collect();
    assert!(gone.is_empty(), "PURE names what is not there: {gone:?}");
}

#[test]
fn modules_that_decide_import_no_module_that_does() {
    let map = read("src/lib.rs");
    let rows = map.lines().filter_map(|line| line.strip_prefix("//! | ")?.split('|').nth(1));
    let decides: BTreeSet<&str> = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(decides.contains("run") && decides.contains("report"), "src/lib.rs has no table of modules: {decides:?}");
    let mut wrong = Vec::new();
    for source in sources("src").iter().filter(|source| decides.contains(source.module())) {
        let world = source.imports().into_iter().filter(|module| !decides.contains(module.as_str()));
        wrong.extend(world.map(|module| format!("src/{}: `{module}`", source.path)));
    }
    assert!(wrong.is_empty(), "what decides imports nothing of the right column:\n{}", wrong.join("\n"));
}

#[test]
fn every_dangerous_verb_has_its_rooms() {
    let mut wrong = Vec::new();
    for source in sources("src") {
        // `split_paths` only parses text.
        for (line, path) in source.paths(true).filter(|(_, path)| *path != "std::env::split_paths") {
            let shut = DOORS.iter().filter(|(verb, rooms)| names(path, verb) && !source.is_in(rooms));
            wrong.extend(
                shut.map(|(verb, rooms)| format!("src/{}:{line}: `{verb}` is for {rooms:?} only", source.path)),
            );
        }
    }
    assert!(wrong.is_empty(), "every dangerous verb has its rooms:\n{}", wrong.join("\n"));
}

/// APIs that write files, each with the files that may use them where fledge stores data. These
/// files have fail points or write data that belongs to no run.
const WRITERS: &[(&str, &[&str])] = &[
    ("OpenOptions", &["store/files.rs", "store/lock.rs", "store/schema.rs", "workspace/outlet.rs"]),
    ("tempfile", &["store/files.rs", "workspace/trees/", "workspace/worktree/record.rs"]),
    ("fs::write", &["gate/base.rs", "workspace/replica/"]),
    ("fs::rename", &["gate/base.rs", "store/prune.rs", "workspace/replica/", "workspace/worktree/remove.rs"]),
    ("File::create", &["workspace/trees/scratch.rs"]),
    ("rustix::fs::renameat", &["workspace/jail/folder.rs"]),
];

#[test]
fn what_is_kept_and_every_effect_goes_by_fail_points() {
    let known = sources("src");
    let mut wrong = Vec::new();
    for source in known.iter().filter(|source| source.is_in(&["store/", "driver/", "workspace/"])) {
        for (line, path) in source.paths(true) {
            let shut = WRITERS.iter().filter(|(writer, rooms)| names(path, writer) && !source.is_in(rooms));
            wrong.extend(
                shut.map(|(writer, _)| format!("src/{}:{line}: `{writer}` goes by no fail point", source.path)),
            );
        }
    }
    let source = |path: &str| known.iter().find(|source| source.path == path).map_or("", |source| source.text.as_str());
    // Every function that changes a journal does so behind one guard, which has the fail points.
    // The function that starts effects follows the same rule.
    let journal = source("store/journal.rs").split("    pub fn ").skip(1).filter(|body| body.contains("&mut self"));
    wrong.extend(
        journal
            .filter(|body| !body.contains("self.guard(\"journal "))
            .map(|body| format!("src/store/journal.rs: {}", &body[..40])),
    );
    for (path, verb, count) in [
        ("store/journal.rs", "reach(", 3),
        ("store/durations.rs", "reach(", 1),
        ("store/files.rs", "reach(\"file\"", 3),
        ("store/memory.rs", "reach(", 1),
        ("store/prune.rs", "reach(", 1),
        ("store/queue/tables.rs", "reach(", 1),
        ("workspace/jail/folder.rs", "reach(work", 3),
        ("driver/inbox.rs", "reach(name", 2),
        ("driver/inbox.rs", "tasks.spawn(", 1),
        ("driver/effects.rs", "reach(\"report\"", 2),
        ("workspace/worktree/make.rs", "self.at(\"", 5),
        ("workspace/worktree/remove.rs", "self.at(\"", 4),
    ] {
        let found = source(path).matches(verb).count();
        if found != count {
            wrong.push(format!("src/{path}: `{verb}` is there {found} times, not {count}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_open_with_a_promise_are_short_and_are_named_for_what_is_in_them() {
    let mut wrong = Vec::new();
    for (folder, source) in
        ["src", "tests"].iter().flat_map(|folder| sources(folder).iter().map(move |source| (folder, source)))
    {
        let Source { path, text, .. } = source;
        if !text.starts_with("//! ") {
            wrong.push(format!("{folder}/{path}:1: does not open with `//!` and what it promises"));
        }
        if text.lines().count() > 500 {
            wrong.push(format!("{folder}/{path}:500: {} lines; no file has more than 500", text.lines().count()));
        }
        let is_long = |line: &&str| line.trim_start().starts_with("//") && line.chars().count() > 100;
        for line in text.lines().filter(is_long).filter(|line| !line.contains("// |") && !line.contains("//! |")) {
            wrong.push(format!("{folder}/{path}: a comment line has more than 100 columns: {line}"));
        }
        if path.split(['/', '.']).any(|name| EMPTY_NAMES.contains(&name)) {
            wrong.push(format!("{folder}/{path}:1: the name does not say what is inside"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_test_name_has_more_than_80_characters() {
    let name = regex::Regex::new(r"#\[(?:tokio::)?test[^\n]*\]\s+(?:#\[[^\n]*\]\s+)*(?:async )?fn (\w{81,})").unwrap();
    let all =
        ["src", "tests"].into_iter().flat_map(|folder| sources(folder).iter().map(move |source| (folder, source)));
    let long = |(folder, source): (&str, &'static Source)| {
        let names = name.captures_iter(&source.text).map(|found| found.get(1).unwrap().as_str());
        names.map(|name| format!("{folder}/{}: {name}", source.path)).collect::<Vec<_>>()
    };
    let wrong: Vec<String> = all.flat_map(long).collect();
    assert!(wrong.is_empty(), "name a subject, a verb and an outcome:\n{}", wrong.join("\n"));
}

/// Returns the index of a module's floor.
fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|(_, modules)| modules.contains(&module))
}

/// Returns true if a path contains this segment or sequence of segments.
fn names(path: &str, word: &str) -> bool {
    path.match_indices(word).any(|(start, _)| {
        let (before, after) = (&path[..start], &path[start + word.len()..]);
        (before.is_empty() || before.ends_with("::")) && (after.is_empty() || after.starts_with("::"))
    })
}
