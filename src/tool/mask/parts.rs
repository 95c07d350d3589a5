//! The parts of a value that are secret by themselves: the word after a scheme, the value of a
//! cookie, and secrets in an address.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// The minimum length of a path segment that may be a token, in bytes.
const TOKEN: usize = 16;

/// Returns a secret value and its parts that are secret by themselves: the word after a scheme, and
/// the secrets in addresses. No single word of a longer text, such as credentials in JSON, is such
/// a part.
pub fn parts(value: &str) -> Vec<String> {
    let value = value.trim();
    let mut all = vec![value.to_owned()];
    let is_scheme = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    if let [scheme, word] = *value.split_whitespace().collect::<Vec<_>>()
        && is_scheme(scheme)
    {
        all.push(word.to_owned());
        if scheme.eq_ignore_ascii_case("basic") {
            let bytes = STANDARD.decode(word).or_else(|_| URL_SAFE_NO_PAD.decode(word.trim_end_matches('=')));
            let pair = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
            all.extend(pair.split_once(':').map(|(_, password)| password.to_owned()));
            all.push(pair);
        }
    }
    all.extend(value.split_whitespace().flat_map(in_url));
    tidied(all)
}

/// Returns the parts of a secret header. Unlike [`parts()`], this includes each value of a
/// `name=value` pair.
pub fn parts_of_header(value: &str) -> Vec<String> {
    let mut all = parts(value);
    all.extend(value.split([' ', ';', ',', '&']).filter_map(value_of_pair));
    tidied(all)
}

fn tidied(mut all: Vec<String>) -> Vec<String> {
    all.retain(|part| !part.is_empty());
    all.sort();
    all.dedup();
    all
}

/// Returns the secrets in an address: the user and password, the values in the query, and path
/// segments in the form of a token.
pub fn in_url(url: &str) -> Vec<String> {
    let Some((_, rest)) = url.split_once("://") else { return Vec::new() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let mut all = Vec::new();
    if let Some((pair, _)) = authority.rsplit_once('@') {
        all.push(pair.to_owned());
        all.push(pair.split_once(':').map_or(pair, |(_, password)| password).to_owned());
    }
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    all.extend(query.split(['&', ';', '#']).filter_map(value_of_pair));
    let has = |part: &str, kind: fn(&u8) -> bool| part.as_bytes().iter().any(kind);
    let is_token =
        |part: &&str| part.len() >= TOKEN && has(part, u8::is_ascii_digit) && has(part, u8::is_ascii_alphabetic);
    all.extend(path.split('/').filter(is_token).map(str::to_owned));
    let plain: Vec<String> = all.iter().map(|part| unescaped(part)).collect();
    all.extend(plain);
    all
}

/// Returns the value of `name=value`. Padding of base64 is not a value.
fn value_of_pair(pair: &str) -> Option<String> {
    let value = pair.split_once('=')?.1.trim_matches(['"', '\'']);
    (!value.trim_matches('=').is_empty()).then(|| value.to_owned())
}

/// Decodes escapes such as `%2B`.
fn unescaped(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_by_itself_is_found_in_every_kind_of_value() {
        for (value, secret) in [
            ("sk-1234567", "sk-1234567"),
            ("Bearer abc123def", "abc123def"),
            ("Basic dXNlcjpodW50ZXI3Nw==", "hunter77"),
            ("Basic dXNlcjpodW50ZXI3Nw==", "user:hunter77"),
            ("Digest username=\"me\", response=\"d41d8cd98f\"", "d41d8cd98f"),
            ("session=5f1d7c20b9; theme=dark", "5f1d7c20b9"),
            ("http://me:p%40ss1%21x@proxy:3128", "p%40ss1%21x"),
            ("http://me:p%40ss1%21x@proxy:3128", "p@ss1!x"),
            ("https://tok3n0nly@host/", "tok3n0nly"),
            ("https://mcp.example/s/5f1d7c20b9e84a6d/mcp?key=qr%2Bst9", "5f1d7c20b9e84a6d"),
            ("https://mcp.example/s/5f1d7c20b9e84a6d/mcp?key=qr%2Bst9", "qr+st9"),
            ("postgres://app:5f1d7c20b9@db/prod", "5f1d7c20b9"),
        ] {
            let parts = parts_of_header(value);
            assert!(parts.iter().any(|part| part == secret), "{value}: {parts:?}");
        }
        let long = "{ \"type\": \"service_account\", \"a\": \"b=production\" }";
        assert_eq!(parts(long), [long]);
        assert_eq!(parts("Bearer abc123def=="), ["Bearer abc123def==", "abc123def=="]);
        assert!(in_url("https://docs.example/mcp/a-rather-long-name").is_empty());
    }
}
