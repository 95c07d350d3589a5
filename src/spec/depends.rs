//! What `depends_on` says: which module an item means, and circles.

use super::Spec;
use std::collections::BTreeSet;

/// The spec that an item of `depends_on` means: by its module's name, or by the path of its file or folder.
pub(super) fn meant<'s>(specs: impl IntoIterator<Item = &'s Spec>, item: &str) -> Option<usize> {
    let is = |spec: &Spec| {
        let folder = spec.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        spec.module == item || spec.path == item || folder == item.trim_end_matches('/')
    };
    specs.into_iter().position(is)
}

/// Circles, none of which shares a module with another; each begins with its first module. `edges` has for each what it depends on.
pub(super) fn circles(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut open: BTreeSet<usize> = (0..edges.len()).collect();
    let mut circles = Vec::new();
    loop {
        let leads_on = |at: usize, open: &BTreeSet<usize>| edges[at].iter().copied().find(|to| open.contains(to));
        while let Some(end) = open.iter().copied().find(|at| leads_on(*at, &open).is_none()) {
            open.remove(&end);
        }
        let Some(start) = open.first().copied() else { return circles };
        let mut way = vec![start]; // from what is left, every way ends in a circle
        while let Some(next) = way.last().and_then(|at| leads_on(*at, &open)) {
            if let Some(at) = way.iter().position(|been| *been == next) {
                way.drain(..at);
                break;
            }
            way.push(next);
        }
        let first = way.iter().enumerate().min_by_key(|(_, module)| **module).map_or(0, |(at, _)| at);
        way.rotate_left(first);
        open.retain(|module| !way.contains(module));
        circles.push(way);
    }
}
