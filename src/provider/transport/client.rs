//! The HTTP clients, one for each way to an address, shared by all connections so that they share their sockets.

use reqwest::{Client, Url, redirect, retry};
use std::{net::IpAddr, sync::OnceLock, time::Duration};

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How long an unused connection is kept: shorter than servers keep theirs, or a turn would meet a closed one.
const POOL_TIME: Duration = Duration::from_secs(30);

/// The client for an address.
///
/// Plain HTTP gets one without root certificates: loading them takes tens of milliseconds, and there may be none on the machine.
/// The system's proxies are not asked for an address on this machine.
pub(super) fn shared(url: &Url) -> reqwest::Result<Client> {
    static CLIENTS: [OnceLock<Client>; 4] = [const { OnceLock::new() }; 4];
    let (plain, local) = (url.scheme() == "http", is_local(url));
    let place = &CLIENTS[usize::from(plain) * 2 + usize::from(local)];
    if let Some(client) = place.get() {
        return Ok(client.clone());
    }
    let client = build(plain, local)?;
    Ok(place.get_or_init(|| client).clone())
}

fn build(plain: bool, local: bool) -> reqwest::Result<Client> {
    static RING: OnceLock<()> = OnceLock::new();
    // It fails only when the program has chosen a provider already, and then that one serves.
    RING.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut builder = Client::builder()
        .user_agent(concat!("fledge/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none()) // a key must not follow one
        .retry(retry::never())
        .connect_timeout(CONNECT_TIME)
        .pool_idle_timeout(POOL_TIME);
    if plain {
        builder = builder.tls_certs_only([]);
    }
    if local {
        builder = builder.no_proxy();
    }
    builder.build()
}

fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.ends_with(".localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_local() {
        let local = |url: &str| is_local(&Url::parse(url).unwrap());
        assert!(
            ["http://localhost:1", "http://127.9.0.1", "http://[::1]:8/v1", "http://a.localhost"]
                .into_iter()
                .all(local)
        );
        assert!(!["http://10.0.0.1", "https://api.openai.com", "http://localhost.evil.com"].into_iter().any(local));
    }
}
