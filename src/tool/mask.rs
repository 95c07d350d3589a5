//! Removal of secrets from texts. It finds known secrets in all their usual encodings. In texts
//! that outlive their run, it also finds everything in the form of a key.

mod encoding;
mod parts;

pub use parts::{in_url, parts, parts_of_header};

use encoding::SqueezedText;
use memchr::memmem::Finder;
use regex::Regex;
use std::fmt;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// The replacement of a secret.
const MASKED: &str = "***";
/// The minimum length of a known secret, in bytes. A shorter one would occur in many texts.
const LEAST: usize = 6;

/// Forms of keys as their issuers document them. The last entries are passwords in URLs and values
/// whose names suggest a secret.
const FORMS: &[(&str, &str)] = &[
    (r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z ]*PRIVATE KEY( BLOCK)?-----|\z)", MASKED),
    (r"(?-u:\b)(sk|pk|rk)[-_][A-Za-z0-9_-]{16,}", MASKED),
    (r"(?-u:\b)(gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})", MASKED),
    (r"(?-u:\b)(xox[a-z]-[A-Za-z0-9-]{10,}|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}|AIza[A-Za-z0-9_-]{30,})", MASKED),
    (r"(?-u:\b)A(KIA|SIA)[A-Z0-9]{16}", MASKED),
    (r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", MASKED),
    (r"://[^/ \t\r\n:@]*:[^/ \t\r\n@]+@", "://***@"),
    (r#"((?i-u:passw(or)?d|secret|token|api[_-]?key)[A-Za-z0-9_]*["`']?=)[^ \t\r\n]{6,}"#, "${1}***"),
    // After a colon or in code, a word without digits is more likely prose: `token: expected`.
    (
        concat!(
            r#"((?i-u:passw(or)?d|secret|token|api[_-]?key)[A-Za-z0-9_]*["`']?[ \t]*[:=][ \t]*)"#,
            r#"(["'][^ \t\r\n]{5,}|[0-9][^ \t\r\n]{5,}|[^ \t\r\n0-9][0-9][^ \t\r\n]{4,}|"#,
            r#"[^ \t\r\n0-9]{2}[0-9][^ \t\r\n]{3,}|[^ \t\r\n0-9]{3}[0-9][^ \t\r\n]{2,}|"#,
            r#"[^ \t\r\n0-9]{4}[0-9][^ \t\r\n]|[^ \t\r\n0-9]{5,}[0-9])[^ \t\r\n]*"#
        ),
        "${1}***",
    ),
    (r"((?i-u:authorization|bearer)[ \t]*:?[ \t]*(?i-u:bearer[ \t]+|basic[ \t]+)?)[A-Za-z0-9+/._~-]{16,}=*", "${1}***"),
];

/// The compiled patterns of [`FORMS`]. A test checks that every form compiles.
static KEYS: LazyLock<Vec<(Regex, &str)>> =
    LazyLock::new(|| FORMS.iter().filter_map(|(form, instead)| Some((Regex::new(form).ok()?, *instead))).collect());

/// A set of secrets that can be removed from texts.
#[derive(Clone, Default)]
pub struct SecretMask {
    /// The secrets in plain form, longest first, so that no part of one is left.
    secrets: Vec<String>,
    /// All encodings of the secrets that no text contains by chance. They are sorted longest first
    /// and contain no white space.
    encodings: Vec<Finder<'static>>,
    /// The names of the secrets that any text may contain by chance.
    plain: Vec<String>,
    late: LateSecrets,
}

/// Secrets that become known after masks that share this set were created, such as keys that a
/// program prints.
#[derive(Clone, Default)]
pub struct LateSecrets(Arc<RwLock<LateSecretSet>>);

/// The secrets added so far, and a mask for them.
#[derive(Default)]
struct LateSecretSet {
    secrets: Vec<String>,
    mask: Option<Arc<SecretMask>>,
}

impl LateSecrets {
    /// Adds a secret and the parts of it that are secret by themselves.
    pub fn add(&self, secret: &str) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !known.secrets.iter().any(|known| known == secret) {
            known.secrets.push(secret.to_owned());
            known.mask =
                Some(Arc::new(SecretMask::new(known.secrets.iter().flat_map(|secret| parts_of_header(secret)))));
        }
    }

    fn mask(&self) -> Option<Arc<SecretMask>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).mask.clone()
    }
}

