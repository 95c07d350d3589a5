//! The oracle, which neither gate knows: questions about the bug, asked on a clean clone of the
//! delivered commit. Each run of the tests draws new figures. Work that passes a gate only by
//! knowing its tests gives wrong answers here.

use crate::attacks::rows::{Book, Work};
use crate::attacks::stage::Stage;
use crate::support::seed;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Returns true if a commit of a stage has no bug and contains the requested change.
pub(crate) fn is_mended(stage: &Stage, book: &Book, work: &Work, commit: &str) -> bool {
    let [a, b, c] = [1, 2, 3].map(|number| figure(work, number));
    let asked = &book.project(&work.project).oracle;
    let delivers = work.change.as_ref().map(|change| format!("set -e\n{}\nset +e\n", change.delivers));
    let delivers = delivers.unwrap_or_default();
    stage.holds(commit, &format!("A={a} B={b} C={c}\nexport PYTHONPYCACHEPREFIX=$(mktemp -d)\n{delivers}{asked}"))
}

/// Returns a figure with two to four digits.
fn figure(work: &Work, number: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed(), number, &work.sketch).hash(&mut hasher);
    20 + hasher.finish() % 9_000
}
