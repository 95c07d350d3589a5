//! The trial of the checks for `fledge init`: by hand in the unchanged checkout, and with the
//! written files in a clean room.

use super::super::failure::CliError;
use super::super::lane_trial::{LaneTrial, RoomResult};
use super::super::paint::{self, Tone};
use super::{LANE, ignored};
use crate::config::EnvironmentLayer;
use crate::driver::StopToken;
use crate::gate;
use crate::lane::detect::{DETECTED_LANE, DetectedLane};
use crate::lane::{Lane, Step, parse};
use crate::report::seconds;
use crate::store::{read_text, write_shared};
use crate::verdict::{StepReport, StepStatus};
use ignore::WalkBuilder;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The largest lane to read back, in bytes.
const MOST: usize = 1 << 20;
/// The maximum number of files to search for new files of checks.
const MOST_FILES: usize = 100_000;
/// The maximum number of files to name.
const NAMED: usize = 5;
/// The maximum number of characters to show of a line of output.
const LONGEST: usize = 200;
/// Words of lines about an error, in lower case.
const ERRORS: [&str; 6] = ["error", "fail", "not found", "no such", "cannot", "can't"];
/// Beginnings of lines, in lower case, with which a program reports the failure of a program that
/// it started.
const STARTERS: [&str; 5] = ["make", "npm ", "ninja:", "error: recipe", "task: failed"];
/// The project's own Prettier.
const PRETTIER: &str = "node_modules/.bin/prettier";
/// Tools that check files of every kind, each with the place for paths to ignore.
const IGNORED_BY: [(&str, &str); 5] = [
    ("prettier", ".prettierignore"),
    ("yamllint", "`ignore` in .yamllint"),
    ("markdownlint", ".markdownlintignore"),
    ("eslint", "`ignores` in the configuration of ESLint"),
    ("biome", "`files` in biome.json"),
];

/// Runs the checks by hand, calls `write`, and runs the checks in a clean room. Shows both results,
/// and changes the lane for the failures. `write` writes the files and returns the names of the new
/// ones. Returns true if a check failed that `fledge fix` can repair.
pub(super) async fn run(
    root: &Path,
    mut detected: DetectedLane,
    write: impl FnOnce(&DetectedLane) -> Result<Vec<String>, CliError>,
    environment: &EnvironmentLayer,
    stop: &StopToken,
) -> Result<bool, CliError> {
    let trial = LaneTrial::start(root, environment, stop)?;
    say_place("by hand");
    let before = files(root);
    let by_hand = trial.by_hand(lane_of(&detected)?, "by-hand").await?;
    let mut remarks: Vec<String> = left_behind(root, &before).into_iter().collect();
    let env = environment.own_env();
    let (amended, has_failed) = amend_by_hand(&mut detected, &by_hand, env.get("PATH").map_or("", String::as_str));
    remarks.extend(amended);
    let written = write(&detected)?;
    format(&trial, root, &written).await?;
    say_place("in a clean room");
    let mut file = LaneFile { trial: &trial, root, page: detected.yaml(), text: read(root) };
    let known = detected.remarks.len();
    let room = trial.in_room(DETECTED_LANE).await?;
    let room = ignored::include(&mut file, &mut detected, &by_hand, room).await?;
    let RoomResult { steps: in_room, doubts, .. } = room;
    let room = in_room.as_deref().unwrap_or_default();
    let blamed = broken_by_files(&trial, &detected, (&by_hand, room)).await?;
    remarks.extend(detected.remarks.iter().skip(known).cloned());
    remarks.extend(blamed.iter().map(|step| blame(step, &written)));
    remarks.extend(amend_in_room(&mut detected, &by_hand, room, &blamed));
    table(&by_hand, &in_room);
    remarks.extend(doubts.iter().map(|doubt| format!("in a clean room: {doubt}")));
    file.amend(&detected).await?;
    paint::say(&remarks);
    Ok(has_failed)
}

/// The file of the lane, as last written.
pub(super) struct LaneFile<'f> {
    pub(super) trial: &'f LaneTrial<'f>,
    pub(super) root: &'f Path,
    page: String,
    text: Option<String>,
}

impl LaneFile<'_> {
    /// Writes the current lane, unless the file was edited meanwhile. Returns true if it wrote the
    /// file.
    pub(super) async fn amend(&mut self, detected: &DetectedLane) -> Result<bool, CliError> {
        let page = detected.yaml();
        if page == self.page || read(self.root) != self.text {
            return Ok(false);
        }
        write_shared(&self.root.join(LANE), page.as_bytes()).map_err(CliError::own)?;
        format(self.trial, self.root, &[LANE.to_owned()]).await?;
        (self.page, self.text) = (page, read(self.root));
        paint::line(&[(Tone::Good, "✓ amended "), (Tone::Plain, LANE)]);
        Ok(true)
    }
}

pub(super) fn say_place(place: &str) {
    paint::line(&[(Tone::Faint, &format!("running the checks {place} (--no-check skips this)"))]);
}

fn lane_of(detected: &DetectedLane) -> Result<Lane, CliError> {
    detected.lane().map_err(CliError::input)
}