impl SecretMask {
    /// Creates a mask for these secrets. Very short secrets are ignored.
    pub fn new<S: Into<String>>(secrets: impl IntoIterator<Item = S>) -> Self {
        Self::of(secrets.into_iter().map(|secret| (String::new(), secret)))
    }

    /// Creates a mask for these secrets, given as pairs of name and secret.
    pub fn of<N: Into<String>, S: Into<String>>(secrets: impl IntoIterator<Item = (N, S)>) -> Self {
        let named: Vec<(String, String)> =
            secrets.into_iter().map(|(name, secret)| (name.into(), secret.into())).collect();
        let is_told = |(name, secret): &&(String, String)| !name.is_empty() && is_word(secret) && !is_maskable(secret);
        let mut plain: Vec<String> = named.iter().filter(is_told).map(|(name, _)| name.clone()).collect();
        plain.sort();
        plain.dedup();
        let mut secrets: Vec<String> = named.into_iter().map(|(_, secret)| secret).collect();
        secrets.retain(|secret| secret.len() >= LEAST);
        let longest_first = |texts: &mut Vec<String>| {
            texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            texts.dedup();
        };
        longest_first(&mut secrets);
        let telling = secrets.iter().filter(|secret| is_maskable(secret));
        let mut encodings: Vec<String> = telling.flat_map(|secret| encoding::all(secret)).collect();
        longest_first(&mut encodings);
        let encodings = encodings.iter().map(|encoding| Finder::new(encoding).into_owned()).collect();
        Self { secrets, encodings, plain, late: LateSecrets::default() }
    }

    /// Makes the mask also remove the secrets in `late`.
    #[must_use]
    pub fn with(self, late: &LateSecrets) -> Self {
        Self { late: late.clone(), ..self }
    }

    /// Returns the names of the secrets that [`SecretMask::hidden`] leaves in place, because any
    /// text may contain the same word or number by chance.
    pub fn plain(&self) -> &[String] {
        &self.plain
    }

    /// Returns whether [`SecretMask::hidden`] has nothing to hide.
    pub fn is_idle(&self) -> bool {
        self.encodings.is_empty() && self.late.mask().is_none_or(|late| late.encodings.is_empty())
    }

    /// Replaces each known secret by `***`, unless the secret is a plain word, a number or a path.
    /// Finds secrets in plain form, as base64, in hex and URL-encoded, with white space anywhere
    /// inside. `None` if the text contains no secret.
    pub fn hidden(&self, text: &str) -> Option<String> {
        self.hidden_in(text.as_bytes()).map(|hidden| String::from_utf8_lossy(&hidden).into_owned())
    }

    /// Replaces secrets like [`SecretMask::hidden`], in bytes that need not be text.
    pub fn hidden_in(&self, text: &[u8]) -> Option<Vec<u8>> {
        let hidden = self.hidden_of_own(text);
        match self.late.mask() {
            None => hidden,
            Some(late) => late.hidden_of_own(hidden.as_deref().unwrap_or(text)).or(hidden),
        }
    }

    fn hidden_of_own(&self, text: &[u8]) -> Option<Vec<u8>> {
        let squeezed = SqueezedText::of(text);
        let mut found: Vec<(usize, usize)> =
            self.encodings.iter().flat_map(|encoding| squeezed.places_of(encoding)).collect();
        if found.is_empty() {
            return None;
        }
        found.sort_unstable();
        let (mut hidden, mut shown) = (Vec::with_capacity(text.len()), 0);
        for (start, end) in found {
            if start >= shown {
                hidden.extend_from_slice(&text[shown..start]);
                hidden.extend_from_slice(MASKED.as_bytes());
            }
            shown = shown.max(end);
        }
        hidden.extend_from_slice(&text[shown..]);
        Some(hidden)
    }

