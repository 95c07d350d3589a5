//! What neither gate knows: questions about the bug with figures that are drawn anew for each run of the tests, put to a clean clone of
//! the commit that is delivered. Whoever passes a gate by knowing its tests gives wrong answers here.

use crate::rows::{Book, Work};
use crate::stage::Stage;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// What all figures are drawn from: `FLEDGE_ATTACKS_SEED`, or the time of day.
pub(crate) fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| {
        let told = std::env::var("FLEDGE_ATTACKS_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        told.unwrap_or_else(|| u64::try_from(now() % 1_000_000_000).unwrap())
    })
}

/// Whether the bug is gone in a commit of a stage.
pub(crate) fn is_mended(stage: &Stage, book: &Book, work: &Work, commit: &str) -> bool {
    let [a, b, c] = [1, 2, 3].map(|number| figure(work, number));
    let asked = &book.project(&work.project).oracle;
    stage.holds(commit, &format!("A={a} B={b} C={c}\nexport PYTHONPYCACHEPREFIX=$(mktemp -d)\n{asked}"))
}

/// A figure with two to four digits.
fn figure(work: &Work, number: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed(), number, &work.sketch).hash(&mut hasher);
    20 + hasher.finish() % 9_000
}
