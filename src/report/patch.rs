//! A commit message from what a model said, and a patch as the mail that `git am` takes. Pure.

/// Characters of a subject.
const SUBJECT: usize = 72;
/// Bytes of a body.
const BODY: usize = 16 * 1024;

/// The first line of a summary, bounded; where it says nothing, the title.
pub fn subject_of(summary: &str, title: &str) -> String {
    let first = plain(summary.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default());
    let first = first.trim_start_matches(['#', ' ']).trim();
    let whole = if first.is_empty() { format!("fledge: {}", plain(title).trim()) } else { first.to_owned() };
    if whole.chars().count() <= SUBJECT {
        return whole;
    }
    let cut: String = whole.chars().take(SUBJECT - 1).collect();
    cut.trim_end().chars().chain(['…']).collect()
}

/// The rest of a summary, or all of it where its first line is too long for a subject; bounded.
pub fn body_of(summary: &str) -> String {
    let text = plain(summary.trim());
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let is_whole = first.trim_start_matches(['#', ' ']).trim().chars().count() <= SUBJECT;
    let body = if is_whole { rest.trim() } else { &text };
    body[..body.floor_char_boundary(BODY)].trim_end().to_owned()
}

/// Without what has no place in a commit message.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// A patch with its head.
#[derive(Debug, Clone, Copy)]
pub struct Mail<'m> {
    /// `Name <mail>`.
    pub author: &'m str,
    /// As RFC 2822 has it.
    pub date: &'m str,
    /// One line.
    pub subject: &'m str,
    /// Any text.
    pub body: &'m str,
    /// Names and values for the end of the message.
    pub trailers: &'m [(String, String)],
}

impl Mail<'_> {
    /// The whole mail around a difference.
    pub fn with(&self, diff: &[u8]) -> Vec<u8> {
        let Self { author, date, subject, body, trailers } = self;
        let body: String = body.lines().map(|line| format!("{}\n", quoted(line))).collect();
        let gap = if body.is_empty() { "" } else { "\n" };
        let trailers: String = trailers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        let head = format!(
            "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: {author}\nDate: {date}\n\
             Subject: [PATCH] {subject}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n\
             Content-Transfer-Encoding: 8bit\n\n{body}{gap}{trailers}---\n\n"
        );
        [head.as_bytes(), diff, format!("-- \nfledge {}\n", env!("CARGO_PKG_VERSION")).as_bytes()].concat()
    }
}

/// A line of the message that cannot be taken for the start of the difference, of another mail or of a head.
fn quoted(line: &str) -> String {
    let is_head = |name: &str| line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    let would_be_taken = ["---", "diff -", "Index: ", "From ", ">From "].iter().any(|start| line.starts_with(start))
        || ["From:", "Date:", "Subject:", "Content-"].into_iter().any(is_head)
        || line.contains(">8") && line.contains("--");
    if would_be_taken { format!(" {line}") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_one_bounded_line_and_the_body_is_the_rest() {
        let long = "word ".repeat(40);
        let cases = [
            ("Mended it.\n\nAll of it.", "Mended it.", "All of it."),
            ("## Done\nMore\u{1b}[2J", "Done", "More[2J"),
            (" \n", "fledge: Mend it", ""),
            ("Only this", "Only this", ""),
        ];
        for (summary, subject, body) in cases {
            assert_eq!((subject_of(summary, "Mend it").as_str(), body_of(summary).as_str()), (subject, body));
        }
        let subject = subject_of(&long, "t");
        assert!(subject.chars().count() <= SUBJECT && subject.ends_with('…'), "{subject}");
        assert_eq!(body_of(&long), long.trim());
    }

    #[test]
    fn no_line_of_a_message_is_taken_for_a_patch() {
        let body = "From: me\n---\ndiff --git a/x b/x\nfine";
        let mail =
            Mail { author: "A <a@b>", date: "Sun, 1 Jan 2001 00:00:00 +0000", subject: "s", body, trailers: &[] };
        let text = String::from_utf8(mail.with(b"diff --git a/y b/y\n")).unwrap();
        let message = text.split_once("\n\n").unwrap().1;
        assert!(
            message.starts_with(" From: me\n ---\n diff --git a/x b/x\nfine\n\n---\n\ndiff --git a/y b/y\n-- \n"),
            "{text}"
        );
    }
}