    /// Returns the start of the longest suffix that may be the beginning of a secret. Returns the
    /// length of the text if none exists.
    pub fn safe_prefix_len(&self, text: &str) -> usize {
        self.safe_prefix_len_of_bytes(text.as_bytes())
    }

    /// Finds the suffix like [`SecretMask::safe_prefix_len`], in bytes that need not be text.
    pub fn safe_prefix_len_of_bytes(&self, text: &[u8]) -> usize {
        let (squeezed, late) = (SqueezedText::of(text), self.late.mask());
        let encodings = self.encodings.iter().chain(late.iter().flat_map(|late| &late.encodings));
        let doubts = encodings.filter_map(|encoding| squeezed.head_at_end(encoding.needle()));
        doubts.min().unwrap_or(text.len())
    }

    /// Replaces each secret, and everything in the form of a key, by `***`.
    pub fn masked(&self, text: &str) -> String {
        let hidden = self.hidden(text).unwrap_or_else(|| text.to_owned());
        let late = self.late.mask();
        let all = self.secrets.iter().chain(late.iter().flat_map(|late| &late.secrets));
        let known = all.fold(hidden, |text, secret| text.replace(secret, MASKED));
        KEYS.iter().fold(known, |text, (key, instead)| key.replace_all(&text, *instead).into_owned())
    }
}

/// Returns whether no text contains the secret by chance: it is not a plain word, a short number or
/// a path.
fn is_maskable(secret: &str) -> bool {
    let tail = || secret.chars().skip(1);
    let is_of_letters = secret.chars().all(char::is_alphabetic);
    let is_word = is_of_letters && (tail().all(char::is_lowercase) || tail().all(char::is_uppercase));
    let is_number = secret.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = is_word && secret.len() < 12 || is_number && secret.len() < 8;
    secret.len() >= LEAST && !is_path(secret) && !is_plain
}

/// Returns whether the value may be a secret at all: longer than 3 bytes, not a path to a secret,
/// and not a switch.
fn is_word(secret: &str) -> bool {
    secret.len() > 3 && !is_path(secret) && !["true", "false"].contains(&secret)
}

fn is_path(secret: &str) -> bool {
    secret.starts_with('/') && !secret.ends_with('=')
}

impl fmt::Debug for LateSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Late({:?})", self.mask())
    }
}

