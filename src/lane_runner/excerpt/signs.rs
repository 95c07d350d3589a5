//! The meaning of output lines: a table of patterns, one row for each kind of line of a tool.
//!
//! The first matching row counts, so exceptions precede the general rows. Patterns match bytes:
//! write no character outside ASCII in a class. Cover each new row with a case in `cases/`.

use self::LineMeaning::{Cause, Heading, Hint, More, Name, Noise, Sum, Warning};
use self::SignReach::{Deeper, Line, Lines, Paragraph};
use regex::bytes::{RegexSet, RegexSetBuilder};
use std::sync::LazyLock;

/// A row of the table.
pub(super) struct Sign {
    /// The tool that prints the line. A heading applies to causes of the same tool.
    pub(super) tool: &'static str,
    pattern: &'static str,
    /// The meaning of the line.
    pub(super) means: LineMeaning,
    /// The number of indented lines directly before it that belong to it.
    pub(super) before: usize,
}

/// The role of a line in an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineMeaning {
    /// Explains a failure.
    Cause(SignReach),
    /// Continues the lines above it, of any kind.
    More(SignReach),
    /// Gives the location of the causes below it; shown only with a cause.
    Heading,
    /// Names the failed item.
    Name,
    /// Summarizes the result at the end.
    Sum,
    /// May explain a failure. Similar words also occur in the output of successful steps.
    Hint(SignReach),
    /// Explains a failure only if no other line does.
    Warning(SignReach),
    /// Explains nothing: progress, passed tests, frames of a backtrace.
    Noise,
}

/// The number of lines below a line that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignReach {
    /// No further line.
    Line,
    /// Exactly this number of lines.
    Lines(usize),
    /// Lines up to an empty line, at most this number.
    Paragraph(usize),
    /// Empty lines and more deeply indented lines, at most this number.
    Deeper(usize),
}

/// Returns the row of the table for a line.
pub(super) fn sign_of(line: &str) -> Option<&'static Sign> {
    let line = line.as_bytes();
    if !SET.is_match(line) {
        return None;
    }
    SET.matches(line).iter().next().map(|row| &SIGNS[row])
}

static SET: LazyLock<RegexSet> = LazyLock::new(|| {
    let built = RegexSetBuilder::new(SIGNS.iter().map(|row| row.pattern)).unicode(false).build();
    built.expect("the patterns are constants, and a test builds them")
});

/// `_why` documents the row for readers of the table.
const fn row(tool: &'static str, pattern: &'static str, means: LineMeaning, _why: &'static str) -> Sign {
    Sign { tool, pattern, means, before: 0 }
}

impl Sign {
    const fn with(self, before: usize) -> Self {
        Self { before, ..self }
    }
}

