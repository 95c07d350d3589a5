//! The redaction of foreign text for display: one line, no control characters, no secrets, bounded
//! length.

/// The size limit of a line, in bytes.
const MAX_LINE: usize = 300;
/// The shortest secret, or part of one, that is redacted, in bytes. Shorter texts reveal nothing
/// and would match everywhere.
const MIN_SECRET: usize = 4;

/// Returns the text as one line of at most [`MAX_LINE`] bytes, with `***` for every secret.
///
/// The text may have been cut before, so the beginning of a secret at its end is redacted too.
/// Control characters are removed first, so that they cannot hide a secret. The line is shortened
/// last, so that the cut cannot split a secret.
pub(super) fn line(text: &str, secrets: &[&str]) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut line: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
    for secret in secrets.iter().filter(|secret| secret.len() >= MIN_SECRET) {
        line = line.replace(secret, "***");
        let cut = (MIN_SECRET..secret.len())
            .rev()
            .filter_map(|length| secret.get(..length))
            .find(|head| line.ends_with(head));
        if let Some(head) = cut {
            line.truncate(line.len() - head.len());
            line.push_str("***");
        }
    }
    if line.len() > MAX_LINE {
        let fits = (0..=MAX_LINE - '…'.len_utf8()).rev().find(|end| line.is_char_boundary(*end));
        line.truncate(fits.unwrap_or(0));
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_replaced_wherever_it_stands() {
        assert_eq!(line("bad key sk-canary,\r\n\tsk-canary!", &["sk-canary"]), "bad key ***, ***!");
        assert_eq!(line("bad sk-\u{0}can\u{1b}ary", &["sk-canary"]), "bad ***");
        assert_eq!(line("the text was cut at sk-cana", &["sk-canary"]), "the text was cut at ***");
        assert_eq!(line("nothing to hide", &["", "sk-canary"]), "nothing to hide");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let cut = line(&"é".repeat(400), &[]);
        assert!(cut.len() <= MAX_LINE && cut.ends_with("é…"), "{cut}");
    }
}
