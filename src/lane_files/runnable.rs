//! The check that the steps of a lane can run on this machine.

use super::LaneFilesError;
use crate::lane::{Lane, Step};
use std::path::Path;

/// Checks that the steps of a lane have their folder and the program with which their command
/// begins. `runs` says for each step whether it runs. Checks only steps before which nothing runs,
/// because an earlier step may provide what a later one needs.
///
/// # Errors
/// The first step that cannot run.
pub fn can_run(root: &Path, lane: &Lane, path: &str, runs: &[bool]) -> Result<(), LaneFilesError> {
    let is_first = |number| !lane.before(number).iter().any(|before| runs.get(*before).is_none_or(|runs| *runs));
    let lacking = missing(root, lane, path, runs).into_iter().find(|(number, ..)| is_first(*number));
    lacking.map_or(Ok(()), |(_, step, why)| {
        Err(LaneFilesError::CannotRun { lane: lane.name.clone(), step: step.name.clone(), why })
    })
}

/// Returns the steps that would run but cannot run now, each with its number and the part that it
/// lacks.
pub(super) fn missing<'l>(root: &Path, lane: &'l Lane, path: &str, runs: &[bool]) -> Vec<(usize, &'l Step, String)> {
    let lacks = |(number, step): (usize, &'l Step)| {
        let path = step.env.get("PATH").or_else(|| lane.env.get("PATH")).map_or(path, String::as_str);
        let is_first = number == 0 && lane.setup.is_empty();
        let made_before = if is_first { made_by_nobody(root, step) } else { None };
        // The setup may install programs into the project.
        let may_come = !lane.setup.is_empty()
            && std::env::split_paths(path).any(|folder| folder.is_relative() || folder.starts_with(root));
        let lacking = || if may_come { None } else { not_in_path(root, step, path) };
        made_before.or_else(lacking).map(|why| (number, step, why))
    };
    let run = lane.steps.iter().enumerate().zip(runs).filter(|(_, runs)| **runs);
    run.filter_map(|(step, _)| lacks(step)).collect()
}

/// Returns a message about the folder, or the program with a path, that the first step of a lane
/// lacks.
fn made_by_nobody(root: &Path, step: &Step) -> Option<String> {
    let dir = root.join(step.dir.as_deref().unwrap_or("."));
    if !dir.is_dir() {
        return Some(format!("there is no folder `{}`", step.dir.as_deref().unwrap_or(".")));
    }
    let program = step.program().filter(|program| program.contains('/') && !dir.join(program).exists())?;
    Some(format!("there is no program `{program}`"))
}

/// Returns a message about a program that no folder of the search path has. Relative folders are
/// below the step's folder.
fn not_in_path(root: &Path, step: &Step, path: &str) -> Option<String> {
    let shell = if step.has_plain_shell() { None } else { step.shell.first().map(String::as_str) };
    let own = || step.program().filter(|_| step.is_one_program()); // after `||` or in a pipe, its absence may not count
    let program = shell.or_else(own).filter(|program| !program.contains('/'))?;
    let dir = root.join(step.dir.as_deref().unwrap_or("."));
    let is_there = std::env::split_paths(path).any(|folder| dir.join(folder).join(program).is_file());
    (!is_there).then(|| format!("there is no program `{program}` in PATH ({path})"))
}
