//! Changes of the workspace during a run that are in no tree. They are reported at the end, because
//! no gate has judged them and they are not delivered.

use super::effects::EffectRunner;
use crate::error_chain::chain;
use crate::run::Run;
use crate::verdict::{IgnoredFile, OutsidePath, OutsideTree};
use crate::workspace::trees::OutsideFiles;
use tokio_util::sync::CancellationToken;

/// The reason for a file that was ignored at the base and is not any more.
const HIDDEN: &str = "git ignored this path when the run began; add the file yourself";
/// The reason for an ignored file that a file tool wrote.
const UNSEEN: &str = "git ignores this path";
/// The reason for a path that a new line of the work ignores.
const COVERED: &str = "git ignores this path because of a new ignore rule";

impl EffectRunner {
    /// Finds changes since the gate was frozen that are in no tree. Returns a note if the list is
    /// not complete. No process of the agent may be alive.
    pub(super) async fn outside_tree(&self, run: &Run, stop: &CancellationToken) -> (OutsideTree, Option<String>) {
        let nothing = |note| (OutsideTree::default(), note);
        let since = self.run_dir.gate().metadata().and_then(|meta| meta.modified());
        let (Some(ready), Ok(since)) = (self.ready.get().filter(|_| !self.has_left()), since) else {
            return nothing(None); // no agent has begun, or its worktree is gone
        };
        let written: Vec<String> =
            run.result().map_or(Vec::new(), |it| it.files_changed.into_iter().map(|file| file.path).collect());
        let stop = stop.child_token();
        let looked = tokio::select! {
            biased;
            looked = ready.ground.outside(since, &written, &stop) => looked,
            () = self.stop.haste() => {
                stop.cancel();
                return nothing(Some("changed ignored files are not listed: the run had to stop".into()));
            }
        };
        match looked {
            Ok(outside) => {
                let note = outside.is_cut.then(|| "too many ignored files: not all changed ones are listed".to_owned());
                (to_tree(outside), note)
            }
            Err(fault) => nothing(Some(format!("cannot list changed ignored files: {}", chain(&fault)))),
        }
    }
}

fn to_tree(outside: OutsideFiles) -> OutsideTree {
    let left_out = outside.hidden.iter().map(|path| OutsidePath::file(path, HIDDEN));
    let unseen = outside.unseen.iter().map(|path| OutsidePath::file(path, UNSEEN));
    let is_unseen = |path: &&String| outside.unseen.contains(path);
    let covered = outside.covered.iter().filter(|path| !is_unseen(path)).map(|path| OutsidePath::file(path, COVERED));
    let left_out: Vec<OutsidePath> = left_out.chain(unseen).chain(covered).collect();
    let is_named = |path: &String| outside.unseen.contains(path) || outside.covered.contains(path);
    let ignored = outside.ignored.into_iter().filter(|(path, ..)| !is_named(path));
    OutsideTree::new(ignored.map(|(path, root, what)| IgnoredFile { path, root, what }).collect(), left_out)
}
