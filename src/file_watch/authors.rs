//! Attribution of changes that happen while a lane runs: to the lane itself, or to another author.
//! A change by another author means that the lane must start over.
//!
//! The file system does not record who wrote a file. Changes that recur in consecutive runs, some
//! of them uninterrupted, are therefore attributed to the lane.

use super::{FileEvent, FileEvents};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// After this number of consecutive runs, a recurring change no longer interrupts the next run: a
/// lane must be able to finish.
const CUTS: u32 = 2;
/// After this number of consecutive runs, a recurring change is attributed to the lane, if at least
/// [`WHOLE`] of these runs were not interrupted.
const HABIT: u32 = 4;
const WHOLE: u32 = 2;
/// After this number of consecutive runs with changes by others, further changes do not interrupt.
/// The next run that finishes is the last one.
const RESTLESS: u32 = 8;

/// A record of the changes during the runs of a lane.
#[derive(Debug, Default)]
pub struct ChangeAuthors {
    /// The number of the current run, or of the latest run if none is active.
    run: u64,
    /// The files altered during this run.
    altered: BTreeSet<PathBuf>,
    traces: BTreeSet<Trace>,
    streaks: BTreeMap<Trace, Streak>,
    /// Files that appeared during a run, with the folder where they appeared.
    came: BTreeMap<PathBuf, PathBuf>,
    /// The number of consecutive runs in which others altered something.
    restless: u32,
}

/// A change that can recur.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Trace {
    /// The file is altered.
    File(PathBuf),
    /// New files appear in the folder.
    Names(PathBuf),
}

/// Consecutive runs with the same change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Streak {
    latest: u64,
    runs: u32,
    /// The number of uninterrupted runs among them.
    whole: u32,
}

/// The attribution of the changes during a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ChangeBlame {
    /// Paths that others may have altered. Another run must check them.
    pub others: BTreeSet<PathBuf>,
    /// Paths attributed to the lane itself. The run has not checked their current content either.
    pub own: BTreeSet<PathBuf>,
}

/// The way in which a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// A change interrupted the run.
    Cut,
    /// The run was not interrupted, but may have stopped before the end of its lane.
    Whole,
    /// Every step of the lane ran. A file that this run did not alter is not one that the lane
    /// alters each time.
    Passed,
}

/// The effect of changes on the current run. If there are several changes, the largest value
/// counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// No effect: the lane made the changes, or nothing changed.
    Never,
    /// The run finishes, which shows who made the changes.
    Later,
    /// The run is interrupted.
    Now,
}

impl ChangeAuthors {
    /// Begins a run.
    pub fn begin(&mut self) {
        self.run += 1;
    }

    /// Records changes made while no lane ran. Others made them, so the paths are no longer
    /// attributed to the lane.
    pub fn idle(&mut self, changes: &FileEvents) {
        self.restless = 0;
        for path in changes.keys() {
            self.came.remove(path);
            self.streaks.remove(&Trace::File(path.clone()));
        }
    }

    /// Records changes made while the lane ran. A file rewritten with its old content does not
    /// count as changed.
    pub fn during(&mut self, changes: &FileEvents) -> Urgency {
        let mut most = Urgency::Never;
        for (path, change) in changes {
            match change {
                FileEvent::Rewritten => {
                    // The lane still writes this file, so the file stays attributed to the lane.
                    let streak = self.streaks.get_mut(&Trace::File(path.clone())).filter(|streak| streak.is_habit());
                    streak.into_iter().for_each(|streak| streak.latest = self.run);
                    continue;
                }
                FileEvent::Came(folder) if !self.is_known(path) => {
                    self.came.insert(path.clone(), folder.clone());
                    self.traces.insert(Trace::Names(folder.clone()));
                }
                FileEvent::Came(_) | FileEvent::Altered => {}
            }
            self.traces.insert(Trace::File(path.clone()));
            self.altered.insert(path.clone());
            most = most.max(self.urgency(path));
        }
        most
    }

