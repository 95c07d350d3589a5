//! The naive gate: it runs the lane's commands in order, where the agent worked and in the current
//! environment. The exit codes decide. A runner around the gate asks git for the changes and
//! commits work that passed.

use crate::attacks::judged::Outcome;
use crate::attacks::oracle;
use crate::attacks::rows::{Book, Work};
use crate::attacks::stage::Stage;
use crate::support::PATIENCE;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;

/// The parts of a lane that the naive gate reads.
#[derive(Debug, Deserialize)]
struct Lane {
    #[serde(default)]
    env: BTreeMap<String, String>,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    run: String,
}

/// Judges the work with the naive gate.
pub(crate) fn judge(book: &Book, work: &Work) -> Outcome {
    let place = tempfile::Builder::new().prefix("attack-").tempdir_in(crate::support::place()).unwrap();
    let stage = Stage::set(work, &place.path().join("stage"));
    stage.shell(&work.sketch, "sketch");
    stage.shell("git status --porcelain", "status");
    let is_green = passes(&stage);
    if is_green {
        stage.shell("git add -A && git commit -q -m 'Verified'", "commit");
    }
    let result = stage.at("workspace/.fledge/result.json");
    let is_harmed = work.harm.as_ref().map(|harm| stage.is_harmed(harm, is_green, &result));
    let is_mended = is_green && oracle::is_mended(&stage, book, work, "HEAD");
    let said = if is_green { String::new() } else { stage.said("step") };
    Outcome { is_green, is_mended, is_harmed, told: said, ..Outcome::default() }
}

fn passes(stage: &Stage) -> bool {
    let task = fs::read_to_string(stage.at("workspace/task.md")).unwrap_or_default();
    let lane = task.lines().find_map(|line| line.strip_prefix("lane: ")).unwrap_or("verify");
    let text = fs::read_to_string(stage.at(&format!("workspace/lanes/{lane}.yaml"))).unwrap_or_default();
    let Ok(lane) = serde_yaml::from_str::<Lane>(&text) else { return false };
    let env: String = lane.env.iter().map(|(name, value)| format!("export {name}='{value}'\n")).collect();
    let line = |step: &Step| format!("{env}{}", step.run);
    lane.steps.iter().all(|step| stage.run(&["sh", "-c", &line(step)], "step", PATIENCE) == Some(0))
}
