//! The names of tests in the output of test runners, line by line. Pure.

use super::go;
use super::runners::{is_node_sum, node_name};
use super::tap;
use regex::Regex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// The maximum number of names for a family. The names of a family with more are not compared.
pub(super) const MOST_NAMES: usize = 20_000;

/// A family of runners that name the tests they ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Family {
    Node,
    Ctest,
    GoogleTest,
    /// Catch2 and doctest, if they print times (`-d yes`, `-d`).
    Timed,
    /// JUnit's console launcher.
    Console,
    /// Programs such as bats that print the name directly after the number of the Test Anything
    /// Protocol.
    Tap,
    /// Tests of Go. The name of a test that runs more than once, in several packages, gets a
    /// number.
    Go,
}

/// A family of runners. The first function returns the name of a test that ran from a line; the
/// second returns whether a line is a summary. Names count only if there is a summary.
type Namer = (Family, fn(&str) -> Option<&str>, fn(&str) -> bool);
/// The families that print each name on a separate line.
const NAMERS: [Namer; 6] = [
    (Family::Node, node_name, is_node_sum),
    (Family::Ctest, ctest_name, |line| line.contains("% tests passed, ") && line.contains(" failed out of ")),
    (Family::GoogleTest, googletest_name, |line| line.starts_with("[==========] ") && line.contains(" ran.")),
    (Family::Timed, timed_name, is_timed_sum),
    (Family::Tap, tap::name, tap::is_plan),
    (Family::Console, console_name, |line| line.starts_with("[ ") && line.ends_with(" tests started         ]")),
];

/// The names of tests that ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TestNames {
    tests: BTreeMap<Family, BTreeSet<String>>,
    /// Families that have printed a summary.
    summed: BTreeSet<Family>,
    /// The open branches of the tree that JUnit's console launcher prints, each with its column.
    #[serde(skip)]
    branches: Vec<(usize, String)>,
    /// `TAP version 13` was printed, so the text after a number may be that of an assertion.
    #[serde(skip)]
    is_versioned: bool,
    /// The number of times that each test of Go ran.
    #[serde(skip)]
    of_go: BTreeMap<String, u64>,
}

impl TestNames {
    /// Reads a line of output without escape codes.
    pub(super) fn read_line(&mut self, line: &str) {
        let plain = line.trim();
        self.is_versioned |= plain.starts_with("TAP version ");
        for (family, name, is_sum) in NAMERS {
            if family == Family::Tap && self.is_versioned {
                continue;
            }
            if is_sum(plain) {
                self.summed.insert(family);
            }
            if let Some(name) = name(plain) {
                self.add(family, stable(name));
            }
        }
        if let Some(path) = self.branch(line.trim_end()) {
            self.add(Family::Console, path);
        }
        if go::package(plain).is_some() {
            self.summed.insert(Family::Go);
        }
        if let Some(test) = go::name(plain) {
            let times = self.of_go.entry(test.to_owned()).or_insert(0);
            *times += 1;
            let name = if *times == 1 { test.to_owned() } else { format!("{test} ({times})") };
            self.add(Family::Go, name);
        }
    }

    /// Returns the number of tests with a name.
    pub(super) fn count(&self) -> u64 {
        self.compared().map(|(_, names)| names.len() as u64).sum()
    }