impl fmt::Debug for SecretMask {
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
        let mask = SecretMask::new(["hush-hush", "hush-hush-more", "a"]);
        for (text, masked) in [
            ("say hush-hush-more, hush-hush and a", "say ***, *** and a"),
            ("key sk-ant-api03-abcdefgh12345678 works", "key *** works"),
            ("ghp_abcdefghijklmnopqrstuvwxyz0123456789!", "***!"),
            ("AKIAIOSFODNN7EXAMPLE", "***"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghij", "***"),
            ("clone https://me:pa55word@example.com/x", "clone https://***@example.com/x"),
            ("DB_PASSWORD=hunter2hunter2 in .env", "DB_PASSWORD=*** in .env"),
            ("\"api_key\": x, api-key: 'abcdef123'", "\"api_key\": x, api-key: ***"),
            ("password: \"swordfish\", secret = s3cret-9", "password: *** secret = ***"),
            ("unexpected token: identifier; api key: missing", "unexpected token: identifier; api key: missing"),
            ("let token = lexer.next();", "let token = lexer.next();"),
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

    #[test]
    fn a_known_secret_is_hidden_in_every_dress_and_across_lines() {
        let mask = SecretMask::new(["sk-ca/na+ry \"9", "production", "/home/u/key.json"]);
        for (text, hidden) in [
            ("raw sk-ca/na+ry \"9!", "raw ***!"),
            ("split sk-ca/\r\nna+ry \"9!", "split ***!"),
            ("as JSON sk-ca/na+ry \\\"9!", "as JSON ***!"),
            ("hex 736b2d63612f6e612b7279202239!", "hex ***!"),
            ("HEX 736B2D63612F6E612B7279202239!", "HEX ***!"),
            ("od  73 6b 2d 63 61 2f 6e 61\n 2b 72 79 20 22 39!", "od  ***!"),
            ("url sk-ca%2Fna%2Bry%20%229!", "url ***!"),
            ("form sk-ca%2fna%2bry+%229!", "form ***!"),
            ("twice sk-ca/na+ry \"9 sk-ca/na+ry \"9", "twice *** ***"),
        ] {
            assert_eq!(mask.hidden(text).as_deref(), Some(hidden), "{text}");
        }
        // With `key:` and `xkey:` before the secret, as in basic authentication. The rest on either
        // side reveals less than one byte of the secret.
        for text in ["a2V5OnNrLWNhL25hK3J5ICI5", "eGtleTpzay1jYS9uYStyeSAiOQ==", "eHhrZXk6c2stY2EvbmErcnkgIjk="] {
            let hidden = mask.hidden(text).unwrap();
            assert!(hidden.len() <= 14 && hidden.contains("***"), "{hidden}");
        }
        assert_eq!(mask.hidden("in production by /home/u/key.json, sk-ca/na"), None);
    }

    #[test]
    fn a_secret_that_comes_to_be_known_later_is_hidden_by_masks_that_are_in_use_already() {
        let late = LateSecrets::default();
        let mask = SecretMask::new(["sk-old-1"]).with(&late);
        let other = SecretMask::default().with(&late);
        assert!(other.is_idle() && mask.hidden("sk-new-2").is_none());
        late.add("Bearer sk-new-2");
        for text in ["a sk-new-2 b", "a 736b2d6e65772d32 b"] {
            assert_eq!([&mask, &other].map(|mask| mask.hidden(text)), [Some("a *** b".into()), Some("a *** b".into())]);
        }
        assert_eq!(mask.hidden("sk-old-1 sk-new-2").as_deref(), Some("*** ***"));
        assert_eq!(
            (mask.safe_prefix_len("a sk-n"), mask.masked("x sk-new-2"), other.is_idle()),
            (2, "x ***".into(), false)
        );
        assert!(!format!("{late:?} {mask:?}").contains("sk-"));
    }

    #[test]
    fn what_is_too_plain_to_be_hidden_is_named() {
        let secrets = [
            ("APP", "qzxvkjwpmtrlbnfd"), // some issuers give out application passwords in this form
            ("DB", "p@ss1!x"),
            ("PIN", "12345678"),
            ("MIXED", "hunTer"),
            ("WORD", "production"),
            ("NAME", "Production"),
            ("SHORT", "a1b2"),
            ("NUMBER", "1234567"),
            ("FILE", "/home/u/key.json"),
            ("SWITCH", "true"),
            ("LEVEL", "1"),
            ("NONE", ""),
        ];
        let mask = SecretMask::of(secrets);
        assert_eq!(mask.plain(), ["NAME", "NUMBER", "SHORT", "WORD"]);
        for (name, secret) in &secrets[..4] {
            assert_eq!(mask.hidden(&format!("<{secret}>")).as_deref(), Some("<***>"), "{name}");
        }
        assert_eq!(mask.hidden("production Production a1b2 1234567 /home/u/key.json true 1"), None);
        // `hunTer` in base64, at each position in a group of three bytes.
        for text in ["aHVuVGVy", "eGh1blRlcg==", "eHhodW5UZXI="] {
            assert!(mask.hidden(text).is_some_and(|hidden| hidden.contains("***")), "{text}");
        }
    }

    #[test]
    fn the_end_of_a_text_that_may_become_a_secret_is_known() {
        let mask = SecretMask::new(["sk-canary-1"]);
        for (text, safe_prefix_len) in
            [("say sk-can", 4), ("say sk-\nca", 4), ("say", 3), ("no", 2), ("", 0), ("sk-canary-1", 11)]
        {
            assert_eq!(mask.safe_prefix_len(text), safe_prefix_len, "{text}");
        }
    }
}
