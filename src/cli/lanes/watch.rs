//! `fledge lanes run --watch`: runs the lane after each change of files. It waits for changes only
//! when the latest run has seen all files in their current state. Files that the lane seems to
//! write itself do not count, and are named each time.

use super::super::failure::CliError;
use super::super::paint::{self, Tone};
use super::files::in_place;
use super::say;
use crate::driver::StopToken;
use crate::file_watch::{ChangeAuthors, ProjectWatch, RunEnd, Urgency};
use crate::verdict::Reason;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Runs `once` now and after each change below `root`, until the stop; returns the exit code.
/// Changes below the paths in `apart` do not count.
///
/// # Errors
/// A failure of the first run, a missing `root`, or output that cannot be written.
pub(super) async fn watch(
    root: &Path,
    apart: Vec<PathBuf>,
    stop: &StopToken,
    once: impl AsyncFn(&StopToken) -> Result<u8, CliError>,
) -> Result<u8, CliError> {
    let (mut authors, mut is_first) = (ChangeAuthors::default(), true);
    let apart = apart.iter().map(|path| in_place(path)).collect();
    let mut watch = tokio::select! {
        () = stop.token().cancelled() => return Ok(cancelled(stop)),
        watch = ProjectWatch::start(root, apart) => watch.map_err(CliError::input)?,
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
                authors.during(&late.map_err(CliError::input)?);
            }
        }
        let blame = authors.ended(end);
        let mut changed = blame.others;
        if changed.is_empty() && !blame.own.is_empty() {
            say([&format!(
                "this lane seems to change {} itself: that starts no new run, and the result is for the files before that change \
                 (if it was you, save again)",
                first_of(&blame.own)
            )]);
        }
        if changed.is_empty() {
            paint::line(&[(Tone::Faint, "waiting for changes (Ctrl-C to end)")]);
            let changes = tokio::select! {
                () = stop.token().cancelled() => return Ok(cancelled(stop)),
                changes = watch.changed() => changes.map_err(CliError::input)?,
            };
            authors.idle(&changes);
            changed = changes.into_keys().collect();
        }
        paint::line(&[(Tone::Strong, &format!("── {} changed ──", first_of(&changed)))]);
    }
}

/// Runs once, to the end or until a foreign change of a file. Returns the result and the kind of
/// its end. The run has ended when this returns.
async fn run_until_changed(
    watch: &mut ProjectWatch,
    authors: &mut ChangeAuthors,
    stop: &StopToken,
    once: &impl AsyncFn(&StopToken) -> Result<u8, CliError>,
) -> Result<(Result<u8, CliError>, RunEnd), CliError> {
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
                    paint::line(&[(Tone::Faint, &format!("{what} changed again: finishing this run first"))]);
                    continue;
                }
                Urgency::Never => continue,
            }
        }
        part.token().cancel();
        let done = run.await;
        return changes.map(|_| (done, RunEnd::Cut)).map_err(CliError::input);
    }
}

fn cancelled(stop: &StopToken) -> u8 {
    Reason::Cancelled.exit_code(Some(stop.cause()))
}

/// Returns the first path and the number of the others.
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
