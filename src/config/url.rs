//! What may be a base URL, and which ones stay on this machine. Deliberately narrower than what an HTTP client takes: a form
//! that two readers could take for different hosts is no loopback address here.

use core::net::{Ipv4Addr, Ipv6Addr};

/// What is wrong with a base URL.
pub(super) fn url_fault(url: &str) -> Option<String> {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return Some("expected `base_url` to begin with `https://` or `http://`".into());
    };
    if url.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '\\' | '?' | '#')) {
        return Some("`base_url` has a character that it can't have: a blank, `\\`, `?` or `#`".into());
    }
    match authority(rest) {
        "" => Some("`base_url` names no host".into()),
        host if host.contains('@') => Some("`base_url` carries a user name or a password; use `api_key_env`".into()),
        _ => None,
    }
}

/// What is wrong with the address of a proxy, which may have a user and a password in it.
pub(super) fn proxy_fault(url: &str) -> Option<String> {
    let plain = match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (_, host))) => format!("{scheme}://{host}"),
        None => url.to_owned(),
    };
    url_fault(&plain).map(|why| why.replace("base_url", "proxy"))
}

/// Whether a base URL leads to this machine, whoever reads it.
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
