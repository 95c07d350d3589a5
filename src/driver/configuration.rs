//! Restores files that configure later runs, if an agent changed them.
//!
//! fledge restores them at the end of the agent's run. If the run was killed before that, the next
//! start in the project restores them before it reads any of them.

use super::delivery::IN_LINE;
use super::effects::EffectRunner;
use super::journal::terms;
use super::worktree::project_of;
use crate::error_chain::chain;
use crate::gate::{self, Gate, RestoredConfiguration};
use crate::store::{RunDir, RunListFilter, RunProperty, Store, write_whole};
use std::fs;
use std::path::{Path, PathBuf};

/// The maximum number of unfinished runs to check.
const MOST: u32 = 100;
/// The maximum number of paths to name.
const NAMED: usize = 10;
/// Marks a killed run whose changes were checked. Later changes do not count as its own.
const RESTORED: &str = "configuration-restored";
/// The file with notes on what fledge restored while the run was not under way, one per line.
const NOTES: &str = "configuration-notes";
/// The prefix of the folders for copies. A number follows.
const ASIDE: &str = "configuration-aside";

impl EffectRunner {
    /// Restores the files that later runs read. Returns notes for people. No process of the agent
    /// may be alive.
    pub(super) async fn put_back_configuration(&self) -> Vec<String> {
        if self.has_left() {
            return earlier(&self.run_dir); // the changes are gone with the worktree
        }
        let (run, root, task) = (self.run_dir.clone(), self.settings.workspace.clone(), self.task.clone());
        let work = move || [earlier(&run), put_back(&run, &root, &task.allow_edit)].concat();
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| vec!["restoring the configuration panicked".into()])
    }
}

/// Restores the configuration that unfinished runs of a project have changed. Handles an
/// interrupted run once. For a run under way, restores what it has changed so far.
///
/// Call this before reading any configuration. Returns notes for people. `workspace` is a canonical
/// path.
pub fn restore_project_configuration(state_dir: &Path, workspace: &Path) -> Vec<String> {
    let Ok(Some(store)) = Store::existing(state_dir, &project_of(state_dir, workspace)) else { return Vec::new() };
    let mut notes = Vec::new();
    for only in [RunProperty::Interrupted, RunProperty::Running] {
        let filter = RunListFilter { limit: MOST, only: Some(only), ..RunListFilter::default() };
        for row in store.runs(&filter).unwrap_or_default() {
            let folder = store.folder(&row.head.id);
            let mark = folder.path().join(RESTORED);
            let is_here = row.head.workspace == workspace.display().to_string();
            if !is_here || (only == RunProperty::Interrupted && mark.exists()) {
                continue;
            }
            let Ok((_, terms)) = terms(&store, &row.head.id) else { continue };
            let put_back = put_back(&folder, workspace, &terms.task.allow_edit);
            keep(&folder, &put_back);
            notes.extend(put_back.into_iter().map(|note| format!("run {}: {note}", row.head.id)));
            if only == RunProperty::Interrupted {
                let _it_is_looked_at_again = write_whole(&mark, &[]);
            }
        }
    }
    notes
}

/// Removes the mark that a run was checked, because the run continues.
pub(super) fn forget_restored(run: &RunDir) {
    let _there_may_be_none = fs::remove_file(run.path().join(RESTORED));
}

/// Keeps notes on restored files for the run's own report.
fn keep(run: &RunDir, notes: &[String]) {
    if !notes.is_empty() {
        let text = [earlier(run), notes.to_vec()].concat().join("\n");
        let _it_was_said_at_least = write_whole(&run.path().join(NOTES), text.as_bytes());
    }
}

/// Returns the notes on files restored before the run continued.
fn earlier(run: &RunDir) -> Vec<String> {
    let text = fs::read_to_string(run.path().join(NOTES)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn put_back(run: &RunDir, root: &Path, allow_edit: &[String]) -> Vec<String> {
    // Without a frozen gate, no agent has started.
    let Ok(kept) = fs::read(run.gate()) else { return Vec::new() };
    let aside = aside(run);
    match gate::put_back(&kept, root, allow_edit, &aside) {
        Ok(done) => [warnings(done, &aside), made(&kept, run, root, allow_edit)].concat(),
        Err(fault) => {
            let path = run.gate();
            vec![format!("cannot check for configuration changes: {}: {}", path.display(), chain(&fault))]
        }
    }
}

/// Makes later runs ignore what the agent created where dependencies are installed. Returns notes
/// for people.
fn made(kept: &[u8], run: &RunDir, root: &Path, allow_edit: &[String]) -> Vec<String> {
    if run.path().join(IN_LINE).exists() {
        return Vec::new();
    }
    let Ok(gate) = Gate::thaw(kept, root, allow_edit) else { return Vec::new() };
    match gate.installed.list_made(root, run.project()) {
        Ok(paths) if paths.is_empty() => Vec::new(),
        Ok(paths) => vec![format!(
            "new in folders of installed dependencies, and not used by any check: {}; \
             remove it, or install it yourself",
            paths.join(", ")
        )],
        Err(fault) => {
            vec![format!("cannot list new files in folders of installed dependencies: {}", chain(&fault))]
        }
    }
}

/// Returns a folder that does not exist yet, so that no copy replaces another one.
fn aside(run: &RunDir) -> PathBuf {
    let numbered = (1_u32..).map(|number| run.path().join(format!("{ASIDE}-{number}")));
    numbered.into_iter().find(|folder| !folder.exists()).unwrap_or_else(|| run.path().join(ASIDE))
}

fn warnings(RestoredConfiguration { findings, left }: RestoredConfiguration, aside: &Path) -> Vec<String> {
    if findings.is_empty() {
        return Vec::new();
    }
    let mut named: Vec<String> =
        findings.iter().take(NAMED).map(|finding| format!("{} ({})", finding.path, finding.change)).collect();
    if findings.len() > NAMED {
        named.push(format!("{} more", findings.len() - NAMED));
    }
    let kept =
        if aside.exists() { format!("; the changed versions are kept in {}", aside.display()) } else { String::new() };
    let first = format!(
        "fledge restored configuration files that changed during the run: {}{kept}; \
         `allow_edit` lets a task change them",
        named.join(", ")
    );
    [first].into_iter().chain(left).collect()
}
