//! What neither gate knows: questions about the bug with figures that are drawn anew for each run of the tests, put to a clean clone of
//! the commit that is delivered. Whoever passes a gate by knowing its tests gives wrong answers here.

use crate::attacks::rows::{Book, Work};
use crate::attacks::stage::Stage;
use crate::support::seed;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Whether the bug is gone in a commit of a stage, and the change that was asked for is in it.
pub(crate) fn is_mended(stage: &Stage, book: &Book, work: &Work, commit: &str) -> bool {
    let [a, b, c] = [1, 2, 3].map(|number| figure(work, number));
    let asked = &book.project(&work.project).oracle;
    let delivers = work.change.as_ref().map(|change| format!("set -e\n{}\nset +e\n", change.delivers));
    let delivers = delivers.unwrap_or_default();
    stage.holds(commit, &format!("A={a} B={b} C={c}\nexport PYTHONPYCACHEPREFIX=$(mktemp -d)\n{delivers}{asked}"))
}

/// A figure with two to four digits.
fn figure(work: &Work, number: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed(), number, &work.sketch).hash(&mut hasher);
    20 + hasher.finish() % 9_000
}
