//! A look from inside of a sandbox for the programs that steps name, before any money is spent. A
//! sandbox hides homes, so programs in a home, or behind a link into it, may be missing.

mod in_scripts;

pub use in_scripts::{ScriptPrograms, lacking_in_scripts};

use super::{Gate, GateSite, unable};
use crate::lane::Lane;
use crate::limits::HELPER_TIMEOUT;
use crate::process::sandbox::{PathRules, Sandbox, SandboxKind, hides_versions, interpreter, last_program};
use crate::process::{Invocation, ProcessEnd, Variables, find_program};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A script that prints each of its arguments that is not a readable program. It opens each file,
/// because Landlock hides nothing from `test`.
const LOOK: &str = r#"for p; do (: <"$p") 2>/dev/null && test -x "$p" || printf '%s\n' "$p"; done"#;
/// The maximum number of programs that are followed: interpreters, and the programs that wrappers
/// start.
const MOST_SCRIPTS: usize = 6;
/// The maximum number of programs that are searched because scripts name them.
const MOST_FILES: usize = 2000;
/// Folders with the programs of the system.
const SYSTEM: [&str; 4] = ["/bin", "/sbin", "/usr/bin", "/usr/sbin"];
/// The maximum number of bytes of output that are read.
const MOST_OUTPUT: usize = 64 * 1024;

/// A step whose program is found by hand but not in a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreachedProgram {
    /// The lane.
    pub lane: String,
    /// The step.
    pub step: String,
    /// The program that is missing, and its path outside of the room.
    pub what: String,
    /// The change that fixes this.
    pub cure: String,
}

/// A program that a step of a lane names.
#[derive(Debug, PartialEq, Eq)]
struct Named<'l> {
    lane: &'l Lane,
    step: &'l str,
    program: String,
}

/// Finds the programs that the steps of these lanes name and that a sandbox does not show. Looks at
/// programs that the search path has outside of `root`. `hidden` are the paths that no program sees
/// there.
pub async fn unreached<'l>(
    lanes: impl IntoIterator<Item = &'l Lane>,
    root: &Path,
    (sandbox, hidden): (&Sandbox, &[PathBuf]),
    env: &[(String, String)],
    stop: &CancellationToken,
) -> Vec<UnreachedProgram> {
    let env = Variables::new(env.iter().cloned());
    let home = home_of(&env);
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
    let missing = missing(places.keys(), (sandbox, hidden), &env, stop).await;
    let missing = missing.iter().filter_map(|file| places.get_key_value(file));
    let reported = missing.flat_map(|(file, named)| named.iter().map(move |named| (file, named)));
    let reported = reported.map(|(file, named)| {
        let (what, cure) = unable::hidden_program(&named.program, file);
        UnreachedProgram { lane: named.lane.name.clone(), step: named.step.to_owned(), what, cure }
    });
    reported.collect()
}

/// Returns those of the files that a sandbox does not show.
async fn missing(
    files: impl Iterator<Item = &PathBuf>,
    (sandbox, hidden): (&Sandbox, &[PathBuf]),
    env: &Variables,
    stop: &CancellationToken,
) -> Vec<PathBuf> {
    let files: Vec<String> = files.map(|file| file.to_string_lossy().into_owned()).collect();
    if files.is_empty() || sandbox.kind() == SandboxKind::Off {
        return Vec::new();
    }
    let rules = PathRules { home: home_of(env), hidden: hidden.to_vec(), ..PathRules::default() };
    let look = Invocation {
        program: "/bin/sh".into(),
        args: ["-c", LOOK, "sh"].map(str::to_owned).into_iter().chain(files).collect(),
        dir: "/".into(),
        env: env.clone(),
        timeout: Some(HELPER_TIMEOUT),
        grace: Duration::ZERO,
        linger: Duration::ZERO,
        log: None,
        log_limit: 0,
    };
    let ended = sandbox.run_at(None, &rules, look, stop, &|_| {}).await;
    if ended.end != ProcessEnd::Exited(0) {
        return Vec::new(); // a broken sandbox is reported elsewhere
    }
    ended.output.text(MOST_OUTPUT).lines().map(PathBuf::from).collect()
}