fn read(root: &Path) -> Option<String> {
    read_text(&root.join(LANE), MOST).ok().flatten()
}

/// Returns the files of a project that git does not ignore.
fn files(root: &Path) -> BTreeSet<PathBuf> {
    let walk =
        WalkBuilder::new(root).hidden(false).require_git(false).filter_entry(|it| it.file_name() != ".git").build();
    let files = walk.flatten().take(MOST_FILES).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    files.map(ignore::DirEntry::into_path).collect()
}

/// Returns a remark on the files that the checks left in the checkout.
fn left_behind(root: &Path, before: &BTreeSet<PathBuf>) -> Option<String> {
    let after = files(root);
    let new: Vec<&PathBuf> = after.difference(before).collect();
    let names = new.iter().take(NAMED).map(|path| path.strip_prefix(root).unwrap_or(path).display().to_string());
    let names: Vec<String> = names.collect();
    let more = if new.len() > NAMED { format!(" and {} more", new.len() - NAMED) } else { String::new() };
    let names = names.join(", ");
    (!new.is_empty()).then(|| {
        format!("the checks left files in the checkout: {names}{more}; remove them, or add them to .gitignore")
    })
}

/// Formats the new files with the project's own Prettier.
async fn format(trial: &LaneTrial<'_>, root: &Path, written: &[String]) -> Result<(), CliError> {
    if written.is_empty() || !root.join(PRETTIER).is_file() {
        return Ok(());
    }
    let yaml = format!("steps: [{{ name: format, run: '{PRETTIER} --write {}' }}]", written.join(" "));
    let lane = parse(DETECTED_LANE, LANE, &yaml).map_err(CliError::own)?;
    trial.by_hand(lane, "format").await.map(drop)
}

/// Returns the lints that passed in the unchanged checkout and fail there now because of the
/// written files.
async fn broken_by_files(
    trial: &LaneTrial<'_>,
    detected: &DetectedLane,
    (by_hand, in_room): (&[StepReport], &[StepReport]),
) -> Result<Vec<StepReport>, CliError> {
    let lane = lane_of(detected)?;
    let has_passed = |steps: &[StepReport], name: &str| {
        steps.iter().any(|step| step.step == name && step.status == StepStatus::Passed)
    };
    let is_doubtful = |step: &&Step| {
        detected.is_lint(&step.name) && has_passed(by_hand, &step.name) && !has_passed(in_room, &step.name)
    };
    let alone = |step: &Step| Step {
        after: Vec::new(),
        joints: Vec::new(),
        needs: Vec::new(),
        deps: Vec::new(),
        ..step.clone()
    };
    let steps: Vec<Step> = lane.steps.iter().filter(is_doubtful).map(alone).collect();
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let ran = trial.by_hand(Lane { steps, joints: Vec::new(), ..lane }, "again").await?;
    Ok(ran.into_iter().filter(|step| step.status.is_failure()).collect())
}

/// Names the written files that a lint complains about, and the place to ignore them.
fn blame(step: &StepReport, written: &[String]) -> String {
    let named: Vec<&str> = written.iter().map(String::as_str).filter(|name| step.excerpt.contains(name)).collect();
    let names = if named.is_empty() { written.join(", ") } else { named.join(", ") };
    let said = format!("{} {}", step.command, step.excerpt).to_lowercase();
    let ignored = IGNORED_BY.iter().find(|(tool, _)| said.contains(tool)).map(|(_, place)| *place);
    let ignored = ignored.unwrap_or("what the tool ignores");
    format!("`{}` fails now but passed before `fledge init` wrote its files: add {names} to {ignored}", step.step)
}

/// Removes steps from the lane that cannot run in the unchanged checkout; makes the failures of
/// lints there reports only. Returns remarks for people, and true if a step failed that
/// `fledge fix` can repair. `path` is the search path of the steps.
fn amend_by_hand(detected: &mut DetectedLane, by_hand: &[StepReport], path: &str) -> (Vec<String>, bool) {
    let (mut remarks, mut has_failed) = (Vec::new(), false);
    for step in by_hand.iter().filter(|step| step.status.is_failure()) {
        let name = step.step.as_str();
        let lacked = gate::lacks(step, path);
        let is_unable = step.status == StepStatus::Errored || matches!(step.exit_code, Some(126 | 127));
        let is_unable = is_unable || lacked.is_some();
        let why = lacked.unwrap_or_else(|| last_line(step));
        if is_unable && detected.leave_out(name, &format!("it cannot run here: {why}")) {
            remarks.push(format!("left out `{name}`, which cannot run here: {why}"));
        } else if is_unable {
            let remark = format!("`{name}` cannot run here: {why}; install the project's dependencies and tools");
            detected.remarks.push(remark.clone());
            remarks.push(remark);
        } else if detected.is_lint(name) {
            detected.let_fail(name, "it failed when this was written");
            remarks.push(format!("`{name}` fails on the current project, so the lane only reports its failure"));
        } else {
            has_failed = true;
            detected.remarks.push(format!("`{name}` failed when this was written ({why})"));
            remarks.push(format!(
                "`{name}` fails on the current project ({why}): no run is verified until `{name}` passes"
            ));
        }
    }
    (remarks, has_failed)
}

