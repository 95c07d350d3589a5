//! What an agent has written for later runs to read is put back: at the end of its run, and where a run was killed before that, by the next
//! start in the same project before it reads any of it.

use super::in_line::IN_LINE;
use super::perform::Hands;
use super::resume::terms;
use super::worktree::project_of;
use crate::causes::chain;
use crate::gate::{self, Gate, PutBack};
use crate::store::{Filter, Only, RunDir, Store, write_whole};
use std::fs;
use std::path::{Path, PathBuf};

/// The most unfinished runs that are looked at.
const MOST: u32 = 100;
/// Paths that are named.
const NAMED: usize = 10;
/// Says that what a run has left was looked at after it was killed: what is written later is not its own.
const SETTLED: &str = "configuration-settled";
/// What was put back while the run was not under way, a line each.
const NOTES: &str = "configuration-notes";
/// Where copies go, with a number behind it.
const ASIDE: &str = "configuration-aside";

impl Hands {
    /// Puts back what later runs read; gives what people should know of it. Nobody of the agent may be alive.
    pub(super) async fn put_back_configuration(&self) -> Vec<String> {
        if self.has_left() {
            return earlier(&self.run_dir); // with the worktree all that was written there is gone
        }
        let (run, root, task) = (self.run_dir.clone(), self.settings.workspace.clone(), self.task.clone());
        let work = move || [earlier(&run), put_back(&run, &root, &task.allow_edit)].concat();
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| vec!["putting configuration back panicked".into()])
    }
}

/// Puts back what runs have left of the configuration of a project that did not come to their end, each once; of those that are under way
/// what they have written so far. To be asked for before any of it is read; gives what people should know of it. `workspace` is a canonical
/// path.
pub fn settle_configuration(state_dir: &Path, workspace: &Path) -> Vec<String> {
    let Ok(Some(store)) = Store::existing(state_dir, &project_of(state_dir, workspace)) else { return Vec::new() };
    let mut notes = Vec::new();
    for only in [Only::Interrupted, Only::Running] {
        let filter = Filter { limit: MOST, only: Some(only), ..Filter::default() };
        for row in store.runs(&filter).unwrap_or_default() {
            let folder = store.folder(&row.head.id);
            let settled = folder.path().join(SETTLED);
            let is_here = row.head.workspace == workspace.display().to_string();
            if !is_here || (only == Only::Interrupted && settled.exists()) {
                continue;
            }
            let Ok((_, terms)) = terms(&store, &row.head.id) else { continue };
            let put_back = put_back(&folder, workspace, &terms.task.allow_edit);
            keep(&folder, &put_back);
            notes.extend(put_back.into_iter().map(|note| format!("run {}: {note}", row.head.id)));
            if only == Only::Interrupted {
                let _it_is_looked_at_again = write_whole(&settled, &[]);
            }
        }
    }
    notes
}

/// Forgets that a run was looked at: it goes on.
pub(super) fn unsettle(run: &RunDir) {
    let _there_may_be_none = fs::remove_file(run.path().join(SETTLED));
}

/// Keeps what was put back before the run went on: its own report is to say it too.
fn keep(run: &RunDir, notes: &[String]) {
    if !notes.is_empty() {
        let text = [earlier(run), notes.to_vec()].concat().join("\n");
        let _it_was_said_at_least = write_whole(&run.path().join(NOTES), text.as_bytes());
    }
}

/// What was put back before the run went on.
fn earlier(run: &RunDir) -> Vec<String> {
    let text = fs::read_to_string(run.path().join(NOTES)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn put_back(run: &RunDir, root: &Path, allow_edit: &[String]) -> Vec<String> {
    // Before there is a frozen gate there was no agent.
    let Ok(kept) = fs::read(run.gate()) else { return Vec::new() };
    let aside = aside(run);
    match gate::put_back(&kept, root, allow_edit, &aside) {
        Ok(done) => [told(done, &aside), made(&kept, run, root, allow_edit)].concat(),
        Err(fault) => {
            let path = run.gate();
            vec![format!("whether configuration was changed cannot be told: {}: {}", path.display(), chain(&fault))]
        }
    }
}

/// Has later runs leave out what the agent has made where dependencies are looked for; gives what people should know of it.
fn made(kept: &[u8], run: &RunDir, root: &Path, allow_edit: &[String]) -> Vec<String> {
    if run.path().join(IN_LINE).exists() {
        return Vec::new();
    }
    let Ok(gate) = Gate::thaw(kept, root, allow_edit) else { return Vec::new() };
    match gate.installed.list_made(root, run.project()) {
        Ok(paths) if paths.is_empty() => Vec::new(),
        Ok(paths) => vec![format!(
            "made during the run where dependencies are installed, and not used by any check: {}; remove it, or install it yourself",
            paths.join(", ")
        )],
        Err(fault) => {
            vec![format!("what was made where dependencies are installed cannot be listed: {}", chain(&fault))]
        }
    }
}

/// A folder that is not there yet: no copy takes the place of another one.
fn aside(run: &RunDir) -> PathBuf {
    let numbered = (1_u32..).map(|number| run.path().join(format!("{ASIDE}-{number}")));
    numbered.into_iter().find(|folder| !folder.exists()).unwrap_or_else(|| run.path().join(ASIDE))
}

fn told(PutBack { findings, left }: PutBack, aside: &Path) -> Vec<String> {
    if findings.is_empty() {
        return Vec::new();
    }
    let mut named: Vec<String> =
        findings.iter().take(NAMED).map(|finding| format!("{} ({})", finding.path, finding.change)).collect();
    if findings.len() > NAMED {
        named.push(format!("{} more", findings.len() - NAMED));
    }
    let kept =
        if aside.exists() { format!("; what stood there is kept in {}", aside.display()) } else { String::new() };
    let first = format!(
        "what later runs or git go by was written during the run, and is as it was before: {}{kept}; `allow_edit` lets a task change it",
        named.join(", ")
    );
    [first].into_iter().chain(left).collect()
}
