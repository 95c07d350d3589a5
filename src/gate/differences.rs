//! The parts that a clean room lacks and a lane has by hand: programs of a home, files that git
//! ignores, the network, variables. Pure, except for a look at names of files.

use super::GateSite;
use super::names::{has_name, name_of};
use super::unable::{self, StepSurroundings};
use crate::lane::Lane;
use crate::verdict::{StepReport, StepStatus};
use std::collections::BTreeSet;
use std::path::Path;

/// The maximum number of ignored files that are examined.
const MOST_FILES: usize = 5000;
/// The maximum number of files that a message names.
const NAMED: usize = 5;
/// The shortest name that is searched in the output of a step.
const SHORTEST: usize = 4;
/// Commands that need a network, or a daemon behind a socket.
const FETCHING: [&str; 16] = [
    "npm ci",
    "npm install",
    "pnpm install",
    "yarn install",
    "pip install",
    "pip3 install",
    "uv sync",
    "poetry install",
    "bundle install",
    "git clone",
    "git fetch",
    "git pull",
    "docker",
    "podman",
    "wget",
    "curl",
];
/// Variables that each shell sets for itself.
const SET_BY_SHELLS: [&str; 10] =
    ["_", "IFS", "LINENO", "OLDPWD", "OPTIND", "PPID", "PWD", "RANDOM", "SECONDS", "SHLVL"];
/// Signs, in lower case, that a program misses a file.
const ABSENT: [&str; 9] = [
    "no such file",
    "not found",
    "enoent",
    "cannot open",
    "cannot find",
    "can't open",
    "does not exist",
    "cannot stat",
    "missing",
];

/// Returns why steps that failed in a room may pass by hand, one line each with the remedy.
/// `ignored` are the paths of the workspace that git ignores; folders end in `/`. `removed` names
/// the variables that steps do not have.
pub fn differences(
    lane: &Lane,
    steps: &[StepReport],
    site: &GateSite,
    ignored: &[String],
    removed: &[&str],
) -> Vec<String> {
    let failed: Vec<&StepReport> = steps
        .iter()
        .filter(|step| matches!(step.status, StepStatus::Failed | StepStatus::Errored | StepStatus::TimedOut))
        .collect();
    let mut reported = Vec::new();
    let unable = failed.iter().filter_map(|step| {
        let as_failed = StepReport { status: StepStatus::Failed, ..(*step).clone() };
        unable::why(&[as_failed], &StepSurroundings::from_site(site, lane.network))
    });
    reported.extend(unable);
    for step in &failed {
        let files = lacked_files(step, lane, &site.root, ignored);
        if !files.is_empty() {
            let names = files.iter().take(NAMED).cloned().collect::<Vec<_>>();
            reported.push(format!(
                "step `{}` reads files that git ignores and the room lacks: {}; add `include_ignored: [{}]` to the lane",
                step.step,
                names.join(", "),
                names.join(", ")
            ));
        }
        let variables = named_variables(step, removed);
        if !variables.is_empty() {
            let names = variables.join(", ");
            reported.push(format!(
                "step `{}` names variables that gate steps do not get, because they may be secrets: {names}",
                step.step
            ));
        }
    }
    reported.dedup();
    reported
}

/// Returns the variables that a step does not have and that its command or output names.
fn named_variables<'v>(step: &StepReport, removed: &[&'v str]) -> Vec<&'v str> {
    let is_named = |name: &str| has_name(&step.excerpt, name) || has_name(&step.command, name);
    removed.iter().copied().filter(|name| !SET_BY_SHELLS.contains(name) && is_named(name)).collect()
}

/// Returns the ignored files and folders of the workspace `root` that a failed step names and that
/// its room lacks.
pub fn lacked_files(step: &StepReport, lane: &Lane, root: &Path, ignored: &[String]) -> Vec<String> {
    ignored_in(step, lane, ignored, |path| root.join(path).exists())
}

