//! Whose work a change is that came while a lane ran: somebody's, and the lane is to start over, or the lane's own. Nothing
//! tells who wrote a file, so it is told by what recurs.

use super::{Change, Changes};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A file that is altered in this many runs in a row is taken for the lane's own work.
const HABIT: u32 = 3;

/// What was altered while lanes ran.
#[derive(Debug, Default)]
pub struct Authors {
    /// The number of the run under way or just over.
    run: u64,
    altered: BTreeMap<PathBuf, Streak>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Streak {
    latest: u64,
    runs: u32,
}

/// Who is taken to have made some changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Blame {
    /// What somebody else may have altered: what ran saw the files as they are no more.
    pub others: BTreeSet<PathBuf>,
    /// What is taken for the lane's own work from now on.
    pub own: BTreeSet<PathBuf>,
}

impl Blame {
    /// With what was found later in the same run.
    pub fn add(&mut self, later: Self) {
        self.others.extend(later.others);
        self.own.extend(later.own);
    }
}

impl Authors {
    /// A run begins.
    pub fn begin(&mut self) {
        self.run += 1;
    }

    /// These changed while nothing ran, so not by the lane: what it was blamed for there is forgotten.
    pub fn idle(&mut self, changes: &Changes) {
        self.altered.retain(|path, _| !changes.contains_key(path));
    }

    /// These changed while the lane ran. A file that was written with the content that it had is nobody's concern.
    pub fn during(&mut self, changes: &Changes) -> Blame {
        let mut blame = Blame::default();
        for path in changes.iter().filter(|(_, change)| **change == Change::Altered).map(|(path, _)| path) {
            let before = self.altered.get(path).map_or(0, |streak| streak.runs);
            let runs = self.count(path);
            if runs < HABIT {
                blame.others.insert(path.clone());
            } else if before < HABIT {
                blame.own.insert(path.clone());
            }
        }
        blame
    }

    /// In how many runs in a row it has been altered, with this one. What has become a habit remains one.
    fn count(&mut self, path: &Path) -> u32 {
        let run = self.run;
        let streak = self.altered.entry(path.to_owned()).or_insert(Streak { latest: run, runs: 1 });
        let is_next = streak.latest + 1 == run;
        streak.runs = match streak.runs {
            runs if streak.latest == run || runs >= HABIT => runs,
            runs if is_next => runs + 1,
            _ => 1,
        };
        streak.latest = run;
        streak.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn altered(paths: &[&str]) -> Changes {
        paths.iter().map(|path| (PathBuf::from(path), Change::Altered)).collect()
    }

    fn others(paths: &[&str]) -> Blame {
        Blame { others: paths.iter().map(PathBuf::from).collect(), own: BTreeSet::new() }
    }

    /// A run that alters these.
    fn run(authors: &mut Authors, paths: &[&str]) -> Blame {
        authors.begin();
        authors.during(&altered(paths))
    }

    #[test]
    fn a_change_during_a_run_is_taken_for_somebodys_until_it_is_a_habit() {
        let mut authors = Authors::default();
        assert_eq!(run(&mut authors, &["log"]), others(&["log"]));
        assert_eq!(run(&mut authors, &["log", "a.rs"]), others(&["log", "a.rs"]));
        let blame = run(&mut authors, &["log", "a.rs"]);
        assert_eq!(blame, Blame { own: ["log".into()].into(), ..others(&["a.rs"]) });
        assert_eq!(authors.during(&altered(&["log"])), Blame::default());
        run(&mut authors, &[]);
        assert_eq!(run(&mut authors, &["log"]), Blame::default(), "a habit remains one");
    }

    #[test]
    fn a_run_that_leaves_a_file_alone_breaks_the_habit() {
        let mut authors = Authors::default();
        for paths in [&["a.rs"][..], &["a.rs"], &[], &["a.rs"], &["a.rs"]] {
            assert_eq!(run(&mut authors, paths), others(paths));
        }
    }

    #[test]
    fn what_changes_while_nothing_runs_is_not_the_lanes_work() {
        let mut authors = Authors::default();
        for _ in 0..3 {
            run(&mut authors, &["log"]);
        }
        authors.idle(&altered(&["log"]));
        assert_eq!(run(&mut authors, &["log"]), others(&["log"]));
    }

    #[test]
    fn many_changes_in_one_run_count_once() {
        let mut authors = Authors::default();
        authors.begin();
        for _ in 0..5 {
            assert_eq!(authors.during(&altered(&["a.rs"])), others(&["a.rs"]));
        }
    }

    #[test]
    fn a_file_written_as_it_was_is_nobodys_concern() {
        let mut authors = Authors::default();
        authors.begin();
        assert_eq!(authors.during(&[("a.rs".into(), Change::Rewritten)].into()), Blame::default());
    }
}
