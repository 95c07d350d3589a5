//! Whose work a change is that came while a lane ran: somebody's, and the lane is to start over, or the lane's own. Nothing
//! tells who wrote a file, so it is told by what recurs: in runs in a row, and also in those that nobody cut short.

use super::{Change, Changes};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What was altered in so many runs in a row does not cut the next one short: a lane must come to its end to be judged.
const CUTS: u32 = 2;
/// What is altered in so many runs in a row is taken for the lane's own work, if it was in [`WHOLE`] that came to their end.
const HABIT: u32 = 4;
const WHOLE: u32 = 2;
/// After so many runs in a row in which somebody altered anything, one comes to its end and is the last, whoever it was.
const RESTLESS: u32 = 8;

/// What was altered while lanes ran.
#[derive(Debug, Default)]
pub struct Authors {
    /// The number of the run under way or just over.
    run: u64,
    /// What has been altered in it.
    altered: BTreeSet<PathBuf>,
    traces: BTreeSet<Trace>,
    streaks: BTreeMap<Trace, Streak>,
    /// Files whose names were new in a run, with the folder that they came into.
    came: BTreeMap<PathBuf, PathBuf>,
    /// The number of runs in a row in which somebody altered something.
    restless: u32,
}

/// What recurs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Trace {
    /// This file is altered.
    File(PathBuf),
    /// Files with new names come into this folder.
    Names(PathBuf),
}

/// The runs in a row in which something recurred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Streak {
    latest: u64,
    runs: u32,
    /// How many of them came to their end.
    whole: u32,
}

/// Who is taken to have made the changes during a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Blame {
    /// What somebody else may have altered: another run must see it.
    pub others: BTreeSet<PathBuf>,
    /// What is taken for the lane's own work. The run has not seen it as it is either.
    pub own: BTreeSet<PathBuf>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// It was cut short.
    Cut,
    /// By itself, but maybe before the end of its lane.
    Whole,
    /// All of its lane ran: what it leaves alone then it does not write each time.
    Passed,
}

/// What changes mean for the run under way; the largest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Nothing: they are the lane's own work, or none.
    Never,
    /// It comes to its end, which shows whose they are.
    Later,
    /// It is to be cut short.
    Now,
}

impl Authors {
    /// A run begins.
    pub fn begin(&mut self) {
        self.run += 1;
    }

    /// These changed while nothing ran, so not by the lane: what it was blamed for there is forgotten.
    pub fn idle(&mut self, changes: &Changes) {
        self.restless = 0;
        for path in changes.keys() {
            self.came.remove(path);
            self.streaks.remove(&Trace::File(path.clone()));
        }
    }

    /// These changed while the lane ran. A file that was written with the content that it had is nobody's concern.
    pub fn during(&mut self, changes: &Changes) -> Urgency {
        let mut most = Urgency::Never;
        for (path, change) in changes {
            match change {
                Change::Rewritten => {
                    // It was not left alone: what is the lane's own work remains that.
                    let streak = self.streaks.get_mut(&Trace::File(path.clone())).filter(|streak| streak.is_habit());
                    streak.into_iter().for_each(|streak| streak.latest = self.run);
                    continue;
                }
                Change::Came(folder) if !self.is_known(path) => {
                    self.came.insert(path.clone(), folder.clone());
                    self.traces.insert(Trace::Names(folder.clone()));
                }
                Change::Came(_) | Change::Altered => {}
            }
            self.traces.insert(Trace::File(path.clone()));
            self.altered.insert(path.clone());
            most = most.max(self.urgency(path));
        }
        most
    }

    /// The run is over.
    pub fn ended(&mut self, end: RunEnd) -> Blame {
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
        Blame { others, own }
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

    /// The streak that this run may go on with. A habit need not recur in runs that did not get to it.
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

    fn altered(paths: &[&str]) -> Changes {
        paths.iter().map(|path| (PathBuf::from(path), Change::Altered)).collect()
    }

    fn came(path: &str, folder: &str) -> Changes {
        [(path.into(), Change::Came(folder.into()))].into()
    }

    fn blame(others: &[&str], own: &[&str]) -> Blame {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        Blame { others: paths(others), own: paths(own) }
    }

    /// A run with these changes, which comes to its end if they do not cut it short. Whether it did, and who is blamed.
    fn run(authors: &mut Authors, changes: &Changes) -> (bool, Blame) {
        authors.begin();
        let is_whole = authors.during(changes) < Urgency::Now;
        (is_whole, authors.ended(if is_whole { RunEnd::Whole } else { RunEnd::Cut }))
    }

    #[test]
    fn a_file_altered_in_four_runs_in_a_row_two_of_them_whole_is_the_lanes_own() {
        let mut authors = Authors::default();
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
        let mut authors = Authors::default();
        for _ in 0..4 {
            run(&mut authors, &altered(&["log"]));
        }
        assert_eq!(run(&mut authors, &altered(&["a.rs", "log"])), (false, blame(&["a.rs"], &["log"])));
    }

    #[test]
    fn runs_that_were_all_cut_short_prove_nothing() {
        let mut authors = Authors::default();
        for _ in 0..6 {
            authors.begin();
            authors.during(&altered(&["a.rs"]));
            assert_eq!(authors.ended(RunEnd::Cut), blame(&["a.rs"], &[]));
        }
    }

    #[test]
    fn a_run_that_leaves_a_file_alone_breaks_the_habit() {
        let mut authors = Authors::default();
        for _ in 0..3 {
            run(&mut authors, &altered(&["a.rs"]));
        }
        run(&mut authors, &Changes::new());
        assert_eq!(run(&mut authors, &altered(&["a.rs"])), (false, blame(&["a.rs"], &[])));
    }

    #[test]
    fn what_a_passed_run_leaves_alone_is_not_the_lanes_work() {
        for (end, change, whose) in [
            (RunEnd::Passed, None, blame(&["a.rs"], &[])),
            (RunEnd::Passed, Some(Change::Rewritten), blame(&[], &["a.rs"])),
            (RunEnd::Passed, Some(Change::Altered), blame(&[], &["a.rs"])),
            (RunEnd::Whole, None, blame(&[], &["a.rs"])),
            (RunEnd::Cut, None, blame(&[], &["a.rs"])),
        ] {
            let mut authors = Authors::default();
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
        let mut authors = Authors::default();
        for _ in 0..4 {
            run(&mut authors, &altered(&["log"]));
        }
        authors.idle(&altered(&["log"]));
        assert_eq!(run(&mut authors, &altered(&["log"])), (false, blame(&["log"], &[])));
    }

    #[test]
    fn files_with_new_names_are_told_by_the_folder_they_come_into() {
        let mut authors = Authors::default();
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
        let mut authors = Authors::default();
        for _ in 0..4 {
            run(&mut authors, &came("report", ""));
        }
        assert_eq!(run(&mut authors, &came("report", "")), (true, blame(&[], &["report"])));
        assert_eq!(run(&mut authors, &came("a.rs", "")), (false, blame(&["a.rs"], &[])));
    }

    #[test]
    fn whatever_a_lane_alters_it_comes_to_a_rest() {
        let mut authors = Authors::default();
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
        let mut authors = Authors::default();
        authors.begin();
        assert_eq!([(); 5].map(|()| authors.during(&altered(&["a.rs"]))), [Urgency::Now; 5]);
    }

    #[test]
    fn a_file_written_as_it_was_is_nobodys_concern() {
        let mut authors = Authors::default();
        assert_eq!(run(&mut authors, &[("a.rs".into(), Change::Rewritten)].into()), (true, Blame::default()));
    }
}
