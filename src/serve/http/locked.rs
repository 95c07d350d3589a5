//! The page for a browser that has no session: it names the command that prints a new link.

use super::super::AppState;
use super::enter::LocalAddress;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::OnceLock;

const PAGE: &str = include_str!("locked.html");
/// The style is inline, so that the link remains the only path without authentication.
const STYLE: &str = include_str!("locked.css");

/// The reason why a browser is not signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockedReason {
    /// The browser has no session.
    NoSession,
    /// The link was used, has expired, or never existed.
    LinkIsOver,
}

/// Returns true if the client accepts HTML.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    text(headers, header::ACCEPT).contains("text/html")
}

/// Returns the page. It names the project's folder only to a browser on this machine.
pub(super) fn page(app_state: &AppState, local: &LocalAddress, headers: &HeaderMap, why: LockedReason) -> Response {
    // A proxy may forward requests with its configured host, so forwarded requests do not count as
    // local.
    let is_passed_on = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"]
        .iter()
        .any(|name| headers.contains_key(*name));
    let is_loopback = !is_passed_on && local.is_loopback_host(text(headers, header::HOST));
    let folder = is_loopback.then(|| app_state.workspace.display().to_string());
    let (command, place) = match &folder {
        Some(folder) => (format!("fledge serve link -C {}", quoted(folder)), ""),
        None => ("fledge serve link".to_owned(), ", in the folder of the project"),
    };
    let (status, heading, says) = match why {
        LockedReason::NoSession => {
            (StatusCode::UNAUTHORIZED, "You are not signed in", "This is a fledge server. Sign in with a link.")
        }
        LockedReason::LinkIsOver => {
            (StatusCode::FORBIDDEN, "This link no longer works", "It was already used, or is older than 15 minutes.")
        }
    };
    let title = folder.map_or_else(|| "fledge".to_owned(), |_| format!("{} · fledge", app_state.name()));
    let parts = [
        ("{style}", STYLE),
        ("{title}", &escaped(&title)),
        ("{heading}", heading),
        ("{why}", says),
        ("{where}", place),
        ("{command}", &escaped(&command)),
    ];
    let page = parts.iter().fold(PAGE.to_owned(), |page, (name, value)| page.replacen(name, value, 1));
    let mut response = (status, Html(page)).into_response();
    if let Ok(policy) = HeaderValue::from_str(policy()) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Returns the content security policy of the page: only its own style is allowed.
fn policy() -> &'static str {
    static POLICY: OnceLock<String> = OnceLock::new();
    POLICY.get_or_init(|| {
        let digest = crate::store::sha256(STYLE.as_bytes());
        let byte = |at: usize| digest.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let bytes: Vec<u8> = (0..digest.len()).step_by(2).filter_map(byte).collect();
        let style = STANDARD.encode(bytes);
        format!(
            "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
    })
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Escapes a text for HTML.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '{' => escaped.push_str("&#123;"), // must not match a placeholder
            letter if letter.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+@%:,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_folder_is_called_is_text_in_the_page_and_one_word_in_the_command() {
        assert_eq!(escaped("a<b>&\"'\u{1b}{why}"), "a&lt;b&gt;&amp;&quot;&#39;\u{fffd}&#123;why}");
        assert_eq!(
            ["/srv/a-1.x", "/srv/a b", "/it's", ""].map(quoted),
            ["/srv/a-1.x", "'/srv/a b'", r"'/it'\''s'", "''"]
        );
    }

    #[test]
    fn the_page_has_each_part_once_and_a_policy_for_its_style_alone() {
        for part in ["{style}", "{title}", "{heading}", "{why}", "{where}", "{command}"] {
            assert_eq!(PAGE.matches(part).count(), 1, "{part}");
        }
        assert!(policy().contains("style-src 'sha256-") && !policy().contains("unsafe"), "{}", policy());
        assert!(!PAGE.contains("<script") && !PAGE.contains("style="));
    }
}
