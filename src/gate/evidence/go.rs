//! A reader for the output of `go test` and of the test programs that it starts. Pure.

use super::names::MOST_NAMES;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Words in a command that may hide output of test programs.
const HIDING: [&str; 11] = ["|", ">", "<", "-v=", "-test.v", "-list", "-exec", "unset", "export", "GOFLAGS", "GOENV"];

/// The Go packages of a step, and the state of their test programs' output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GoTests {
    /// Packages whose tests ran.
    packages: BTreeSet<String>,
    /// Packages that could not be built.
    broken: BTreeSet<String>,
    /// Packages that are `ok` although their test program neither printed `PASS` nor ended all
    /// tests that it began.
    silent: BTreeSet<String>,
    /// The output names single tests.
    is_verbose: bool,
    /// The number of test programs that printed `PASS` and whose package line has not followed.
    #[serde(skip)]
    passes: u64,
    /// The number of tests that began since the last package. `ended` counts those that ended.
    #[serde(skip)]
    begun: u64,
    #[serde(skip)]
    ended: u64,
    /// The current lines come from a test program.
    #[serde(skip)]
    is_in_tests: bool,
}

impl GoTests {
    /// Reads a line of output without escape codes and surrounding blanks.
    pub(super) fn read_line(&mut self, line: &str) {
        if line.contains(RUN) {
            self.is_in_tests = true;
            self.begun += u64::from(begun(line).is_some());
        }
        let has_ended = [PASSED, FAILED, SKIPPED].iter().any(|mark| ended(line, mark).is_some());
        self.ended += u64::from(has_ended);
        if line.ends_with("PASS") {
            self.passes += 1;
        }
        self.is_verbose |= self.begun > 0 || self.passes > 0;
        if ["PASS", "FAIL"].contains(&line) {
            self.is_in_tests = false;
        }
        let Some((word, rest)) = line.split_once('\t').map(|(word, rest)| (word.trim_end(), rest)) else { return };
        if !["ok", "FAIL", "?"].contains(&word) {
            return;
        }
        let is_whole = self.passes > 0 || (self.begun > 0 && self.ended >= self.begun);
        self.passes = self.passes.saturating_sub(u64::from(word == "ok"));
        (self.begun, self.ended, self.is_in_tests) = (0, 0, false);
        if let Some(package) = package(line).filter(|_| self.packages.len() < MOST_NAMES) {
            self.packages.insert(package.to_owned());
            if word == "ok" && !is_whole {
                self.silent.insert(package.to_owned());
            }
        } else if let Some(package) = rest.strip_suffix(" [build failed]").filter(|_| self.broken.len() < MOST_NAMES) {
            self.broken.insert(package.to_owned());
        }
    }

    /// Notes whether a command shows the whole output of test programs. It is called for steps in
    /// which Go names tests.
    pub(super) fn note_command(&mut self, command: &str) {
        let is_test = |part: &str| part.split_whitespace().take(2).eq(["go", "test"]);
        let shows_all = !HIDING.iter().any(|word| command.contains(word));
        self.is_verbose |= shows_all && command.split(['\n', ';', '&']).any(is_test);
    }

    /// Returns whether the current lines come from a test program.
    pub(super) fn is_in_tests(&self) -> bool {
        self.is_in_tests
    }

    /// Returns the packages whose tests ran.
    pub(super) fn packages(&self) -> &BTreeSet<String> {
        &self.packages
    }

    /// Returns the packages whose test program ended before its tests, and did not do so on the
    /// base. Packages that the base does not have are exempt. Without a base, all these packages
    /// count if the output names single tests.
    pub(super) fn cut_short(&self, base: Option<&Self>) -> BTreeSet<&str> {
        let was_whole = |package: &&String| match base {
            // A failed package is never silent, so the base must also name tests of those that
            // pass.
            Some(base) if base.packages.contains(*package) => base.is_verbose && !base.silent.contains(*package),
            Some(base) => base.broken.contains(*package) && self.is_verbose,
            None => self.is_verbose,
        };
        self.silent.iter().filter(was_whole).map(String::as_str).collect()
    }
}

const RUN: &str = "=== RUN   ";
const PASSED: &str = "--- PASS: ";
const FAILED: &str = "--- FAIL: ";
const SKIPPED: &str = "--- SKIP: ";

/// Parses `=== RUN   TestAdds` of `go test -v`, `--- FAIL: TestAdds (0.00s)`, or
/// `FAIL m/calc 0.003s` of a package. Subtests are not counted.
pub(super) fn summary(line: &str) -> Option<(u64, u64)> {
    if line.contains(RUN) {
        return begun(line).map(|_| (1, 0));
    }
    let has_failed = ended(line, FAILED).is_some() || (line.starts_with("FAIL") && package(line).is_some());
    has_failed.then_some((0, 1))
}