    /// Returns the tests of the base that are not named here. If the base failed and tests ran
    /// here, a family that is absent here is ignored: a failing test may have printed its names.
    pub(super) fn missing<'b>(&self, base: &'b Self, base_is_green: bool, has_run: bool) -> BTreeSet<&'b str> {
        let mut missing = BTreeSet::new();
        for (family, before) in base.compared() {
            let is_crowded = self.tests.get(&family).is_some_and(is_crowded);
            match self.compared().find(|(other, _)| *other == family) {
                Some((_, now)) => missing.extend(before.iter().filter(|name| !now.contains(*name)).map(String::as_str)),
                None if is_crowded || (!base_is_green && has_run) => {}
                None => missing.extend(before.iter().map(String::as_str)),
            }
        }
        missing
    }

    /// Returns whether CTest printed names and a summary.
    pub(super) fn are_of_ctest(&self) -> bool {
        self.summed.contains(&Family::Ctest) && self.tests.contains_key(&Family::Ctest)
    }

    /// Returns the families whose names can be compared. CTest only prints the output of failing
    /// tests. So if CTest prints names, the names of the runners that it starts are ignored.
    fn compared(&self) -> impl Iterator<Item = (Family, &BTreeSet<String>)> {
        let is_alone = self.are_of_ctest();
        let known = self.tests.iter().filter(move |(family, names)| {
            self.summed.contains(family) && !is_crowded(names) && (!is_alone || **family == Family::Ctest)
        });
        known.map(|(family, names)| (*family, names))
    }

    fn add(&mut self, family: Family, name: String) {
        let names = self.tests.entry(family).or_default();
        // One name above the maximum shows that there are more.
        if !name.is_empty() && !is_crowded(names) {
            names.insert(name);
        }
    }

    /// Returns the path of a test in the tree of JUnit's console launcher, such as
    /// `CalcTest > adds()`. A branch that has branches is a class or a parameterized test, so its
    /// path is removed.
    fn branch(&mut self, line: &str) -> Option<String> {
        let (prefix, rest) = BRANCHES.iter().find_map(|mark| line.split_once(mark))?;
        if !prefix.chars().all(|char| [' ', '│', '|'].contains(&char)) {
            return None;
        }
        let column = prefix.chars().count();
        let (name, has_run) = ended(rest);
        self.branches.retain(|(other, _)| *other < column);
        if let Some(tests) = self.tests.get_mut(&Family::Console) {
            tests.remove(&path_of(&self.branches));
        }
        self.branches.push((column, stable(name)));
        Some(path_of(&self.branches)).filter(|path| has_run && !path.is_empty())
    }
}

/// Returns the path of the last branch, without its engine.
fn path_of(branches: &[(usize, String)]) -> String {
    branches.iter().skip(1).map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(" > ")
}

fn is_crowded(names: &BTreeSet<String>) -> bool {
    names.len() > MOST_NAMES
}

/// The marks of branches in the two themes of the launcher.
const BRANCHES: [&str; 4] = ["├─ ", "└─ ", "+-- ", "'-- "];
/// The marks of tests that ran. Those of [`LEFT_OUT`] did not.
const RAN: [&str; 4] = ["✔", "✘", "[OK]", "[X]"];
const LEFT_OUT: [&str; 4] = ["↷", "■", "[S]", "[A]"];

/// Splits a branch such as `adds() ✔` or `halves() ✘ expected: <1> but was: <2>` into its name and
/// whether it ran.
fn ended(rest: &str) -> (&str, bool) {
    let name = |mark: &&str| {
        let (name, after) = rest.split_once(*mark)?;
        (name.ends_with(' ') && (after.is_empty() || after.starts_with(' '))).then(|| name.trim_end())
    };
    match (RAN.iter().find_map(name), LEFT_OUT.iter().find_map(name)) {
        (Some(ran), Some(left_out)) if left_out.len() < ran.len() => (left_out, false),
        (Some(ran), _) => (ran, true),
        (None, Some(left_out)) => (left_out, false),
        (None, None) => (rest, false),
    }
}

/// Parses `JUnit Jupiter > CalcTest > adds() :: SUCCESSFUL` of `--details=testfeed`, or
/// `Finished:    adds() ([engine:junit-jupiter]/[class:p.CalcTest]/[method:adds()])` of
/// `--details=flat`.
fn console_name(line: &str) -> Option<&str> {
    if let Some(path) = line.strip_suffix(" :: SUCCESSFUL").or_else(|| line.strip_suffix(" :: FAILED")) {
        return Some(path.split_once(" > ")?.1);
    }
    let (_, id) = line.strip_prefix("Finished: ")?.rsplit_once(" ([engine:")?;
    let path = id.split_once("]/")?.1.strip_suffix(')')?;
    let last = path.rsplit("/[").next()?.trim_start_matches('[');
    (!CONTAINERS.iter().any(|kind| last.starts_with(kind))).then_some(path)
}

