//! The generated artifacts of a run: its journal, its report as a page, and its patch.

use super::{Engine, EngineError};
use crate::driver::{export, kept_as, story, terms, trees};
use crate::id::{RunId, TreeId};
use crate::report::job;
use crate::run::TaskResult;
use crate::store::{Store, StoreError, read_text};
use crate::workspace::trees::{DiffForm, TreesError};
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// The size limit of one download, in bytes.
pub(in crate::serve) const LARGEST: usize = 64 * 1024 * 1024;

/// The workspace of a run's trees, and the trees that the journal names.
struct Trees {
    workspace: PathBuf,
    base: Option<TreeId>,
    tree: Option<TreeId>,
}

impl Engine {
    /// Returns the journal of a run in the format of `fledge runs export`; `None` if it is too
    /// large.
    ///
    /// # Errors
    /// If the run does not exist, or the journal cannot be read.
    pub async fn journal(&self, run: &RunId) -> Result<Option<String>, EngineError> {
        let run = run.clone();
        self.engine_state
            .stored(move |store| {
                let (mut text, row) = (String::new(), store.run(&run)?);
                let put = |line: &str| {
                    text.push_str(line);
                    text.push('\n');
                    if text.len() > LARGEST { Err(Stopped::TooLarge) } else { Ok(()) }
                };
                match export(store, &row, put) {
                    Ok(()) => Ok(Some(text)),
                    Err(Stopped::TooLarge) => Ok(None),
                    Err(Stopped::Fault(fault)) => Err(fault),
                }
            })
            .await
    }

    /// Returns the report of a run as Markdown; `None` if it has no report.
    ///
    /// # Errors
    /// If the report cannot be read.
    pub async fn page(&self, run: &RunId) -> Result<Option<String>, EngineError> {
        let run = run.clone();
        self.engine_state
            .stored(move |store| {
                let text = read_text(&store.folder(&run).report(), LARGEST)?;
                let result = text.and_then(|text| serde_json::from_str::<TaskResult>(&text).ok());
                Ok(result.map(|result| job::page(&result, &job::judged(&result, &job::lanes(&result), ""))))
            })
            .await
    }

    /// Returns the changes of a run as a patch for `git apply`; `None` if its trees are not kept.
    ///
    /// # Errors
    /// If the run does not exist, or git fails.
    pub async fn patch(&self, run: &RunId) -> Result<Option<Vec<u8>>, EngineError> {
        let wanted = run.clone();
        let Trees { workspace, base, tree } = self.engine_state.stored(move |store| trees_of(store, &wanted)).await?;
        let (stop, path) = (CancellationToken::new(), self.engine_state.source.search_path());
        let _ends_with_the_request = stop.clone().drop_guard();
        let trees = trees(&self.engine_state.state_dir, &workspace, &path, &stop).await.map_err(fault)?;
        let kept = async |what: &str| trees.kept(&kept_as(run, what), &stop).await.map_err(fault);
        let base = if base.is_some() { base } else { kept("base").await? };
        let tree = if tree.is_some() { tree } else { kept("candidate").await? };
        let (Some(base), Some(tree)) = (base, tree) else { return Ok(None) };
        trees.diff(&base, &tree, DiffForm::Whole, LARGEST, &stop).await.map(Some).map_err(fault)
    }
}

fn trees_of(store: &Store, run: &RunId) -> Result<Trees, EngineError> {
    let (row, terms) = terms(store, run)?;
    let (story, fault) = story(store, &row);
    fault.map_or(Ok(()), Err)?;
    let home = PathBuf::from(&row.head.workspace);
    // The checkout has the trees of all its runs, even if the worktree is gone.
    let workspace = terms.worktree.map_or(home, |worktree| worktree.project);
    let tree = story.run.result().and_then(|result| result.tree);
    Ok(Trees { workspace, base: story.run.base().cloned(), tree })
}

fn fault(fault: TreesError) -> EngineError {
    EngineError::Trees(fault)
}

/// The reason why an export of a journal stopped early.
enum Stopped {
    TooLarge,
    Fault(EngineError),
}

impl From<crate::driver::ResumeError> for Stopped {
    fn from(fault: crate::driver::ResumeError) -> Self {
        Self::Fault(fault.into())
    }
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}
