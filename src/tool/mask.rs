//! Takes secrets out of texts that outlive their run: those whose values are known, and what looks like a key by its form.

use regex::Regex;
use std::fmt;
use std::sync::LazyLock;

/// Stands where a secret was.
const MASKED: &str = "***";
/// Bytes that a known secret has at least: less would turn up in any text.
const LEAST: usize = 6;

/// Forms of keys, as those who give them out document them; the last ones are passwords in URLs and values of what is called a secret.
const FORMS: &[(&str, &str)] = &[
    (r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z ]*PRIVATE KEY( BLOCK)?-----|\z)", MASKED),
    (r"(?-u:\b)(sk|pk|rk)[-_][A-Za-z0-9_-]{16,}", MASKED),
    (r"(?-u:\b)(gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})", MASKED),
    (r"(?-u:\b)(xox[a-z]-[A-Za-z0-9-]{10,}|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}|AIza[A-Za-z0-9_-]{30,})", MASKED),
    (r"(?-u:\b)A(KIA|SIA)[A-Z0-9]{16}", MASKED),
    (r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", MASKED),
    (r"://[^/ \t\r\n:@]*:[^/ \t\r\n@]+@", "://***@"),
    (r#"((?i-u:passw(or)?d|secret|token|api[_-]?key)[A-Za-z0-9_]*["`']?[ \t]*[:=][ \t]*)[^ \t\r\n]{6,}"#, "${1}***"),
    (r"((?i-u:authorization|bearer)[ \t]*:?[ \t]*(?i-u:bearer[ \t]+|basic[ \t]+)?)[A-Za-z0-9+/._~-]{16,}=*", "${1}***"),
];

/// Their patterns; each is a literal that a test compiles.
static KEYS: LazyLock<Vec<(Regex, &str)>> =
    LazyLock::new(|| FORMS.iter().filter_map(|(form, instead)| Some((Regex::new(form).ok()?, *instead))).collect());

/// Knows secrets, and shows none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Mask {
    /// The longest first, so that none is left in part.
    secrets: Vec<String>,
}

impl Mask {
    /// Of these secrets; the very short ones are not heeded.
    pub fn new<S: Into<String>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let mut secrets: Vec<String> = secrets.into_iter().map(Into::into).collect();
        secrets.retain(|secret| secret.len() >= LEAST);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    /// The text with `***` for each secret.
    pub fn masked(&self, text: &str) -> String {
        let known = self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, MASKED));
        KEYS.iter().fold(known, |text, (key, instead)| key.replace_all(&text, *instead).into_owned())
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mask({} secrets)", self.secrets.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_a_pattern() {
        assert_eq!(KEYS.len(), FORMS.len());
    }

    #[test]
    fn known_secrets_and_what_looks_like_a_key_are_taken_out() {
        let mask = Mask::new(["hush-hush", "hush-hush-more", "a"]);
        for (text, masked) in [
            ("say hush-hush-more, hush-hush and a", "say ***, *** and a"),
            ("key sk-ant-api03-abcdefgh12345678 works", "key *** works"),
            ("ghp_abcdefghijklmnopqrstuvwxyz0123456789!", "***!"),
            ("AKIAIOSFODNN7EXAMPLE", "***"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghij", "***"),
            ("clone https://me:pa55word@example.com/x", "clone https://***@example.com/x"),
            ("DB_PASSWORD=hunter2hunter2 in .env", "DB_PASSWORD=*** in .env"),
            ("\"api_key\": x, api-key: 'abcdef123'", "\"api_key\": x, api-key: ***"),
            ("Authorization: Bearer abcdefghijklmnop1234==", "Authorization: Bearer ***"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest", "***\nrest"),
            ("-----BEGIN PRIVATE KEY-----\nMIIE", "***"),
            ("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIE\n-----END RSA PRIVATE KEY-----", "***"),
            ("a -----BEGIN PGP PRIVATE KEY BLOCK-----\nlQ\n-----END PGP PRIVATE KEY BLOCK----- b", "a *** b"),
            (
                "the task-skipping parser; tokens are words; src/a.rs:10",
                "the task-skipping parser; tokens are words; src/a.rs:10",
            ),
        ] {
            assert_eq!(mask.masked(text), masked, "{text}");
        }
        assert_eq!(format!("{mask:?}"), "Mask(2 secrets)");
    }
}