    /// Ends the run.
    pub fn ended(&mut self, end: RunEnd) -> ChangeBlame {
        let is_whole = end != RunEnd::Cut;
        for trace in std::mem::take(&mut self.traces) {
            let Streak { runs, whole, .. } = self.streak(&trace);
            let (runs, whole) = (runs.saturating_add(1), whole.saturating_add(u32::from(is_whole)));
            self.streaks.insert(trace, Streak { latest: self.run, runs, whole });
        }
        let run = self.run;
        let may_go_on = end != RunEnd::Passed;
        self.streaks.retain(|_, streak| streak.latest == run || may_go_on && streak.is_habit());
        let altered = std::mem::take(&mut self.altered).into_iter();
        let (mut own, mut others): (BTreeSet<_>, BTreeSet<_>) =
            altered.partition(|path| self.traces_of(path).any(|trace| self.streak(&trace).is_habit()));
        self.restless = if others.is_empty() { 0 } else { self.restless + 1 };
        if self.restless > RESTLESS && is_whole {
            own.append(&mut others);
        }
        ChangeBlame { others, own }
    }

    fn urgency(&self, path: &Path) -> Urgency {
        let of = |streak: Streak| match streak.runs {
            _ if streak.is_habit() => Urgency::Never,
            CUTS.. => Urgency::Later,
            _ if self.restless >= RESTLESS => Urgency::Later,
            _ => Urgency::Now,
        };
        self.traces_of(path).map(|trace| of(self.streak(&trace))).min().unwrap_or(Urgency::Now)
    }

    fn is_known(&self, path: &Path) -> bool {
        self.came.contains_key(path) || self.streaks.contains_key(&Trace::File(path.to_owned()))
    }

    fn traces_of(&self, path: &Path) -> impl Iterator<Item = Trace> {
        let names = self.came.get(path).cloned().map(Trace::Names);
        [Trace::File(path.to_owned())].into_iter().chain(names)
    }

    /// Returns the streak that the current run can continue. A habit survives runs that ended
    /// before the change could recur.
    fn streak(&self, trace: &Trace) -> Streak {
        let streak = self.streaks.get(trace).copied().unwrap_or_default();
        if streak.is_habit() || streak.latest + 1 >= self.run { streak } else { Streak::default() }
    }
}