fn home_of(env: &Variables) -> Option<PathBuf> {
    env.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Returns the files of the programs that these texts name: programs on the search path, and paths.
/// Leaves out programs of the system, because a sandbox shows them.
fn named_in(texts: &[String], path: &str, root: &Path, home: Option<&Path>) -> BTreeSet<PathBuf> {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || "-_.+".contains(c));
    let words: HashSet<&str> = texts.iter().flat_map(|text| text.split(is_end)).collect();
    let folders = std::env::split_paths(path).filter(|folder| !SYSTEM.iter().any(|own| folder == Path::new(own)));
    let entries = folders.flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names: BTreeSet<String> = names.filter(|name| words.contains(name.as_str())).collect();
    let names = names.into_iter().chain(texts.iter().flat_map(|text| paths_in(text, home)));
    let files = names.flat_map(|name| files_of(&name, path, root, home));
    files.map(|(_, file)| file).take(MOST_FILES).collect()
}

/// Returns the absolute paths in a text, also those that begin with `~/` or `$HOME/`.
fn paths_in(text: &str, home: Option<&Path>) -> BTreeSet<String> {
    let text = text.replace("${HOME}", "$HOME");
    let words = text.split(|c: char| c.is_whitespace() || ";|&()<>{}\"'`=,".contains(c));
    let path = |word: &str| match word.strip_prefix("$HOME/").or_else(|| word.strip_prefix("~/")) {
        Some(below) => Some(home?.join(below).to_string_lossy().into_owned()),
        None => Some(word.to_owned()).filter(|word| word.starts_with('/')),
    };
    let is_of_system = |path: &String| SYSTEM.iter().any(|folder| Path::new(path).starts_with(folder));
    words.filter_map(path).filter(|path| !is_of_system(path)).collect()
}

/// Returns the file of a program that the search path has outside of the project. Adds the files of
/// its interpreters, and of the program that a shell wrapper starts.
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

/// Returns the file that is executed for a program, if it can be read.
fn file_of(program: &str, path: &str) -> Option<PathBuf> {
    find_program(program, path).filter(|file| File::open(file).is_ok())
}

impl Gate {
    /// Returns why a step could not find a program in a room that it finds by hand. Returns `None`
    /// if all programs are found.
    pub async fn unreached(&self, site: &GateSite, stop: &CancellationToken) -> Option<String> {
        let around = (&site.sandbox, site.hidden.as_slice());
        let all = unreached(&self.lanes, &site.root, around, &site.env, stop).await;
        let UnreachedProgram { lane, step, what, cure } = all.into_iter().next()?;
        Some(format!(
            "the checks cannot pass here: step `{step}` of lane `{lane}` cannot run in a room: {what}; {cure}"
        ))
    }

    /// Returns whether the steps may lack a program in a room that they find by hand. Either their
    /// scripts name a program that a room does not show, or a version manager reads its versions
    /// from a hidden file. Only a run of the steps shows whether they need it.
    pub async fn may_lack_programs(&self, site: &GateSite, stop: &CancellationToken) -> bool {
        let env = Variables::new(site.env.iter().cloned());
        let (home, path) = (home_of(&env), site.variable("PATH"));
        let is_managed = std::env::split_paths(path).any(|folder| folder.ends_with("mise/shims"));
        if is_managed && site.sandbox.kind() != SandboxKind::Off && home.as_deref().is_some_and(hides_versions) {
            return true;
        }
        let steps = self.lanes.iter().flat_map(|lane| &lane.steps).map(|step| step.run.clone());
        let files = self.policy.commands().filter_map(|file| std::fs::read_to_string(site.root.join(file)).ok());
        let texts: Vec<String> = steps.chain(files).collect();
        let named = named_in(&texts, path, &site.root, home.as_deref());
        !missing(named.iter(), (&site.sandbox, &site.hidden), &env, stop).await.is_empty()
    }
}
