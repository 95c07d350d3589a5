//! `fledge lanes run --watch`: runs the lane after each change of files. A change during a run
//! starts one more run at its end. Files that change in every run do not count, and are named each
//! time.

use super::super::failure::CliError;
use super::super::paint::{self, Tone};
use super::files::in_place;
use super::say;
use crate::driver::StopToken;
use crate::file_watch::{FileEvent, FileEvents, ProjectWatch};
use crate::verdict::Reason;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The maximum number of runs in a row that changes during runs start. A lane that writes files has
/// an end.
const FOLLOW_UPS: u32 = 3;

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
    let (mut queue, mut is_first) = (WatchQueue::default(), true);
    let apart = apart.iter().map(|path| in_place(path)).collect();
    let mut watch = tokio::select! {
        () = stop.token().cancelled() => return Ok(cancelled(stop)),
        watch = ProjectWatch::start(root, apart) => watch.map_err(CliError::input)?,
    };
    loop {
        say(watch.note().as_ref());
        if let Err(failure) = once(stop).await {
            if is_first {
                return Err(failure);
            }
            let code = failure.show();
            if code == Reason::IoError.row().exit_code {
                return Ok(code);
            }
        }
        is_first = false;
        let during = tokio::select! {
            biased;
            () = stop.token().cancelled() => return Ok(cancelled(stop)),
            during = watch.wait_until_quiet() => during.map_err(CliError::input)?,
        };
        let mut changed = queue.ended(&during);
        if !queue.restless.is_empty() {
            say([&format!(
                "{} changed in every run: that starts no new run, and the result is for the files before that change \
                 (if it was you, save again; let git ignore what steps write)",
                first_of(&queue.restless)
            )]);
        }
        if changed.is_empty() {
            paint::line(&[(Tone::Faint, "waiting for changes (Ctrl-C to end)")]);
            let changes = tokio::select! {
                () = stop.token().cancelled() => return Ok(cancelled(stop)),
                changes = watch.changed() => changes.map_err(CliError::input)?,
            };
            changed = changes.into_keys().collect();
            queue.idle(&changed);
        }
        paint::line(&[(Tone::Strong, &format!("── {} changed ──", first_of(&changed)))]);
    }
}

/// Decides which changes during a run start another one.
#[derive(Debug, Default)]
struct WatchQueue {
    /// The runs in a row that changes during a run started.
    follow_ups: u32,
    /// The files that changed in every one of them.
    restless: BTreeSet<PathBuf>,
}

impl WatchQueue {
    /// Ends a run with these changes. Returns the files for which another run starts. A file that
    /// was rewritten with its old content does not count.
    fn ended(&mut self, during: &FileEvents) -> BTreeSet<PathBuf> {
        let altered = during.iter().filter(|(_, change)| **change == FileEvent::Altered);
        let altered: BTreeSet<PathBuf> = altered.map(|(path, _)| path.clone()).collect();
        match self.follow_ups {
            FOLLOW_UPS => self.restless.clone_from(&altered),
            _ => self.restless.retain(|path| altered.contains(path)),
        }
        let changed = &altered - &self.restless;
        self.follow_ups = if changed.is_empty() { 0 } else { self.follow_ups + 1 };
        changed
    }

    /// Records changes while no lane ran. The lane did not make them.
    fn idle(&mut self, changed: &BTreeSet<PathBuf>) {
        self.restless.retain(|path| !changed.contains(path));
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

    fn events(paths: &[&str], change: FileEvent) -> FileEvents {
        paths.iter().map(|path| (PathBuf::from(path), change)).collect()
    }

    /// Ends a run in which these files were altered. Returns the files that start another run.
    fn ended(queue: &mut WatchQueue, paths: &[&str]) -> Vec<PathBuf> {
        queue.ended(&events(paths, FileEvent::Altered)).into_iter().collect()
    }

    #[test]
    fn a_change_during_a_run_starts_one_more_and_the_old_content_none() {
        let mut queue = WatchQueue::default();
        assert_eq!(ended(&mut queue, &["a", "b"]), [PathBuf::from("a"), "b".into()]);
        assert!(queue.ended(&events(&["a"], FileEvent::Rewritten)).is_empty() && queue.restless.is_empty());
    }

    #[test]
    fn whatever_changes_in_every_run_comes_to_a_rest_until_it_changes_between_runs() {
        let mut queue = WatchQueue::default();
        let started = (0..10).take_while(|n| !ended(&mut queue, &["report", &format!("new-{n}")]).is_empty()).count();
        assert_eq!(started, 3);
        assert_eq!(ended(&mut queue, &["report", "a"]), [PathBuf::from("a")]);
        assert!(ended(&mut queue, &["report"]).is_empty());
        queue.idle(&[PathBuf::from("report")].into());
        assert_eq!(ended(&mut queue, &["report"]), [PathBuf::from("report")]);
    }

    #[test]
    fn a_file_that_one_run_leaves_alone_counts_again() {
        let mut queue = WatchQueue::default();
        (0..4).for_each(|_| drop(ended(&mut queue, &["a"])));
        assert!(ended(&mut queue, &["a"]).is_empty() && ended(&mut queue, &[]).is_empty());
        assert_eq!(ended(&mut queue, &["a"]), [PathBuf::from("a")]);
    }

    #[test]
    fn of_many_changes_the_first_is_named_and_the_others_are_counted() {
        let of = |paths: &[&str]| first_of(&paths.iter().map(PathBuf::from).collect());
        assert_eq!([of(&["b.rs"]), of(&["b.rs", "a\n.rs", "c.rs"])], ["b.rs", "a .rs and 2 more"]);
    }
}