impl Streak {
    fn is_habit(&self) -> bool {
        self.runs >= HABIT && self.whole >= WHOLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn altered(paths: &[&str]) -> FileEvents {
        paths.iter().map(|path| (PathBuf::from(path), FileEvent::Altered)).collect()
    }

    fn came(path: &str, folder: &str) -> FileEvents {
        [(path.into(), FileEvent::Came(folder.into()))].into()
    }

    fn blame(others: &[&str], own: &[&str]) -> ChangeBlame {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        ChangeBlame { others: paths(others), own: paths(own) }
    }

    /// Makes a run with these changes, which may interrupt it. Returns true if the run was not
    /// interrupted, and the attribution.
    fn run(authors: &mut ChangeAuthors, changes: &FileEvents) -> (bool, ChangeBlame) {
        authors.begin();
        let is_whole = authors.during(changes) < Urgency::Now;
        (is_whole, authors.ended(if is_whole { RunEnd::Whole } else { RunEnd::Cut }))
    }

    #[test]
    fn a_file_altered_in_four_runs_in_a_row_two_of_them_whole_is_the_lanes_own() {
        let mut authors = ChangeAuthors::default();
        let log = altered(&["log"]);
        assert_eq!(run(&mut authors, &log), (false, blame(&["log"], &[])));
        assert_eq!(run(&mut authors, &log), (false, blame(&["log"], &[])));
        assert_eq!(
            run(&mut authors, &log),
            (true, blame(&["log"], &[])),
            "one must come to its end, and another follows"
        );
        assert_eq!(run(&mut authors, &log), (true, blame(&[], &["log"])));
        assert_eq!(run(&mut authors, &altered(&["a.rs"])), (false, blame(&["a.rs"], &[])));
        assert_eq!(run(&mut authors, &log), (true, blame(&[], &["log"])), "a habit remains one");
    }

    #[test]
    fn a_file_that_somebody_alters_besides_cuts_short_what_the_lanes_own_work_does_not() {
        let mut authors = ChangeAuthors::default();
        for _ in 0..4 {
            run(&mut authors, &altered(&["log"]));
        }
        assert_eq!(run(&mut authors, &altered(&["a.rs", "log"])), (false, blame(&["a.rs"], &["log"])));
    }

    #[test]
    fn runs_that_were_all_cut_short_prove_nothing() {
        let mut authors = ChangeAuthors::default();
        for _ in 0..6 {
            authors.begin();
            authors.during(&altered(&["a.rs"]));
            assert_eq!(authors.ended(RunEnd::Cut), blame(&["a.rs"], &[]));
        }
    }

    #[test]
    fn a_run_that_leaves_a_file_alone_breaks_the_habit() {
        let mut authors = ChangeAuthors::default();
        for _ in 0..3 {
            run(&mut authors, &altered(&["a.rs"]));
        }
        run(&mut authors, &FileEvents::new());
        assert_eq!(run(&mut authors, &altered(&["a.rs"])), (false, blame(&["a.rs"], &[])));
    }

    #[test]
    fn what_a_passed_run_leaves_alone_is_not_the_lanes_work() {
        for (end, change, whose) in [
            (RunEnd::Passed, None, blame(&["a.rs"], &[])),
            (RunEnd::Passed, Some(FileEvent::Rewritten), blame(&[], &["a.rs"])),
            (RunEnd::Passed, Some(FileEvent::Altered), blame(&[], &["a.rs"])),
            (RunEnd::Whole, None, blame(&[], &["a.rs"])),
            (RunEnd::Cut, None, blame(&[], &["a.rs"])),
        ] {
            let mut authors = ChangeAuthors::default();
            for _ in 0..4 {
                run(&mut authors, &altered(&["a.rs"]));
            }
            authors.begin();
            authors.during(&change.clone().map(|change| ("a.rs".into(), change)).into_iter().collect());
            authors.ended(end);
            assert_eq!(run(&mut authors, &altered(&["a.rs"])).1, whose, "{end:?} {change:?}");
        }
    }

    #[test]
    fn what_changes_while_nothing_runs_is_not_the_lanes_work() {
        let mut authors = ChangeAuthors::default();
        for _ in 0..4 {
            run(&mut authors, &altered(&["log"]));
        }
        authors.idle(&altered(&["log"]));
        assert_eq!(run(&mut authors, &altered(&["log"])), (false, blame(&["log"], &[])));
    }

    #[test]
    fn files_with_new_names_are_told_by_the_folder_they_come_into() {
        let mut authors = ChangeAuthors::default();
        let names = ["out/1", "out/2", "out/3", "out/4"];
        let blames = names.map(|name| run(&mut authors, &came(name, "out")));
        let others = |whole, name| (whole, blame(&[name], &[]));
        let own = (true, blame(&[], &["out/4"]));
        assert_eq!(blames, [others(false, "out/1"), others(false, "out/2"), others(true, "out/3"), own]);
        assert_eq!(run(&mut authors, &altered(&["out/2"])), (true, blame(&[], &["out/2"])), "it was made by a run");
        assert_eq!(run(&mut authors, &altered(&["out/a.rs"])), (false, blame(&["out/a.rs"], &[])), "it was not");
    }

    #[test]
    fn a_file_that_is_made_anew_each_time_says_nothing_of_its_folder() {
        let mut authors = ChangeAuthors::default();
        for _ in 0..4 {
            run(&mut authors, &came("report", ""));
        }
        assert_eq!(run(&mut authors, &came("report", "")), (true, blame(&[], &["report"])));
        assert_eq!(run(&mut authors, &came("a.rs", "")), (false, blame(&["a.rs"], &[])));
    }

    #[test]
    fn whatever_a_lane_alters_it_comes_to_a_rest() {
        let mut authors = ChangeAuthors::default();
        for number in 0..RESTLESS {
            let name = format!("{number}");
            assert_eq!(run(&mut authors, &altered(&[&name])), (false, blame(&[&name], &[])));
        }
        assert_eq!(run(&mut authors, &altered(&["last"])), (true, blame(&[], &["last"])));
        authors.idle(&altered(&["a"]));
        assert_eq!(run(&mut authors, &altered(&["last"])), (false, blame(&["last"], &[])));
    }

    #[test]
    fn many_changes_in_one_run_count_once() {
        let mut authors = ChangeAuthors::default();
        authors.begin();
        assert_eq!([(); 5].map(|()| authors.during(&altered(&["a.rs"]))), [Urgency::Now; 5]);
    }

    #[test]
    fn a_file_written_as_it_was_is_nobodys_concern() {
        let mut authors = ChangeAuthors::default();
        assert_eq!(run(&mut authors, &[("a.rs".into(), FileEvent::Rewritten)].into()), (true, ChangeBlame::default()));
    }
}
