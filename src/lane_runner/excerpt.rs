//! Picks the part of a step's output that explains its result. Pure.

use crate::process::shorten;
use crate::verdict::StepStatus;

/// Bytes of an excerpt that explains a failure.
const EXPLAINED: usize = 4 * 1024;
/// Bytes of an excerpt where nothing has to be explained.
const BRIEF: usize = 1024;
/// Bytes for lines that name an error far from the end.
const ERRORS: usize = 1536;
/// Lines shown with such a line.
const CONTEXT: usize = 3;
/// What stands between two parts.
const GAP: &str = "[…]\n";

/// At most 4 KiB of `text`, which is clean already: of a failed step the lines that name an error, from the first on, and then
/// the end; of others less.
pub(super) fn excerpt(text: &str, status: StepStatus) -> String {
    let text = text.trim_end();
    let limit = match status {
        StepStatus::Failed | StepStatus::TimedOut | StepStatus::Errored => EXPLAINED,
        StepStatus::Passed | StepStatus::Cancelled | StepStatus::Skipped => BRIEF,
    };
    if limit == BRIEF || text.len() <= limit {
        return shorten(text, limit);
    }
    let end = whole_lines_of_the_end(text, limit - ERRORS);
    let errors = errors_of(&text[..end]);
    if errors.is_empty() { shorten(text, limit) } else { format!("{errors}{GAP}{}", &text[end..]) }
}

/// Where the last whole lines begin that fit into `most` bytes; in the middle of a line if it is longer than that.
fn whole_lines_of_the_end(text: &str, most: usize) -> usize {
    let start = (text.len() - most..).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text[start..].find('\n').map_or(start, |at| start + at + 1)
}

/// The lines that name an error, each with a few that follow, as many as there is room for.
fn errors_of(text: &str) -> String {
    let mut picked = String::new();
    let (mut shown, mut skipped) = (0, false);
    for line in text.lines() {
        if names_an_error(line) {
            shown = CONTEXT;
        }
        if shown == 0 {
            skipped = true;
            continue;
        }
        shown -= 1;
        let line = shorten(line, 240).replace('\n', " ");
        if picked.len() + GAP.len() * 2 + line.len() + 1 > ERRORS {
            break;
        }
        if std::mem::take(&mut skipped) {
            picked.push_str(GAP);
        }
        picked.push_str(&line);
        picked.push('\n');
    }
    picked
}

fn names_an_error(line: &str) -> bool {
    const SIGNS: [&str; 14] = [
        "error:",
        "error[",
        "error ts",
        "failed",
        "failure",
        "panicked at",
        "traceback",
        "assert",
        "exception",
        "fatal:",
        "undefined reference",
        "not ok ",
        "✗",
        "✕",
    ];
    let line = line.trim_start().to_lowercase();
    !line.contains(" 0 failed") && SIGNS.iter().any(|sign| line.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_short_output_is_whole() {
        assert_eq!(excerpt("one\ntwo\n\n", StepStatus::Failed), "one\ntwo");
    }

    #[test]
    fn of_a_long_failure_the_errors_and_the_end_are_shown() {
        let noise = |name: &str| (0..400).map(|n| format!("{name} {n}\n")).collect::<String>();
        let text = format!(
            "{}error[E0308]: mismatched types\n --> src/lib.rs:4\n  |\n{}the end\n",
            noise("before"),
            noise("after")
        );
        let short = excerpt(&text, StepStatus::Failed);
        assert!(
            short.starts_with("[…]\nerror[E0308]: mismatched types\n --> src/lib.rs:4\n  |\n[…]\nafter "),
            "{short}"
        );
        assert!(short.ends_with("after 399\nthe end") && short.len() <= EXPLAINED);
    }

    #[test]
    fn a_pass_is_brief() {
        assert!(excerpt(&"fine\n".repeat(1000), StepStatus::Passed).len() <= BRIEF);
    }

    proptest! {
        #[test]
        fn no_excerpt_is_longer_than_its_limit(lines in proptest::collection::vec("(error: )?\\PC{0,300}", 0..80)) {
            prop_assert!(excerpt(&lines.join("\n"), StepStatus::Failed).len() <= EXPLAINED);
        }
    }
}