#[rustfmt::skip]
static SIGNS: &[Sign] = &[
    // Omitted for all tools.
    row("any", r"^\s*\[?[=#>.\- ]*\]?\s*[0-9]{1,3}(\.[0-9]+)?%", Noise, "progress bars"),
    row("any", r"^\s*(Downloading|Downloaded|Fetching|Unpacking|Extracting|Collecting|Resolving|Using cached|Get:[0-9]+|Hit:[0-9]+|Receiving objects|Resolving deltas|Progress)\b.*", Noise, "downloads of apt, cargo, git, go, pip, maven"),
    row("any", r"^\s*(✓|✔|√) ", Noise, "passed, in jest, vitest, mocha and node"),

    row("cargo", r"^\s*(Compiling|Checking|Finished|Running|Doc-tests|Updating|Locking|Adding|Fresh|Blocking|Documenting) ", Noise, "what it is doing"),
    row("cargo", r"^test .* \.\.\. (ok|ignored|bench:)", Noise, "passed"),
    row("cargo", r"^test result: ok\.", Noise, "passed"),
    row("cargo", r"^test .* \.\.\. FAILED", Name, "names the test when its output never comes, as after an abort"),
    row("cargo", r"^---- .+ ----$", Heading, "whose output follows, with the panic somewhere in it"),
    row("cargo", r"^thread '.*' (\([0-9]+\) )?panicked at ", Cause(Paragraph(16)), "the place, the message, left and right"),
    row("cargo", r"^Error: ", Cause(Paragraph(8)), "a test or main that returned an error"),
    row("cargo", r"^stack backtrace:|^note: (run with `RUST_BACKTRACE|Some details are omitted)", Noise, "backtrace"),
    row("cargo", r"^ {2,}[0-9]+: (0x[0-9a-f]+ - )?\S|^ {10,}at \S+:[0-9]+", Noise, "frames; the message has the place already"),
    row("cargo", r"^test result: FAILED|^error: (test failed|[0-9]+ targets? failed|doctest failed)", Sum, "how many"),
    row("nextest", r"^ *(PASS|SLOW|START|SKIP) \[", Noise, "passed"),
    row("nextest", r"^ *(FAIL|TIMEOUT|SIG[A-Z]+|ABORT|LEAK) \[", Name, "names the test"),
    row("rustc", r"^error: (could not compile|aborting due to|[0-9]+ jobs? failed|build failed)|^Some errors have detailed", Sum, "how many"),
    row("rustc", r"^For more information about this error|^For more information about an error", Noise, "an advertisement"),
    row("rustc", r"^warning: .* generated [0-9]+ warning", Noise, "counts"),
    row("rustc", r"^error(\[[A-Z]+[0-9]+\])?: ", Cause(Paragraph(40)), "whole, with `-->` and the marked source; clippy too"),
    row("rustc", r"^warning: ", Warning(Paragraph(12)), "under -D warnings they are errors and say so"),

    row("pytest", r"^\S+::.* (PASSED|SKIPPED|XFAIL)|^[.sxX]+ +\[ *[0-9]+%\]|^\S+\.py [.sxX]+( +\[ *[0-9]+%\])?$", Noise, "passed"),
    row("pytest", r"^(FAILED|ERROR) \S+\.py|^\S+::.* (FAILED|ERROR)", Name, "names the test, and at the end the reason"),
    row("pytest", r"^_{3,} .* _{3,}$", Heading, "the test's name"),
    row("pytest", r"^E   ", Cause(Line), "the failed assertion, compared piece by piece").with(4),
    row("pytest", r"^>  ", Cause(Line), "the line of source that failed").with(4),
    row("pytest", r"^\S+\.py:[0-9]+: \S*(Error|Exception|Failed|Exit|Interrupt|Warning)$", Cause(Line), "the place"),
    row("pytest", r"^=+ .*[0-9]+ (failed|errors?).* =+$|^[0-9]+ (failed|errors?).* in [0-9.]+s", Sum, "how many"),
    row("python", r"^(FAIL|ERROR): \S+ \(", Heading, "the test's name in unittest"),
    row("python", r"^FAILED \((failures|errors)=", Sum, "how many in unittest"),
    row("python", r"^Traceback \(most recent call last\):|^  File .*, line [0-9]+", Hint(Deeper(3)), "the way to an exception"),
    row("python", r"^[A-Za-z_][A-Za-z0-9_.]*AssertionError\b|^AssertionError\b", Cause(Paragraph(16)), "a failed assertion, in Python and JavaScript").with(4),
    row("python", r"^(Uncaught |Unhandled )?[A-Za-z_][A-Za-z0-9_.]*(Error|Exception|Exit|Interrupt)( \[[A-Z_]+\])?(:|$)", Hint(Paragraph(12)), "an exception; a program that handles it may print it too").with(6),
    row("ruff", r"^[A-Z]{1,4}[0-9]{3,4} (\[\*\] )?[^0-9 ]", Cause(Paragraph(20)), "a finding, with its place in the line below"),
    row("ruff", r"^\S+\.pyi?:[0-9]+:[0-9]+: [A-Z]+[0-9]+ ", Cause(Line), "a finding on one line; flake8 too"),

    row("go", r"^(=== (RUN|PAUSE|CONT|NAME)|\s*--- (PASS|SKIP):|ok  \t|\?   \t|PASS$|go: downloading )", Noise, "passed"),
    row("go", r"^\s*--- FAIL: ", Cause(Deeper(20)), "the name, with messages below it, or above it under -v").with(8),
    row("go", r"^panic: ", Cause(Paragraph(6)), "the message; frames are in the paragraphs behind it"),
    row("go", r"^\t(/usr/\S*|\S*/go[0-9./-]*)/src/\S+\.go:[0-9]+", Noise, "frames of the standard library"),
    row("go", r"^\t\S+\.go:[0-9]+ \+0x|^\t\S+\.go:[0-9]+$", Cause(Line), "the first frame that is the project's own"),
    row("go", r"^(FAIL|fatal error: .*)(\t|$)|^\[build failed\]", Sum, "the package"),
    row("go", r"^# [a-z0-9./_-]+( \[.*\])?$", Heading, "the package"),
    row("go", r"^(vet: )?\S+\.go:[0-9]+(:[0-9]+)?: ", Cause(Deeper(6)), "the compiler and vet"),

    row("jest", r"^  ● Console$", Noise, "what tests print"),
    row("jest", r"^  ● ", Cause(Deeper(40)), "the name, the matcher, expected and received, the marked source"),
    row("jest", r"^\s*(✕|×) ", Name, "names the test, in vitest too"),
    row("jest", r"^(PASS|RUNS) ", Noise, "passed"),
    row("jest", r"^ ?FAIL  \S", Cause(Lines(3)), "vitest: the name and the message"),
    row("jest", r"^FAIL \S", Name, "names the file"),
    row("jest", r"^ *(Test Suites|Test Files|Tests):? +.*failed", Sum, "how many, in vitest too"),
    row("jest", r"^ *(Snapshots|Time|Start at|Duration|Ran all test suites)\b", Noise, "counts"),
    row("vitest", r"^- Expected *|^ ❯ \S+:[0-9]+:[0-9]+$", Cause(Lines(12)), "the difference; the marked source"),
    row("node", r"^(ℹ|#) fail [1-9]", Sum, "how many"),
    row("node", r"^(ℹ|#) (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) |^ok [0-9]+|^# Subtest: |^TAP version|^✖ failing tests:", Noise, "counts, passed"),
    row("node", r"^test at \S+:[0-9]+:[0-9]+$", Heading, "the place of the test"),
    row("eslint", r"^✖ [0-9]+ problem", Sum, "how many"),
    row("node", r"^\s*✖ ", Cause(Deeper(16)), "the name and the error of node --test"),
    row("node", r"^\s*not ok [0-9]+", Cause(Deeper(16)), "the name and the error in TAP"),
    row("node", r"^\s+(at )?(async )?\S+ \((node:|internal/)|^\s+at .*(node:|node_modules/)|^\s+at (java\.|jdk\.|sun\.|org\.junit|org\.apache\.maven)", Noise, "frames that are not the project's own, of node and Java"),

    row("tsc", r"^\S.*\([0-9]+,[0-9]+\): error TS[0-9]+: ", Cause(Deeper(6)), "with the chain of reasons below it"),
    row("tsc", r"^\S.*:[0-9]+:[0-9]+ - error TS[0-9]+: ", Cause(Lines(5)), "the same under --pretty, with the marked source"),
    row("tsc", r"^error TS[0-9]+: ", Cause(Line), "wrong options"),
    row("eslint", r"^(/|[A-Za-z]:\\|\./)\S.*\.[a-z]{1,6}$", Heading, "the file"),
    row("eslint", r"^\s+[0-9]+:[0-9]+\s+error\s", Cause(Line), "place, message, rule"),
    row("eslint", r"^\s+[0-9]+:[0-9]+\s+warning\s", Warning(Line), "counts under --max-warnings"),

    row("gcc", r"(In (function|member function|constructor|instantiation|lambda function|file included)|: in function) ?.*:$|^In file included from", Heading, "where the errors below are; clang and ld too"),
    row("gcc", r"^[^ :][^:]*:[0-9]+(:[0-9]+)?: (fatal |internal compiler )?error: ", Cause(Deeper(12)), "with the marked source; clang, javac and mypy too"),
    row("gcc", r"^[^ :][^:]*:[0-9]+(:[0-9]+)?: warning: ", Warning(Deeper(8)), "with the marked source"),
    row("gcc", r"^[^ :][^:]*:[0-9]+(:[0-9]+)?: note: ", More(Deeper(8)), "belongs to the error before it"),
    row("gcc", r"undefined reference to |multiple definition of |cannot find -l|^ld: (symbol|library)|^Undefined symbols", Cause(Deeper(4)), "the linker's reason"),
    row("gcc", r"^(collect2|clang|cc1\S*|ld): (error|fatal error): ", Sum, "the linker's end"),
    row("gcc", r"^==[0-9]+==ERROR: \S+Sanitizer: |runtime error: ", Cause(Lines(6)), "sanitizers"),
    row("gcc", r"Assertion .* failed\.?$|^Segmentation fault", Cause(Line), "assert(3), and a crash"),
    row("make", r"^(make|gmake)(\[[0-9]+\])?: \*\*\* ", Sum, "the target"),
    row("make", r"^(make|gmake)(\[[0-9]+\])?: (Entering|Leaving) directory|^ninja: (Entering|no work)|^\[[0-9]+/[0-9]+\] ", Noise, "progress; ninja too"),
    row("ninja", r"^FAILED: |^ninja: build stopped", Sum, "the target"),
    row("mypy", r"^Found [1-9][0-9]* errors?", Sum, "how many; tsc and ruff too"),

    row("npm", r"^npm (warn|WARN|notice|http|verb|sill|timing|info) |^npm (ERR!|error)( *$| A complete log| .*debug-0\.log)", Noise, "of no help"),
    row("npm", r"^npm (ERR!|error) (code|errno|path|command|Lifecycle|workspace|location)\b", Sum, "what a script's failure looks like from outside"),
    row("npm", r"^npm (ERR!|error) ", Hint(Line), "its own reason"),
    row("junit", r"^(\[ERROR\] )?Tests run: .*(Failures: [1-9]|Errors: [1-9])", Sum, "how many, in Maven"),
    row("junit", r"<<< (FAILURE|ERROR)!", Name, "names the test"),
    row("junit", r"expected: ?<.*> but was: ?<|^Caused by: |^Exception in thread ", Cause(Lines(2)), "assertions and exceptions of Java"),
    row("gradle", r"^\* What went wrong:", Cause(Paragraph(8)), "its own reason"),

    // Words that occur in the output of unknown tools.
    row("any", r"(?i)\b[1-9][0-9]* (errors?|failed|failures?)\b", Hint(Lines(2)), "counts of something"),
    row("any", r"(?i)\b(0|no) (errors?|failed|failures?)\b|\b(errors?|failed|failures?)[a-z ]*[:=] ?0\b", Noise, "counts of nothing"),
    row("any", r"(?i)(^|[^a-z0-9_/.-])(errors?|err!|fatal|panic|panicked|exception|failed|failures?|fail|abort(ed)?|assert(ion)?|expected|denied|refused|timed out|not found|no such file|cannot|can't|unable to|invalid|undefined|unexpected|killed|segfault|mismatch)([^a-z0-9_/]|$)", Hint(Lines(2)), "what failures are told with"),
    row("any", r"(?i)(^|[^a-z0-9_])warn(ing)?\b", Warning(Line), "what may matter"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_mean_what_the_table_says() {
        let cases = [
            ("test tests::a ... ok", Some(Noise)),
            ("test tests::a ... FAILED", Some(Name)),
            ("test result: ok. 3 passed; 0 failed; 0 ignored", Some(Noise)),
            ("test result: FAILED. 1 passed; 2 failed", Some(Sum)),
            ("Found 0 errors. Watching for file changes.", Some(Noise)),
            ("DEBUG failed lookups: 0", Some(Noise)),
            ("2 errors, 0 failed", Some(Hint(Lines(2)))),
            ("src/error.rs", None),
            ("checking error_kinds", None),
            ("error[E0308]: mismatched types", Some(Cause(Paragraph(40)))),
            ("error: could not compile `shop` (lib)", Some(Sum)),
            ("a/b.c:2:52: error: x undeclared", Some(Cause(Deeper(12)))),
            ("a/b.c:2:52: note: each undeclared", Some(More(Deeper(8)))),
            ("12:00:01.5 error: nothing of gcc", Some(Hint(Lines(2)))),
            (" ✓ cart > is empty", Some(Noise)),
            ("    ✕ adds every price (26 ms)", Some(Name)),
            ("✖ 5 problems (4 errors, 1 warning)", Some(Sum)),
            ("make[2]: *** [Makefile:4: cart] Error 1", Some(Sum)),
            ("[=====>    ] 45% of 12 MB", Some(Noise)),
            ("ValueError: bad", Some(Hint(Paragraph(12)))),
            ("plain text", None),
        ];
        for (line, means) in cases {
            assert_eq!(sign_of(line).map(|sign| sign.means), means, "{line}");
        }
    }
}
