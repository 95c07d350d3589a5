//! What changed in the workspace during a run and is in no tree: told at the end, since nobody has judged it and it is not delivered.

use super::perform::Hands;
use crate::causes::chain;
use crate::run::Run;
use crate::verdict::{IgnoredFile, OutsidePath, OutsideTree};
use crate::workspace::trees::Outside;
use tokio_util::sync::CancellationToken;

/// Why the tree does not have a file that the base ignored.
const HIDDEN: &str = "git ignored this path when the run began; add the file yourself";
/// Why the tree does not have a file that a file tool wrote.
const UNSEEN: &str = "git ignores this path";
/// The reason for a path that a line of the work ignores.
const COVERED: &str = "git ignores this path by a line that is new";

impl Hands {
    /// Looks for what changed since the gate was frozen and is in no tree; and gives a note where that could not be looked at. Nobody of
    /// the agent may be alive.
    pub(super) async fn outside_tree(&self, run: &Run, stop: &CancellationToken) -> (OutsideTree, Option<String>) {
        let nothing = |note| (OutsideTree::default(), note);
        let since = self.run_dir.gate().metadata().and_then(|meta| meta.modified());
        let (Some(ready), Ok(since)) = (self.ready.get().filter(|_| !self.has_left()), since) else {
            return nothing(None); // before the agent began
        };
        let written: Vec<String> =
            run.result().map_or(Vec::new(), |it| it.files_changed.into_iter().map(|file| file.path).collect());
        let stop = stop.child_token();
        let looked = tokio::select! {
            biased;
            looked = ready.ground.outside(since, &written, &stop) => looked,
            () = self.stop.haste() => {
                stop.cancel();
                return nothing(Some("ignored files that changed are not listed: the run had to stop".into()));
            }
        };
        match looked {
            Ok(outside) => {
                let note =
                    outside.is_cut.then(|| "there are too many ignored files to list all that changed".to_owned());
                (told(outside), note)
            }
            Err(fault) => nothing(Some(format!("ignored files that changed are not listed: {}", chain(&fault)))),
        }
    }
}

fn told(outside: Outside) -> OutsideTree {
    let left_out = outside.hidden.iter().map(|path| OutsidePath::file(path, HIDDEN));
    let unseen = outside.unseen.iter().map(|path| OutsidePath::file(path, UNSEEN));
    let is_unseen = |path: &&String| outside.unseen.contains(path);
    let covered = outside.covered.iter().filter(|path| !is_unseen(path)).map(|path| OutsidePath::file(path, COVERED));
    let left_out: Vec<OutsidePath> = left_out.chain(unseen).chain(covered).collect();
    let is_named = |path: &String| outside.unseen.contains(path) || outside.covered.contains(path);
    let ignored = outside.ignored.into_iter().filter(|(path, ..)| !is_named(path));
    OutsideTree::new(ignored.map(|(path, root, what)| IgnoredFile { path, root, what }).collect(), left_out)
}
