//! The dependencies in `depends_on`: the module that an item refers to, and cycles.

use super::Spec;
use std::collections::BTreeSet;

/// Finds the spec that an item of `depends_on` refers to: by the name of its module, or by the path
/// of its file or folder.
pub(super) fn meant<'s>(specs: impl IntoIterator<Item = &'s Spec>, item: &str) -> Option<usize> {
    let is = |spec: &Spec| {
        let folder = spec.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        spec.module == item || spec.path == item || folder == item.trim_end_matches('/')
    };
    specs.into_iter().position(is)
}

/// Finds cycles that share no module; each begins with its first module. `edges` lists the
/// dependencies of each module.
pub(super) fn circles(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut open: BTreeSet<usize> = (0..edges.len()).collect();
    let mut circles = Vec::new();
    loop {
        let leads_on = |at: usize, open: &BTreeSet<usize>| edges[at].iter().copied().find(|to| open.contains(to));
        while let Some(end) = open.iter().copied().find(|at| leads_on(*at, &open).is_none()) {
            open.remove(&end);
        }
        let Some(start) = open.first().copied() else { return circles };
        let mut way = vec![start]; // in the remaining modules, every path ends in a cycle
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
