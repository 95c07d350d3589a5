//! Compares the final files of a run with the base, for the report and the summary.

use super::effects::EffectRunner;
use crate::error_chain::chain;
use crate::id::TreeId;
use crate::run::{ChangedFile, ChangedLines, Run, TreeDifference};
use crate::workspace::trees::FileDifference;
use tokio_util::sync::CancellationToken;

impl EffectRunner {
    /// Returns the difference between the base and this tree, which is the one that passed or the
    /// final files. Returns `None` without a base or a tree, or if git fails or is too slow.
    pub(super) async fn difference(
        &self,
        run: &Run,
        tree: Option<TreeId>,
        stop: &CancellationToken,
    ) -> Option<Box<TreeDifference>> {
        let (ready, base, tree) = (self.ready.get()?, run.base()?, tree?);
        let compared = tokio::select! {
            biased;
            compared = ready.ground.trees.difference(base, &tree, stop) => compared,
            () = self.stop.haste() => return None,
        };
        match compared {
            Ok(files) => Some(Box::new(TreeDifference::new(files.into_iter().map(|file| self.changed(file))))),
            Err(fault) => {
                tracing::warn!(why = %chain(&fault), "cannot compare the work with the base");
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
