//! Says what a clean room lacks that a lane has by hand: programs of a home, files that git ignores, the network, variables. Pure, but
//! for a look at names of files.

use super::{Site, unable};
use crate::lane::Lane;
use crate::verdict::{StepReport, StepStatus};
use std::collections::BTreeSet;
use std::path::Path;

/// The most ignored files that are looked at.
const MOST_FILES: usize = 5000;
/// The most that are named.
const NAMED: usize = 5;
/// The shortest name that is looked for in what a step printed.
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
/// What programs say of a file that is not there, in small letters.
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

/// Says why steps that failed in a room may pass by hand, a line each with what mends that. `ignored` are the paths of the workspace that
/// git ignores, a folder with `/` behind it; `removed` names the variables that steps do not have.
pub fn differences(
    lane: &Lane,
    steps: &[StepReport],
    site: &Site,
    ignored: &[String],
    removed: &[&str],
) -> Vec<String> {
    let failed: Vec<&StepReport> = steps
        .iter()
        .filter(|step| matches!(step.status, StepStatus::Failed | StepStatus::Errored | StepStatus::TimedOut))
        .collect();
    let mut told = Vec::new();
    let unable = failed.iter().filter_map(|step| {
        let as_failed = StepReport { status: StepStatus::Failed, ..(*step).clone() };
        unable::why(&[as_failed], site.variable("PATH"), lane.network)
    });
    told.extend(unable);
    for step in &failed {
        let files = ignored_in(step, lane, ignored, |path| site.root.join(path).exists());
        if !files.is_empty() {
            let names = files.iter().take(NAMED).cloned().collect::<Vec<_>>();
            told.push(format!(
                "step `{}` reads what git ignores, and the room does not have it: {}; write `include_ignored: [{}]` into the lane",
                step.step,
                names.join(", "),
                names.join(", ")
            ));
        }
        let variables: Vec<&str> = removed
            .iter()
            .copied()
            .filter(|name| has_word(&step.excerpt, name) || has_word(&step.command, name))
            .collect();
        if !variables.is_empty() {
            let names = variables.join(", ");
            told.push(format!(
                "step `{}` names variables that steps of a gate do not have, for they may be secrets: {names}",
                step.step
            ));
        }
    }
    told.dedup();
    told
}

/// The ignored files that a failed step names: in its command, or in a line that says that they are absent.
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
        if path.ends_with('/') {
            return step.command.contains(path) || lines.iter().any(|line| line.contains(path));
        }
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
        let is_long = name.len() >= SHORTEST;
        has_word(&step.command, path.trim_end_matches('/'))
            || lines.iter().any(|line| has_word(line, path.trim_end_matches('/')) || (is_long && has_word(line, name)))
    };
    let is_brought = |path: &str| {
        lane.include_ignored
            .iter()
            .chain(lane.kept_folders())
            .any(|own| Path::new(path).starts_with(own.trim_end_matches('/')))
    };
    let found: BTreeSet<String> = ignored
        .iter()
        .take(MOST_FILES)
        .filter(|path| !is_brought(path) && is_named(path) && is_there(path))
        .map(|path| path.trim_end_matches('/').to_owned())
        .collect();
    found.into_iter().collect()
}

/// The steps of a lane without a network whose commands fetch something, each with the words that do.
pub fn fetching(lane: &Lane) -> Vec<(String, &'static str)> {
    let steps = lane.steps.iter().filter(|_| !lane.network);
    let named = |step: &crate::lane::Step| {
        let run = step.run.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = FETCHING.iter().find(|words| has_word(&run, words))?;
        let is_here = ["localhost", "127.0.0.1"].iter().any(|host| run.contains(host));
        (!is_here).then(|| (step.name.clone(), *words))
    };
    steps.filter_map(named).collect()
}

/// Steps whose commands name files that git ignores and that no room has, each with the path.
pub fn ignored_in_commands(lane: &Lane, ignored: &[String]) -> Vec<(String, String)> {
    let is_brought = |path: &str| {
        lane.include_ignored
            .iter()
            .chain(lane.kept_folders())
            .any(|own| Path::new(path).starts_with(own.trim_end_matches('/')))
    };
    let files =
        || ignored.iter().take(MOST_FILES).map(|path| path.trim_end_matches('/')).filter(|path| !is_brought(path));
    let named = |step: &crate::lane::Step| {
        let found = files().find(|path| has_word(&step.run, path))?;
        Some((step.name.clone(), found.to_owned()))
    };
    lane.steps.iter().filter_map(named).collect()
}

/// Whether a text has a name with no letter of a name beside it.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            !text[..at].ends_with(|c| is_part(c) || c == '.') && !text[at + word.len()..].starts_with(is_part)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::parse;

    fn step(command: &str, excerpt: &str) -> StepReport {
        StepReport {
            lane: "verify".into(),
            step: "test".into(),
            command: command.into(),
            status: StepStatus::Failed,
            tries: 1,
            exit_code: Some(1),
            signal: None,
            duration_ms: 0,
            log: None,
            excerpt: excerpt.into(),
            note: String::new(),
            tests: None,
        }
    }

    #[test]
    fn an_ignored_file_is_named_where_a_step_asks_for_it() {
        let ignored = [".env.test", "data/model.bin", "logs/", "run"].map(str::to_owned);
        let lane = parse("verify", "v.yaml", "include_ignored: [logs]\nsteps: [{ run: x }]").unwrap();
        for (command, excerpt, found) in [
            ("sh t.sh", "cat: .env.test: No such file or directory", &[".env.test"][..]),
            (
                "sh t.sh",
                "FileNotFoundError: [Errno 2] No such file or directory: 'data/model.bin'",
                &["data/model.bin"],
            ),
            ("sh t.sh", "Error: ENOENT: open '/p/data/model.bin'", &["data/model.bin"]),
            (". ./.env.test && true", "", &[".env.test"]),
            ("sh t.sh", "read .env.test: 3 tests failed", &[]),
            ("sh t.sh", "logs: not found", &[]),
            ("sh t.sh", "runner: not found", &[]),
        ] {
            assert_eq!(ignored_in(&step(command, excerpt), &lane, &ignored, |_| true), found, "{command}: {excerpt}");
        }
        let lane = parse("verify", "v.yaml", "steps: [{ name: a, run: 'source ./.env.test' }]").unwrap();
        assert_eq!(fetching(&lane), []);
        let fetches = parse("verify", "v.yaml", "steps: [{ name: a, run: 'npm  ci && npm test' }]").unwrap();
        assert_eq!(fetching(&fetches), [("a".to_owned(), "npm ci")]);
        assert_eq!(ignored_in_commands(&lane, &ignored), [("a".to_owned(), ".env.test".to_owned())]);
    }
}
