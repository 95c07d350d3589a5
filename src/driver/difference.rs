//! Compares what a run left with the tree before the agent, for the report and the summary.

use super::perform::Hands;
use crate::causes::chain;
use crate::id::TreeId;
use crate::run::{ChangedFile, ChangedLines, Difference, Run};
use crate::workspace::trees::FileDifference;
use tokio_util::sync::CancellationToken;

impl Hands {
    /// The difference between the base and this tree: the one that passed, or the files as the run left them. `None` where there is no base
    /// or no tree, or git does not say it in time.
    pub(super) async fn difference(
        &self,
        run: &Run,
        tree: Option<TreeId>,
        stop: &CancellationToken,
    ) -> Option<Box<Difference>> {
        let (ready, base, tree) = (self.ready.get()?, run.base()?, tree?);
        let compared = tokio::select! {
            biased;
            compared = ready.ground.trees.difference(base, &tree, stop) => compared,
            () = self.stop.haste() => return None,
        };
        match compared {
            Ok(files) => Some(Box::new(Difference::new(files.into_iter().map(|file| self.changed(file))))),
            Err(fault) => {
                tracing::warn!(why = %chain(&fault), "the difference between the base and the work is not known");
                None
            }
        }
    }

    fn changed(&self, file: FileDifference) -> ChangedFile {
        let masked = |path: String| self.settings.secrets.hidden(&path).unwrap_or(path);
        let mode = |mode: u32| (mode != 0).then(|| format!("{mode:06o}"));
        ChangedFile {
            path: masked(file.path),
            from: file.from.map(masked),
            mode_before: mode(file.from_mode),
            mode: mode(file.to_mode),
            lines: file.lines.map(|(added, removed)| ChangedLines { added, removed }),
        }
    }
}