/// Removes steps from the lane that pass by hand and fail in a clean room, except those that the
/// written files broke. Returns remarks for people.
fn amend_in_room(
    detected: &mut DetectedLane,
    by_hand: &[StepReport],
    in_room: &[StepReport],
    blamed: &[StepReport],
) -> Vec<String> {
    let has_passed = |step: &&StepReport| {
        by_hand.iter().any(|by_hand| by_hand.step == step.step && by_hand.status == StepStatus::Passed)
    };
    let is_blamed = |step: &&StepReport| blamed.iter().any(|other| other.step == step.step);
    let failed = in_room.iter().filter(|step| step.status.is_failure());
    let mut remarks = Vec::new();
    for step in failed.filter(has_passed).filter(|step| !is_blamed(step)) {
        let (name, why) = (step.step.as_str(), last_line(step));
        if detected.leave_out(name, &format!("it passes by hand and fails in a clean room: {why}")) {
            remarks.push(format!("left out `{name}`, which fails in a clean room: {why}"));
        } else {
            let remark = format!(
                "`{name}` passes by hand but fails in a clean room ({why}): no run is verified until it passes there"
            );
            detected.remarks.push(remark.clone());
            remarks.push(remark);
        }
    }
    remarks
}

/// Shows the outcome of each step by hand and in the room.
fn table(by_hand: &[StepReport], in_room: &Result<Vec<StepReport>, String>) {
    let ended = |step: &StepReport| format!("{} {}", step.status.as_str().replace('_', " "), seconds(step.duration_ms));
    let width = |all: &mut dyn Iterator<Item = usize>| all.max().unwrap_or(0);
    let first = width(&mut by_hand.iter().map(|step| step.step.chars().count())).max("check".len());
    let second = width(&mut by_hand.iter().map(|step| ended(step).chars().count())).max("by hand".len());
    paint::line(&[(Tone::Strong, &format!("  {:<first$}  {:<second$}  in a clean room", "check", "by hand"))]);
    let mut fails_in_room = false;
    for step in by_hand {
        let room = in_room.iter().flatten().find(|room| room.step == step.step);
        let is_worse = room.is_some_and(|room| room.status.is_failure() && !step.status.is_failure());
        let cell = room.map_or_else(|| "not tried".to_owned(), ended);
        let tone = if is_worse { Tone::Warn } else { Tone::Plain };
        let start = format!("  {:<first$}  {:<second$}  ", step.step, ended(step));
        paint::line(&[(Tone::Plain, start), (tone, cell)]);
        if let Some(room) = room.filter(|_| is_worse) {
            paint::line(&[(Tone::Faint, format!("  {:<first$}  in the room: {}", "", last_line(room)))]);
        }
        fails_in_room |= is_worse;
    }
    if let Err(why) = in_room {
        paint::say([&format!("cannot create a clean room: {why}")]);
    } else if fails_in_room {
        paint::say([&"runs are judged in a clean room: `fledge lanes run verify --clean` shows the full output of the checks there; see `fledge docs explanation/rooms`".to_owned()]);
    }
}

/// Returns the reason why the step did not run, or the last line of its output that tells of an
/// error, else the last line.
fn last_line(step: &StepReport) -> String {
    let tells = |line: &&str| {
        let small = line.to_lowercase();
        ERRORS.iter().any(|sign| small.contains(sign)) && !STARTERS.iter().any(|start| small.starts_with(start))
    };
    let mut lines = step.excerpt.trim_end().lines().map(str::trim).rev();
    let last = lines.clone().next().unwrap_or("(no output)");
    let said = if step.note.is_empty() { lines.find(tells).unwrap_or(last) } else { &step.note };
    // Test runners centre their summary in a rule: `==== 1 failed ====`.
    let text = said.trim().trim_matches(['=', '_', ' ']);
    (if text.is_empty() { said.trim() } else { text }).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::step_report;

    #[test]
    fn the_line_that_tells_of_an_error_is_shown_and_else_the_last() {
        for (printed, line) in [
            ("a\nError: Cannot find module 'x'\n  code: 1\n}\n\nNode.js v20.20.2\n", "Error: Cannot find module 'x'"),
            (
                "cat: .env.test: No such file or directory\nmake: *** [Makefile:2: test] Error 1\n",
                "cat: .env.test: No such file or directory",
            ),
            ("one\ntwo\n", "two"),
            ("make: *** [Makefile:2: test] Error 1\n", "make: *** [Makefile:2: test] Error 1"),
            ("", "(no output)"),
            ("==== 1 failed in 0.04s ====\n", "1 failed in 0.04s"),
        ] {
            assert_eq!(last_line(&step_report("x", StepStatus::Failed, printed)), line);
        }
        let unrun = StepReport { note: "timed out".into(), ..step_report("x", StepStatus::TimedOut, "error") };
        assert_eq!(last_line(&unrun), "timed out");
    }
}
