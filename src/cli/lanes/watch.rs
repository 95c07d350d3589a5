//! `fledge lanes run --watch`: the lane again and again, whenever files have changed. It waits only when the latest run has seen
//! all files as they are, but for those that it is taken to write itself, which are named each time.

use super::super::failure::Failure;
use super::super::paint::{self, Tone};
use super::files::in_place;
use super::say;
use crate::driver::Stop;
use crate::verdict::Reason;
use crate::watch::{Authors, RunEnd, Urgency, Watch};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Runs `once` now and after each change below `root` until the stop; gives the exit code. What changes below the paths `apart`
/// does not count.
///
/// # Errors
/// What was wrong with the first run, a `root` that is gone, and whatever keeps fledge from saying what came of a run.
pub(super) async fn watch(
    root: &Path,
    apart: Vec<PathBuf>,
    stop: &Stop,
    once: impl AsyncFn(&Stop) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    let (mut authors, mut is_first) = (Authors::default(), true);
    let apart = apart.iter().map(|path| in_place(path)).collect();
    let mut watch = tokio::select! {
        () = stop.token().cancelled() => return Ok(cancelled(stop)),
        watch = Watch::start(root, apart) => watch.map_err(Failure::input)?,
    };
    loop {
        say(watch.note().as_ref());
        let (done, end) = run_until_changed(&mut watch, &mut authors, stop, &once).await?;
        if let Err(failure) = done {
            if is_first {
                return Err(failure);
            }
            let code = failure.show();
            if code == Reason::IoError.row().exit_code {
                return Ok(code);
            }
        }
        is_first = false;
        tokio::select! {
            biased;
            () = stop.token().cancelled() => return Ok(cancelled(stop)),
            late = watch.settled() => {
                authors.during(&late.map_err(Failure::input)?);
            }
        }
        let blame = authors.ended(end);
        let mut changed = blame.others;
        if changed.is_empty() && !blame.own.is_empty() {
            say([&format!(
                "this lane changes {} itself, it seems: that starts no other run, and the result is of what was there before \
                 (if it was you, save again)",
                first_of(&blame.own)
            )]);
        }
        if changed.is_empty() {
            paint::line(&[(Tone::Faint, "waiting for changes (Ctrl-C to end)")]);
            let changes = tokio::select! {
                () = stop.token().cancelled() => return Ok(cancelled(stop)),
                changes = watch.changed() => changes.map_err(Failure::input)?,
            };
            authors.idle(&changes);
            changed = changes.into_keys().collect();
        }
        paint::line(&[(Tone::Strong, &format!("── {} changed ──", first_of(&changed)))]);
    }
}

/// One run, to its end or until somebody changes a file; and how. Nothing of it is left when this returns.
async fn run_until_changed(
    watch: &mut Watch,
    authors: &mut Authors,
    stop: &Stop,
    once: &impl AsyncFn(&Stop) -> Result<u8, Failure>,
) -> Result<(Result<u8, Failure>, RunEnd), Failure> {
    authors.begin();
    let part = stop.part();
    let mut run = Box::pin(once(&part));
    let mut has_said = false;
    loop {
        let changes = tokio::select! {
            biased;
            done = &mut run => {
                let end = if matches!(done, Ok(0)) { RunEnd::Passed } else { RunEnd::Whole };
                return Ok((done, end));
            }
            changes = watch.changed() => changes,
        };
        if let Ok(changes) = &changes {
            match authors.during(changes) {
                Urgency::Now => {}
                Urgency::Later if has_said => continue,
                Urgency::Later => {
                    has_said = true;
                    let what = first_of(&changes.keys().cloned().collect());
                    paint::line(&[(Tone::Faint, &format!("{what} changed again: this run comes to its end first"))]);
                    continue;
                }
                Urgency::Never => continue,
            }
        }
        part.token().cancel();
        let done = run.await;
        return changes.map(|_| (done, RunEnd::Cut)).map_err(Failure::input);
    }
}

fn cancelled(stop: &Stop) -> u8 {
    Reason::Cancelled.exit_code(Some(stop.cause()))
}

/// The first path, and how many more there are.
fn first_of(paths: &BTreeSet<PathBuf>) -> String {
    let first = paths.first().map(|path| paint::one_line(&path.to_string_lossy())).unwrap_or_default();
    match paths.len() {
        0 | 1 => first,
        count => format!("{first} and {} more", count - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_changes_the_first_is_named_and_the_others_are_counted() {
        let of = |paths: &[&str]| first_of(&paths.iter().map(PathBuf::from).collect());
        assert_eq!([of(&["b.rs"]), of(&["b.rs", "a\n.rs", "c.rs"])], ["b.rs", "a .rs and 2 more"]);
    }
}
