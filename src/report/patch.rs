//! Commit messages of verified work, and patches as mails for `git am`. Pure.
//!
//! The subject is the title of the task. The summary is the model's own text, so the body quotes
//! it. No line of it works as a trailer (`Signed-off-by:`), or as a command for a CI service
//! (`[skip ci]`) or an issue tracker (`Closes #1`).

use regex::Regex;
use std::sync::LazyLock;

/// The maximum length of a subject, in characters.
const SUBJECT: usize = 72;
/// The maximum size of a body before it is quoted, in bytes.
const BODY: usize = 16 * 1024;
/// Words by which CI services skip a commit: `[skip ci]`, `[ci-skip]`, `[no ci]`, `[skip netlify]`,
/// `***NO_CI***`, `--skip-ci`.
const SKIPS: &str = r"(?i)\[([^\[\]\n]*(?:skip|\bno[ _-]?(?:ci|build|deploy|test)|ci[ _-]?(?:no|off|only))[^\[\]\n]*)\]|\*{2,}(no_ci)\*{2,}|-*(skip-ci)\b";
/// Words by which issue trackers close an issue: `Closes #1`, `fixed: owner/name#1`, `resolves
/// https://…/issues/1`, `fixes ABC-1`.
const CLOSES: &str = r"(?i)\b((?:clos|fix|resolv|implement|complet)(?:e|es|ed|s|ing)?)\b:?\s+((?:issues?\s+)?(?:[\w./-]*[#!]\d+|gh-\d+|https?://\S+/\d+|[a-z][a-z0-9]+-\d+))";
/// Commands for issue trackers after the number of an issue: `ABC-1 #done`.
const COMMANDS: &str = r"(?i)#(close|done|resolve|time|comment|transition|start|assign)";

/// Returns the subject of a commit: the title of its task on one line of limited length. A title of
/// a single word gets the prefix `fledge: `.
pub fn subject_of(title: &str) -> String {
    let title = plain(title).split_whitespace().collect::<Vec<_>>().join(" ");
    let title = title.trim_start_matches(['#', ' ']);
    let whole = match title {
        "" => "fledge: verified work".to_owned(),
        word if !word.contains(' ') => format!("fledge: {word}"), // mostly the name of a file
        words => words.to_owned(),
    };
    if whole.chars().count() <= SUBJECT {
        return whole;
    }
    let cut: String = whole.chars().take(SUBJECT - 1).collect();
    cut.trim_end().chars().chain(['…']).collect()
}

/// Returns the body of a commit: the summary, cut to a limit and quoted with `> `.
pub fn body_of(summary: &str) -> String {
    let text = harmless(&plain(summary.trim()));
    let bounded = text[..text.floor_char_boundary(BODY)].trim_end();
    let quoted = bounded.lines().map(|line| format!("> {line}").trim_end().to_owned());
    quoted.collect::<Vec<_>>().join("\n")
}

/// Disarms the words that CI services and issue trackers act on.
fn harmless(text: &str) -> String {
    static PATTERNS: LazyLock<[Option<Regex>; 3]> =
        LazyLock::new(|| [SKIPS, CLOSES, COMMANDS].map(|pattern| Regex::new(pattern).ok()));
    let replacements = ["($1$2$3)", "$1 ($2)", "$1"];
    let replaced = PATTERNS.iter().zip(replacements).fold(text.to_owned(), |text, (pattern, replacement)| {
        pattern.as_ref().map_or(text.clone(), |pattern| pattern.replace_all(&text, replacement).into_owned())
    });
    replaced.replace(">8", "> 8").replace("8<", "8 <") // `git am --scissors` cuts there
}

/// Removes control characters.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// The head of a patch.
#[derive(Debug, Clone, Copy)]
pub struct MailPatch<'m> {
    /// The author as `Name <mail>`.
    pub author: &'m str,
    /// The date in the format of RFC 2822.
    pub date: &'m str,
    /// The subject, on one line.
    pub subject: &'m str,
    /// The body as returned by [`body_of`].
    pub body: &'m str,
    /// Names and values for the end of the message.
    pub trailers: &'m [(String, String)],
}

impl MailPatch<'_> {
    /// Builds the whole mail with this diff.
    pub fn with(&self, diff: &[u8]) -> Vec<u8> {
        let Self { author, date, subject, body, trailers } = self;
        let gap = if body.is_empty() { "" } else { "\n\n" };
        let trailers: String = trailers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        let head = format!(
            "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: {author}\nDate: {date}\n\
             Subject: [PATCH] {subject}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n\
             Content-Transfer-Encoding: 8bit\n\n{body}{gap}{trailers}---\n\n"
        );
        [head.as_bytes(), diff, format!("-- \nfledge {}\n", env!("CARGO_PKG_VERSION")).as_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_the_title_on_one_bounded_line() {
        for (title, subject) in [
            ("Mend it", "Mend it"),
            ("# Mend\u{1b}[2J\n it ", "Mend[2J it"),
            ("fix-all", "fledge: fix-all"),
            (" \n", "fledge: verified work"),
        ] {
            assert_eq!(subject_of(title), subject);
        }
        let subject = subject_of(&"word ".repeat(40));
        assert!(subject.chars().count() <= SUBJECT && subject.ends_with('…'), "{subject}");
    }

    #[test]
    fn a_body_quotes_the_summary_and_nothing_in_it_works() {
        for (summary, body) in [
            ("Mended it.\n\nAll of it.", "> Mended it.\n>\n> All of it."),
            (" \n", ""),
            ("Signed-off-by: A <a@b>", "> Signed-off-by: A <a@b>"),
            ("Fledge-Verified-Tree: 1234", "> Fledge-Verified-Tree: 1234"),
            ("Done [skip ci] [CI-Skip] [no ci] [skip netlify]", "> Done (skip ci) (CI-Skip) (no ci) (skip netlify)"),
            ("***NO_CI*** --skip-ci", "> (NO_CI) (skip-ci)"),
            (
                "Closes #12, fixed: a/b#3 and resolves https://e.x/a/issues/4",
                "> Closes (#12), fixed (a/b#3) and resolves (https://e.x/a/issues/4)",
            ),
            ("Fixes GH-7; fixing issue #8; ABC-1 #done", "> Fixes (GH-7); fixing (issue #8); ABC-1 done"),
            ("-- >8 --", "> -- > 8 --"),
            ("I fixed 3 tests [see list], array[0] = 1", "> I fixed 3 tests [see list], array[0] = 1"),
        ] {
            assert_eq!(body_of(summary), body);
        }
        assert!(body_of(&"word ".repeat(8000)).len() < BODY + 10);
    }

    #[test]
    fn no_line_of_a_message_is_taken_for_a_patch() {
        let body = body_of("From: me\n---\ndiff --git a/x b/x\nfine");
        let mail = MailPatch {
            author: "A <a@b>",
            date: "Sun, 1 Jan 2001 00:00:00 +0000",
            subject: "s",
            body: &body,
            trailers: &[],
        };
        let text = String::from_utf8(mail.with(b"diff --git a/y b/y\n")).unwrap();
        let message = text.split_once("\n\n").unwrap().1;
        assert!(
            message.starts_with("> From: me\n> ---\n> diff --git a/x b/x\n> fine\n\n---\n\ndiff --git a/y b/y\n-- \n"),
            "{text}"
        );
    }
}
