//! The encodings in which a secret may appear, and a search for them that ignores white space.

use memchr::memmem::Finder;

/// The minimum length of an encoding, in bytes.
const LEAST: usize = 6;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns a secret in plain form, JSON-escaped, in base64, in hex and URL-encoded, all without
/// white space.
pub(super) fn all(secret: &str) -> Vec<String> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let url = |is_kept: fn(u8) -> bool, space: &str| -> String {
        let letter = |byte: u8| match byte {
            b' ' => space.to_owned(),
            byte if is_kept(byte) => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        };
        secret.bytes().map(letter).collect()
    };
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let json = serde_json::to_string(secret).unwrap_or_default();
    let mut all = vec![secret.to_owned(), json.trim_matches('"').to_owned(), hex.to_uppercase(), hex];
    all.extend([url(unreserved, "%20"), url(unreserved, "+"), url(|_| false, "%20")]);
    all.extend(["%20", "+"].map(|space| url(unreserved, space).replace("%2F", "/")));
    let lower: Vec<String> = all[4..].iter().map(|text| lower_escapes(text)).collect();
    all.extend(lower);
    let base64: Vec<String> = (0..3).map(|before| base64_core(before, secret.as_bytes())).collect();
    all.extend(base64.iter().map(|text| text.replace('+', "-").replace('/', "_")));
    all.extend(base64);
    for encoding in &mut all {
        encoding.retain(|letter| !letter.is_ascii_whitespace());
    }
    all.retain(|encoding| encoding.len() >= LEAST);
    all
}

/// Replaces `%2F` by `%2f`, for all escapes.
fn lower_escapes(text: &str) -> String {
    let mut left = 0;
    let letter = |letter: char| {
        left = if letter == '%' { 3 } else { usize::saturating_sub(left, 1) };
        if left > 0 { letter.to_ascii_lowercase() } else { letter }
    };
    text.chars().map(letter).collect()
}

/// Returns the base64 letters that depend on these bytes alone, regardless of the bytes around
/// them. `before` is the number of other bytes before them in their group of three.
fn base64_core(before: usize, bytes: &[u8]) -> String {
    let bit = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
    let skipped = (6 - before * 8 % 6) % 6;
    let letters = (bytes.len() * 8 - skipped) / 6;
    let letter = |number: usize| {
        let first = skipped + number * 6;
        (first..first + 6).fold(0, |sum, at| sum << 1 | usize::from(bit(at)))
    };
    (0..letters).map(|number| char::from(BASE64[letter(number)])).collect()
}

/// A text without its white space, with the original position of each byte.
pub(super) struct SqueezedText {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl SqueezedText {
    pub(super) fn of(text: &[u8]) -> Self {
        let solid = text.iter().copied().enumerate().filter(|(_, byte)| !byte.is_ascii_whitespace());
        let (places, bytes) = solid.unzip();
        Self { bytes, places }
    }

    /// Finds an encoding in the text. Returns the start and end of each match.
    pub(super) fn places_of<'s>(&'s self, encoding: &'s Finder<'_>) -> impl Iterator<Item = (usize, usize)> + 's {
        let last = encoding.needle().len().saturating_sub(1);
        encoding.find_iter(&self.bytes).map(move |at| (self.places[at], self.places[at + last] + 1))
    }

    /// Finds the longest proper prefix of an encoding that ends the text. Returns its start in the
    /// text.
    pub(super) fn head_at_end(&self, encoding: &[u8]) -> Option<usize> {
        let longest = self.bytes.len().min(encoding.len().saturating_sub(1));
        let length = (1..=longest).rev().find(|length| self.bytes.ends_with(&encoding[..*length]))?;
        Some(self.places[self.bytes.len() - length])
    }
}