/// Parses `--- SKIP: TestAdds (0.00s)`.
pub(super) fn skipped(line: &str) -> Option<u64> {
    ended(line, SKIPPED).map(|_| 1)
}

/// Returns the test in `--- PASS: TestAdds (0.00s)` or `--- FAIL: TestAdds (0.00s)`.
pub(super) fn name(line: &str) -> Option<&str> {
    ended(line, PASSED).or_else(|| ended(line, FAILED))
}

/// Returns the package in `ok   m/calc 0.002s` or `FAIL m/calc 0.003s`.
pub(super) fn package(line: &str) -> Option<&str> {
    let mut parts = line.split('\t').map(str::trim);
    let (word, package, time) = (parts.next()?, parts.next()?, parts.next()?);
    let has_run = time == "(cached)" || time.strip_suffix('s').is_some_and(|time| time.parse::<f64>().is_ok());
    (has_run && ["ok", "FAIL"].contains(&word)).then_some(package)
}

/// Returns the test in `=== RUN   TestAdds`. Output of another test without a line end may precede
/// it.
fn begun(line: &str) -> Option<&str> {
    line.split_once(RUN).map(|(_, name)| name).filter(|name| is_test(name))
}

fn ended<'l>(line: &'l str, mark: &str) -> Option<&'l str> {
    let (_, rest) = line.split_once(mark)?;
    let (name, time) = rest.split_once(" (")?;
    (time.ends_with("s)") && is_test(name)).then_some(name)
}

/// Returns whether a name is that of a test and not of a subtest.
fn is_test(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str, command: &str) -> GoTests {
        let mut printed = GoTests::default();
        text.lines().for_each(|line| printed.read_line(line.trim()));
        printed.note_command(command);
        printed
    }

    #[test]
    fn a_package_that_is_ok_without_a_word_of_its_test_program_was_cut_short() {
        const WHOLE: &str = "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \tm\t0.1s";
        const CUT: &str = "=== RUN   TestB\n--- PASS: TestB (0.00s)\nPASS\nok  \tm/b\t0.1s\nok  \tm\t0.1s";
        const BROKEN: &str = "FAIL\tm [build failed]";
        let cut_short = |text: &str, command: &str, base: Option<&str>| {
            let base = base.map(|base| printed(base, command));
            printed(text, command).cut_short(base.as_ref()).into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        let silent = "ok  \tm\t0.1s";
        for (text, command, base) in [
            (silent, "go test ./...", None),
            (silent, "go vet ./... && go test ./...", Some(BROKEN)),
            (CUT, "make test", Some(WHOLE)),
            (CUT, "make test", None),
            ("=== RUN   TestA\nok  \tm\t0.1s", "make test", Some(WHOLE)),
            ("PASS\nok  \tm/b\t0.1s [no tests to run]\nok  \tm\t0.1s", "make test", Some(WHOLE)),
        ] {
            assert_eq!(cut_short(text, command, base), ["m"], "{command}: {text}");
        }
        for (text, command, base) in [
            (WHOLE, "go test ./...", None),
            ("=== RUN   TestA\n.--- PASS: TestA (0.00s)\n.PASS\nok  \tm\t0.1s", "go test ./...", Some(WHOLE)),
            // The standard output of the program was replaced.
            ("=== RUN   TestA\n--- PASS: TestA (0.00s)\nok  \tm\t0.1s", "go test ./...", Some(WHOLE)),
            // The command may have hidden the program's output.
            (silent, "make test", None),
            (silent, "go test ./... | tail -n 1", Some(BROKEN)),
            (silent, "go test -v=false ./...", Some(BROKEN)),
            (silent, "env -u GOFLAGS go test ./...", Some(BROKEN)),
            // The package was silent on the base too, or is new.
            (silent, "go test ./...", Some(silent)),
            (CUT, "go test ./...", Some("PASS\nok  \tm/b\t0.1s")),
            // The base failed, and Go names no tests of a package that passes.
            (silent, "GOFLAGS=-mod=mod go test ./...", Some("--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tm\t0.1s")),
            // Two packages in parallel.
            ("PASS\nPASS\nok  \tm\t0.1s\nok  \tm/b\t0.1s", "make test", Some(WHOLE)),
        ] {
            assert_eq!(cut_short(text, command, base), [""; 0], "{command}: {text}");
        }
    }

    #[test]
    fn names_are_found_behind_what_tests_have_printed() {
        for (line, found) in [
            ("--- PASS: TestAdds (0.00s)", Some("TestAdds")),
            ("Enter: --- PASS: TestAsk (0.01s)", Some("TestAsk")),
            ("--- FAIL: TestHalves (0.00s)", Some("TestHalves")),
            ("--- PASS: TestHalves/odd (0.00s)", None),
            ("--- SKIP: TestLater (0.00s)", None),
            ("--- PASS: see above", None),
        ] {
            assert_eq!(name(line), found, "{line}");
        }
        assert_eq!(summary("before === RUN   TestF"), Some((1, 0)));
    }
}
