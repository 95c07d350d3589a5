//! The tests inside a module of JavaScript or TypeScript, for Vitest, and the switches of scripts
//! and Go. Pure.

use super::outline::{Outline, TestPart};

/// The first line of tests inside a module.
const BLOCK: &str = "if (import.meta.vitest)";
/// Texts by which code finds out that a test runner runs it.
const SWITCHES: [&str; 8] = [
    "import.meta.vitest",
    "process.env.VITEST",
    "VITEST_WORKER_ID",
    "JEST_WORKER_ID",
    "NODE_TEST_CONTEXT",
    "NODE_ENV === \"test\"",
    "NODE_ENV === 'test'",
    "NODE_ENV == 'test'",
];
/// Texts by which Go code finds out that a test runs it.
const SWITCHES_OF_GO: [&str; 2] = ["testing.Testing()", "flag.Lookup(\"test.v\")"];

/// Returns the outline of a module. A block of tests begins and ends at the left margin, as
/// formatters lay it out; any other use of `import.meta.vitest` is a switch.
pub(super) fn outline(text: &str) -> Outline {
    let (mut outline, mut at, mut open) = (Outline::default(), 0, None::<usize>);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let bare = line.trim_end();
        match open {
            None if bare.starts_with(BLOCK) && bare.ends_with('{') => open = Some(at),
            None => outline.switches.extend(super::signs_in(without_comment(bare), &SWITCHES)),
            Some(start) if bare == "}" => {
                let lines = text[start..end].lines().map(str::trim).filter(|line| !line.is_empty());
                let words = lines.collect::<Vec<_>>().join("\n");
                let (around, name) = (Vec::new(), BLOCK.to_owned());
                outline.parts.push(TestPart { around, name, words, range: start..end, is_test: true });
                open = None;
            }
            Some(_) => {}
        }
        at = end;
    }
    outline.switches.sort();
    outline
}

/// Returns the outline of a file of Go that is no test.
pub(super) fn outline_of_go(text: &str) -> Outline {
    let lines = text.lines().map(without_comment);
    let mut switches: Vec<String> = lines.flat_map(|line| super::signs_in(line, &SWITCHES_OF_GO)).collect();
    switches.sort();
    Outline { switches, ..Outline::default() }
}

fn without_comment(line: &str) -> &str {
    let is_comment = line.trim_start().starts_with(['*', '/']);
    if is_comment { "" } else { line.split(" // ").next().unwrap_or(line) }
}