/// The kinds of parts in the ids of JUnit that hold tests.
const CONTAINERS: [&str; 7] =
    ["class:", "nested-class:", "test-template:", "test-factory:", "dynamic-container:", "runner:", "suite:"];

/// Parses ` 1/12 Test  #1: adds ....   Passed    0.01 sec`, also with `***Failed` or `***Timeout`.
fn ctest_name(line: &str) -> Option<&str> {
    let is_number = |text: &str| text.trim().parse::<u64>().is_ok();
    let (place, rest) = line.split_once(" Test ")?;
    let (number, all) = place.split_once('/')?;
    let (id, rest) = rest.trim_start().strip_prefix('#')?.split_once(": ")?;
    let (name, outcome) = rest.split_at(rest.rfind(" ..")?);
    let outcome = outcome.trim_start_matches([' ', '.']);
    let has_run = !["***Not Run", "***Skipped"].iter().any(|word| outcome.starts_with(word));
    ([number, all, id].into_iter().all(is_number) && has_run).then_some(name)
}

/// Parses `[       OK ] Calc.Adds (0 ms)` or
/// `[  FAILED  ] All/P.Even/1, where GetParam() = 3 (0 ms)`. Output of a test without a line end
/// may precede it.
fn googletest_name(line: &str) -> Option<&str> {
    let (_, rest) = ["[       OK ] ", "[  FAILED  ] "].iter().find_map(|mark| line.split_once(mark))?;
    let (name, _) = rest.rsplit_once(" (").filter(|(_, time)| time.ends_with(" ms)"))?;
    Some(name.split(", where ").next().unwrap_or(name))
}

/// Parses `0.000 s: adds numbers`.
fn timed_name(line: &str) -> Option<&str> {
    let (time, name) = line.split_once(" s: ")?;
    (time.contains('.') && time.parse::<f64>().is_ok()).then_some(name)
}

/// Returns whether a line is `All tests passed (3 assertions in 2 test cases)`,
/// `test cases: 2 | 1 passed | 1 failed` or
/// `[doctest] test cases: 3 | 3 passed | 0 failed | 0 skipped`.
fn is_timed_sum(line: &str) -> bool {
    line.strip_prefix("[doctest] ").unwrap_or(line).starts_with("test cases: ")
        || (line.starts_with("All tests passed (") && line.ends_with(')'))
}

/// Removes the parts of a name that differ from run to run. These are the values after the number
/// of a parameterized test (`[1] 0.73`), hash codes (`Object@1b2c3d`), bytes in memory
/// (`16-byte object <90-F3`), and what [`CHANGING`] finds.
pub(super) fn stable(name: &str) -> String {
    let end = name.find("-byte object <").or_else(|| number_end(name)).unwrap_or(name.len());
    let mut parts = name[..end].split('@');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        text.push('@');
        text.push_str(if digits >= 4 { &part[digits..] } else { part });
    }
    CHANGING.replace_all(&text, "").into_owned()
}

/// Moments, times of day, random numbers, seconds since 1970, addresses, and UUIDs. The detection
/// of loops ignores more. Here each ignored value can make several tests one, and then only their
/// number is compared.
static CHANGING: LazyLock<Regex> = LazyLock::new(|| {
    let moment = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)?Z?";
    let time = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?";
    let number = r"[0-9]*\.[0-9]{5,}(?:e-[0-9]+)?|[0-9]{10,}(?:\.[0-9]+)?";
    let hex = "0x[0-9a-fA-F]{6,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
    Regex::new(&format!("{hex}|{moment}|{time}|{number}")).expect("a pattern that is tested")
});

/// Returns the end of the first number in brackets.
fn number_end(name: &str) -> Option<usize> {
    let starts = name.match_indices('[').map(|(at, _)| at + 1);
    let end = |at: usize| {
        let digits = name[at..].bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0 && name[at + digits..].starts_with(']')).then_some(at + digits + 1)
    };
    starts.filter_map(end).next()
}

#[cfg(test)]
mod tests;
