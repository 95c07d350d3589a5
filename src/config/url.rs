//! Checks of base URLs, and of URLs that stay on this machine. The checks are deliberately stricter
//! than HTTP clients: a form that two parsers could take for different hosts does not count as a
//! loopback address.

use core::net::{Ipv4Addr, Ipv6Addr};

/// Returns the problem of a base URL, if there is one.
pub(super) fn url_fault(url: &str) -> Option<String> {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return Some("expected `base_url` to begin with `https://` or `http://`".into());
    };
    if url.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '\\' | '?' | '#')) {
        return Some("`base_url` has a forbidden character: white space, `\\`, `?` or `#`".into());
    }
    match authority(rest) {
        "" => Some("`base_url` has no host".into()),
        host if host.contains('@') => Some("`base_url` contains a user name or a password; use `api_key_env`".into()),
        _ => None,
    }
}

/// Returns the problem of a proxy's address, which may contain a user and a password.
pub(super) fn proxy_fault(url: &str) -> Option<String> {
    let plain = match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (_, host))) => format!("{scheme}://{host}"),
        None => url.to_owned(),
    };
    url_fault(&plain).map(|why| why.replace("base_url", "proxy"))
}

/// Returns true if a base URL leads to this machine for every parser.
pub(super) fn is_loopback(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else { return false };
    let authority = authority(rest);
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let port = port.is_none_or(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    let four = host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    let six = authority.starts_with('[') && host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback());
    url_fault(url).is_none() && port && (host == "localhost" || four || six)
}

fn authority(rest: &str) -> &str {
    rest.split('/').next().unwrap_or("")
}
