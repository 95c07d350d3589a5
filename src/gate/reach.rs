//! Looks from inside of a sandbox for the programs that steps name, before anything is spent: a
//! home is hidden there, and a program that is in it, or behind a link into it, may be missing.

use super::{Gate, Site, unable};
use crate::lane::Lane;
use crate::limits::HELPER_TIMEOUT;
use crate::process::wall::{Holes, Wall, WallKind, interpreter, last_program};
use crate::process::{End, Invocation, Variables, find_program};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Prints each of its arguments that is no program which can be read. Landlock hides nothing from
/// `test`.
const LOOK: &str = r#"for p; do (: <"$p") 2>/dev/null && test -x "$p" || printf '%s\n' "$p"; done"#;
/// Programs that are followed: interpreters, and what wrappers start.
const MOST_SCRIPTS: usize = 6;
/// Bytes of output that are read.
const MOST_OUTPUT: usize = 64 * 1024;

/// A step whose program is found by hand and not in a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// The lane.
    pub lane: String,
    /// The step.
    pub step: String,
    /// The program that is missing, and where it is by hand.
    pub what: String,
    /// The change that mends it.
    pub cure: String,
}

/// A program of a step, and the file that it, or its interpreter, is by hand.
#[derive(Debug, PartialEq, Eq)]
struct Named<'l> {
    lane: &'l Lane,
    step: &'l str,
    program: String,
}

/// Looks in a sandbox for the programs that the steps of these lanes name and that the search path
/// has outside of `root`. `hidden` is what no program sees there.
pub async fn unreached<'l>(
    lanes: impl IntoIterator<Item = &'l Lane>,
    root: &Path,
    (wall, hidden): (&Wall, &[PathBuf]),
    env: &[(String, String)],
    stop: &CancellationToken,
) -> Vec<Unreached> {
    let env = Variables::new(env.iter().cloned());
    let home = env.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let mut places: BTreeMap<PathBuf, Vec<Named<'_>>> = BTreeMap::new();
    for lane in lanes {
        for step in &lane.steps {
            let path = step.env.get("PATH").or_else(|| lane.env.get("PATH")).map(String::as_str);
            let path = path.or_else(|| env.get("PATH")).unwrap_or_default();
            for program in step.programs() {
                for (program, file) in files_of(program, path, root, home.as_deref()) {
                    places.entry(file).or_default().push(Named { lane, step: &step.name, program });
                }
            }
        }
    }
    if places.is_empty() || wall.kind() == WallKind::Off {
        return Vec::new();
    }
    let holes = Holes { home, hidden: hidden.to_vec(), ..Holes::default() };
    let files = places.keys().map(|file| file.to_string_lossy().into_owned());
    let look = Invocation {
        program: "/bin/sh".into(),
        args: ["-c", LOOK, "sh"].map(str::to_owned).into_iter().chain(files).collect(),
        dir: "/".into(),
        env,
        timeout: Some(HELPER_TIMEOUT),
        grace: Duration::ZERO,
        linger: Duration::ZERO,
        log: None,
        log_limit: 0,
    };
    let ended = wall.run_at(None, &holes, look, stop, &|_| {}).await;
    if ended.end != End::Exited(0) {
        return Vec::new(); // a sandbox that cannot be built is told elsewhere
    }
    let said = ended.output.text(MOST_OUTPUT);
    let missing = said.lines().filter_map(|line| places.get_key_value(Path::new(line)));
    let told = missing.flat_map(|(file, named)| named.iter().map(move |named| (file, named)));
    let told = told.map(|(file, named)| {
        let (what, cure) = unable::hidden_program(&named.program, file);
        Unreached { lane: named.lane.name.clone(), step: named.step.to_owned(), what, cure }
    });
    told.collect()
}

/// The file of a program that the search path has outside of the project, those of the interpreters
/// that run it, and of the program that a wrapper in a shell's language starts.
fn files_of(program: &str, path: &str, root: &Path, home: Option<&Path>) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut next: Vec<PathBuf> = file_of(program, path).into_iter().collect();
    while let Some(file) = next.pop() {
        if file.starts_with(root) || found.len() >= MOST_SCRIPTS {
            continue;
        }
        let words = interpreter(&file);
        let is_env = words.first().is_some_and(|first| first.ends_with("/env"));
        let run_by = if is_env { words.iter().skip(1).find(|word| !word.starts_with('-')) } else { words.first() };
        next.extend(run_by.and_then(|word| file_of(word, path)));
        let started = home.and_then(|home| last_program(&file, home));
        next.extend(started.and_then(|started| file_of(started.to_str()?, path)));
        found.push((program.to_owned(), file));
    }
    found
}

/// The file that is run as a program, where it can be read.
fn file_of(program: &str, path: &str) -> Option<PathBuf> {
    find_program(program, path).filter(|file| File::open(file).is_ok())
}

impl Gate {
    /// Why a step could not find in a room a program that it finds by hand; `None` where all are
    /// found.
    pub async fn unreached(&self, site: &Site, stop: &CancellationToken) -> Option<String> {
        let around = (&site.wall, site.hidden.as_slice());
        let all = unreached(&self.lanes, &site.root, around, &site.env, stop).await;
        let Unreached { lane, step, what, cure } = all.into_iter().next()?;
        Some(format!(
            "the checks cannot pass here: step `{step}` of lane `{lane}` cannot run in a room: {what}; {cure}"
        ))
    }
}