/// Returns the ignored files that a failed step names, in its command or in a line that says that
/// they are absent.
fn ignored_in(step: &StepReport, lane: &Lane, ignored: &[String], is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let lines: Vec<&str> = step
        .excerpt
        .lines()
        .filter(|line| {
            let small = line.to_lowercase();
            ABSENT.iter().any(|sign| small.contains(sign))
        })
        .collect();
    let is_named = |path: &str| {
        if let Some(folder) = path.strip_suffix('/') {
            let is_long = folder.len() >= SHORTEST;
            let says = |text: &str| text.contains(path) || (is_long && has_name(text, folder));
            return says(&step.command) || lines.iter().any(|line| says(line));
        }
        let name = name_of(path);
        let is_long = name.len() >= SHORTEST;
        has_name(&step.command, path)
            || lines.iter().any(|line| has_name(line, path) || (is_long && has_name(line, name)))
    };
    let found: BTreeSet<String> = ignored
        .iter()
        .take(MOST_FILES)
        .filter(|path| !is_brought(lane, path) && is_named(path) && is_there(path))
        .map(|path| path.trim_end_matches('/').to_owned())
        .collect();
    found.into_iter().collect()
}

/// Returns whether a room has an ignored file because its lane includes or keeps it.
fn is_brought(lane: &Lane, path: &str) -> bool {
    let mut own = lane.include_ignored.iter().chain(lane.kept_folders());
    own.any(|own| Path::new(path).starts_with(own.trim_end_matches('/')))
}

/// Returns the steps of a lane without network access whose commands fetch something, each with the
/// words that do.
pub fn fetching(lane: &Lane) -> Vec<(String, &'static str)> {
    let steps = lane.steps.iter().filter(|_| !lane.network);
    let named = |step: &crate::lane::Step| {
        let run = step.run.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = FETCHING.iter().find(|words| has_name(&run, words))?;
        let is_here = ["localhost", "127.0.0.1"].iter().any(|host| run.contains(host));
        (!is_here).then(|| (step.name.clone(), *words))
    };
    steps.filter_map(named).collect()
}

/// Returns the steps whose commands name files that git ignores and that no room has, each with the
/// path.
pub fn ignored_in_commands(lane: &Lane, ignored: &[String]) -> Vec<(String, String)> {
    let files = || {
        ignored.iter().take(MOST_FILES).map(|path| path.trim_end_matches('/')).filter(|path| !is_brought(lane, path))
    };
    let named = |step: &crate::lane::Step| {
        let found = files().find(|path| has_name(&step.run, path))?;
        Some((step.name.clone(), found.to_owned()))
    };
    lane.steps.iter().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::parse;
    use crate::test_support::step_report;

    #[test]
    fn variables_that_shells_set_are_not_named_as_secrets() {
        let step = step_report("cd x && echo $_ $OLDPWD $TOKEN", StepStatus::Failed, "line 1: _: SHLVL");
        assert_eq!(named_variables(&step, &["OLDPWD", "SHLVL", "TOKEN", "_"]), ["TOKEN"]);
    }

    #[test]
    fn an_ignored_file_is_named_where_a_step_asks_for_it() {
        let ignored = [".env.test", "data/model.bin", "data/", "logs/", "run"].map(str::to_owned);
        let lane = parse("verify", "v.yaml", "include_ignored: [logs]\nsteps: [{ run: x }]").unwrap();
        for (command, excerpt, found) in [
            ("sh t.sh", "cat: .env.test: No such file or directory", &[".env.test"][..]),
            (
                "sh t.sh",
                "FileNotFoundError: [Errno 2] No such file or directory: 'data/model.bin'",
                &["data", "data/model.bin"],
            ),
            ("sh t.sh", "Error: ENOENT: open '/p/data/model.bin'", &["data", "data/model.bin"]),
            (". ./.env.test && true", "", &[".env.test"]),
            ("sh t.sh", "read .env.test: 3 tests failed", &[]),
            ("sh t.sh", "logs: not found", &[]),
            ("sh t.sh", "ls: cannot access 'data': No such file or directory", &["data"]),
            ("sh t.sh", "runner: not found", &[]),
        ] {
            assert_eq!(
                ignored_in(&step_report(command, StepStatus::Failed, excerpt), &lane, &ignored, |_| true),
                found,
                "{command}: {excerpt}"
            );
        }
        let lane = parse("verify", "v.yaml", "steps: [{ name: a, run: 'source ./.env.test' }]").unwrap();
        assert_eq!(fetching(&lane), []);
        let fetches = parse("verify", "v.yaml", "steps: [{ name: a, run: 'npm  ci && npm test' }]").unwrap();
        assert_eq!(fetching(&fetches), [("a".to_owned(), "npm ci")]);
        assert_eq!(ignored_in_commands(&lane, &ignored), [("a".to_owned(), ".env.test".to_owned())]);
    }
}
