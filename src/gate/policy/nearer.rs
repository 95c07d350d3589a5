//! New files that would be found before existing ones, by the order in which code is searched: a
//! file without an extension before one with an extension, a package before a module, and files
//! beside tests before others.

use super::BaseFiles;
use super::shadows::module_of;
use super::tests_named::is_named;
use crate::gate::names::name_of;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Endings of Node's modules and of files that are bundled like them, in search order.
const NODE: &[&str] =
    &["", ".js", ".jsx", ".ts", ".tsx", ".json", ".node", "/index.js", "/index.jsx", "/index.ts", "/index.tsx"];
/// Endings of scripts. Node, Vitest, Jest, Bun and others search them in different orders.
const SCRIPTS: [&str; 8] = ["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"];
/// Folders that contain a project's Python modules.
const ROOTS: &[&str] = &["", "src/", "lib/"];

/// Files of the base that a new file could hide.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShadowableFiles {
    /// Modules of Node and Python, and protected data of Node.
    modules: BTreeSet<String>,
    /// Test folders that Python searches first, each with a `/` at its end.
    first: BTreeSet<String>,
}

impl ShadowableFiles {
    /// Collects the files of a base. `is_kept` returns whether a data file is protected; `first`
    /// are the test folders that Python searches first.
    pub(super) fn from_base(base: &BaseFiles, is_kept: impl Fn(&str) -> bool, first: BTreeSet<String>) -> Self {
        let ending = |path: &str| name_of(path).rsplit_once('.').map(|(_, ending)| ending.to_owned());
        let is_module = |path: &&String| match ending(path).as_deref() {
            Some("py") => true,
            Some(ending) if SCRIPTS.contains(&ending) => true,
            Some("json" | "node") => is_kept(path),
            _ => false,
        };
        Self { modules: base.0.iter().filter(is_module).cloned().collect(), first }
    }

    /// Returns the file of the base that a new file would hide, unless that file is removed.
    /// `is_kept` returns whether a file is protected.
    pub(super) fn behind(
        &self,
        path: &str,
        is_gone: impl Fn(&str) -> bool,
        is_kept: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let is_there = |other: &String| other != path && self.modules.contains(other) && !is_gone(other);
        let found = self.of_node(path).or_else(|| self.of_python(path)).filter(&is_there);
        found.or_else(|| self.beside(path, is_kept).filter(is_there))
    }

    /// Returns the protected script with the same name and another ending. No code imports a test.
    fn beside(&self, path: &str, is_kept: impl Fn(&str) -> bool) -> Option<String> {
        let (stem, _) = path.rsplit_once('.').filter(|(_, ending)| SCRIPTS.contains(ending))?;
        let mut others = SCRIPTS.iter().map(|ending| format!("{stem}.{ending}"));
        others.find(|other| other != path && self.modules.contains(other) && is_kept(other) && !is_named(other))
    }

    fn of_node(&self, path: &str) -> Option<String> {
        let name = name_of(path);
        // A package often starts a program through a file without an extension beside it.
        let is_program = !name.contains('.') && path.split('/').rev().nth(1) == Some("bin");
        let of_rank = |(rank, ending): (usize, &&str)| {
            let stem = path.strip_suffix(ending).filter(|stem| !stem.is_empty() && !stem.ends_with('/'))?;
            // The empty ending counts only for a name without a dot.
            let is_plain = !ending.is_empty() || !name.contains('.');
            let mut later = NODE[rank + 1..].iter().map(|later| format!("{stem}{later}"));
            is_plain.then(|| later.find(|later| self.modules.contains(later))).flatten()
        };
        NODE.iter().enumerate().filter(|_| !is_program).find_map(of_rank)
    }

    fn of_python(&self, path: &str) -> Option<String> {
        let module = module_of(path)?;
        let own = format!("{module}.py");
        let is_before = path.ends_with("/__init__.py") || !(path.ends_with(".py") || path.ends_with(".pyc"));
        if is_before && self.modules.contains(&own) {
            return Some(own);
        }
        let name = self.first.iter().find_map(|folder| module.strip_prefix(folder.as_str()))?;
        let forms = |root: &&str| [".py", "/__init__.py"].map(|form| format!("{root}{name}{form}"));
        let is_own = |other: &String| self.modules.contains(other);
        (!name.contains('/')).then(|| ROOTS.iter().flat_map(forms).find(is_own)).flatten()
    }
}
