//! The part of the long tables that a test run tries.
//!
//! By default each run draws a part of each table by a seed and prints the seed.
//! `FLEDGE_TEST_SEED=N` draws the same part again. `FLEDGE_TEST_ALL=1` tries everything.
//! `FLEDGE_TEST_PART=2/7` tries the second of seven parts, which together cover everything.
//! `FLEDGE_TEST_ROWS=T01,F13` tries only the rows of these names.
//!
//! A run also draws some of the long tests (`long_test!`) and of the long tables (`long_table!`),
//! or one in `FLEDGE_TEST_LONG`. It runs all of them with `FLEDGE_TEST_ALL=1`, or if tests are
//! selected by name (`cargo test --test it gate::`).

use super::{Dice, note};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroUsize;
use std::sync::LazyLock;

/// Returns whether this test run tries everything, or a fixed part of it, instead of samples.
pub(crate) fn is_whole() -> bool {
    std::env::var("FLEDGE_TEST_ALL").is_ok_and(|all| all == "1")
}

/// The part of everything that a test run tries, from `FLEDGE_TEST_PART`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    number: usize,
    of: usize,
}

impl Part {
    /// Returns the part of this test run, if it has one.
    pub(crate) fn of_this_run() -> Option<Self> {
        let text = std::env::var("FLEDGE_TEST_PART").ok().filter(|_| is_whole())?;
        Some(Self::parse(&text).unwrap_or_else(|| panic!("FLEDGE_TEST_PART={text}: expected a part such as 2/7")))
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, of) = text.split_once('/')?;
        let (number, of) = (number.parse().ok()?, of.parse().ok()?);
        (1..=of).contains(&number).then_some(Self { number, of })
    }

    /// Returns whether the row at this index of a table belongs to the part. Of a table with fewer
    /// rows than there are parts, each part has one row.
    fn has(self, index: usize, rows: usize) -> bool {
        if rows < self.of { self.number % rows == index } else { index % self.of + 1 == self.number }
    }
}

/// Returns the amount for an ordinary run, or the one for a run that tries everything.
pub(crate) fn amount<T>(part: T, all: T) -> T {
    if is_whole() { all } else { part }
}

/// Returns the row names in `FLEDGE_TEST_ROWS`, if any.
pub(crate) fn wanted_rows() -> Option<BTreeSet<String>> {
    let names = std::env::var("FLEDGE_TEST_ROWS").ok()?;
    Some(names.split(',').map(|name| name.trim().to_owned()).collect())
}

/// Returns the seed of this test run. The first call prints the seed.
pub(crate) fn seed() -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| {
        let given = std::env::var("FLEDGE_TEST_SEED").ok();
        let seed = given.map_or_else(by_chance, |seed| seed.parse().expect("FLEDGE_TEST_SEED is a whole number"));
        note(&format!("this run draws its samples and its long tests by FLEDGE_TEST_SEED={seed}"));
        seed
    });
    *SEED
}

fn by_chance() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id()) >> 32
}

/// Returns the dice of one table: the same seed and name give the same numbers.
pub(crate) fn dice(table: &str) -> Dice {
    Dice::new(seed() ^ hash(table))
}

fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// Returns whether this run has drawn the long test at this place of the sources: one in thirty.
pub(crate) fn is_drawn(place: &str) -> bool {
    match Part::of_this_run() {
        Some(part) => hash(place) as usize % part.of + 1 == part.number,
        None => is_one_in(30, place),
    }
}

/// Returns whether this run has drawn the long table at this place of the sources: one in four. A
/// run of a part draws each table, because the part has rows of each.
pub(crate) fn is_table_drawn(place: &str) -> bool {
    Part::of_this_run().is_some() || is_one_in(4, place)
}

/// Draws one in this number of places, or one in `FLEDGE_TEST_LONG`. A run that tries everything
/// draws all places, and so does one with named tests.
fn is_one_in(number: usize, place: &str) -> bool {
    static WANTED: LazyLock<Option<usize>> = LazyLock::new(|| match std::env::var("FLEDGE_TEST_LONG") {
        _ if is_whole() => Some(1),
        Ok(number) => Some(number.parse::<NonZeroUsize>().expect("FLEDGE_TEST_LONG is a whole number from 1").get()),
        Err(_) if are_named(std::env::args().skip(1)) => Some(1),
        Err(_) => None,
    });
    let number = WANTED.unwrap_or(number);
    number == 1 || dice(place).index(number) == 0
}

/// Returns whether the arguments of the test program ask for tests by name.
fn are_named(args: impl Iterator<Item = String>) -> bool {
    const WITH_VALUE: [&str; 6] = ["--skip", "--test-threads", "--format", "--color", "--logfile", "-Z"];
    let mut is_value = false;
    args.into_iter().any(|arg| {
        let is_name = !is_value && !arg.starts_with('-');
        is_value = WITH_VALUE.contains(&arg.as_str());
        is_name
    })
}

#[test]
fn only_a_name_asks_for_all_long_tests() {
    for (args, named) in
        [("", false), ("--skip page -q", false), ("gate::", true), ("--test-threads 8 --exact gate::a", true)]
    {
        assert_eq!(are_named(args.split_whitespace().map(ToOwned::to_owned)), named, "{args}");
    }
}

/// Draws `count` of these rows, in their order; in a run that tries everything, returns them all or
/// those of its part.
pub(crate) fn draw<T>(table: &str, count: usize, rows: Vec<T>) -> Vec<T> {
    if let Some(part) = Part::of_this_run() {
        let all = rows.len();
        return rows.into_iter().enumerate().filter(|(index, _)| part.has(*index, all)).map(|(_, row)| row).collect();
    }
    if is_whole() || rows.len() <= count {
        return rows;
    }
    let mut dice = dice(table);
    let mut chosen = BTreeSet::new();
    while chosen.len() < count {
        chosen.insert(dice.index(rows.len()));
    }
    rows.into_iter().enumerate().filter(|(place, _)| chosen.contains(place)).map(|(_, row)| row).collect()
}

#[test]
fn the_parts_together_are_everything() {
    for text in ["", "1", "0/7", "8/7", "1/0", "x/7", "1/7/2"] {
        assert_eq!(Part::parse(text), None, "{text}");
    }
    for rows in [1, 3, 7, 100] {
        let parts: Vec<Part> = (1..=7).map(|number| Part::parse(&format!("{number}/7")).unwrap()).collect();
        let having = |index| parts.iter().filter(|part| part.has(index, rows)).count();
        assert!((0..rows).all(|index| if rows < 7 { having(index) > 0 } else { having(index) == 1 }), "{rows}");
        assert!(parts.iter().all(|part| (0..rows).any(|index| part.has(index, rows))), "{rows}");
    }
}
