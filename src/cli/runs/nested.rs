//! Lines about a sub-agent within the story of its run. Each line begins with the sub-agent's path.

use super::super::paint::Tone;
use super::super::steps::StyledLine;
use super::scenes::{DetailLevel, scene_lines};
use crate::report::story::{Scene, SceneKind};
use crate::verdict::Reason;

/// The width of the mark before each line without the path, in columns.
const MARK: usize = 5;

/// Returns the lines of a scene of a sub-agent; `of` is its path.
pub(super) fn nested(of: &str, scene: &Scene, scale: &DetailLevel) -> Vec<StyledLine> {
    let mark = format!("  {of} ┆ ");
    let inside = DetailLevel { width: scale.width.map(|width| width.saturating_sub(of.len() + MARK)), ..*scale };
    let lines = match &scene.what {
        SceneKind::Began { title, .. } => vec![vec![(Tone::Strong, format!("started: {}", inside.fit(title, 8)))]],
        SceneKind::Ended { reason: Reason::Skipped, .. } => vec![vec![(Tone::Strong, "done".to_owned())]],
        SceneKind::Ended { message, .. } => vec![vec![(Tone::Strong, format!("ended: {}", inside.fit(message, 8)))]],
        SceneKind::Planned { .. } | SceneKind::Attempt { .. } => Vec::new(),
        _ => scene_lines(&Scene { of: None, ..scene.clone() }, &inside),
    };
    let marked = |line: StyledLine| [vec![(Tone::Faint, mark.clone())], line].concat();
    lines.into_iter().map(marked).collect()
}
