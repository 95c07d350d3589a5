//! The HTTP clients. Connections with equal settings share one client and its sockets.

use super::super::{Endpoint, ProviderError, Secret};
use reqwest::{Certificate, Client, Proxy, Url, redirect, retry};
use std::{
    net::IpAddr,
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Lifetime of an unused connection. It is shorter than on servers; otherwise a turn could use a
/// connection that the server has closed.
const POOL_TIME: Duration = Duration::from_secs(30);

/// The settings that distinguish clients.
#[derive(Debug, Clone, PartialEq)]
struct Way {
    /// Plain HTTP needs no root certificates. Loading them takes tens of milliseconds, and the
    /// machine may have none.
    plain: bool,
    /// The system's proxies are not used for addresses on this machine.
    local: bool,
    proxy: Option<Secret>,
    ca_file: Option<Vec<u8>>,
}

/// Returns the client for an address.
pub(super) fn shared(url: &Url, endpoint: &Endpoint, provider: &'static str) -> Result<Client, ProviderError> {
    static CLIENTS: Mutex<Vec<(Way, Client)>> = Mutex::new(Vec::new());
    let way = Way {
        plain: url.scheme() == "http"
            && !endpoint.proxy.as_ref().is_some_and(|proxy| proxy.reveal().starts_with("https:")),
        local: is_local(url),
        proxy: endpoint.proxy.clone(),
        ca_file: endpoint.ca_file.clone(),
    };
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, client)) = clients.iter().find(|(known, _)| *known == way) {
        return Ok(client.clone());
    }
    let client = build(&way, provider)?;
    clients.push((way, client.clone()));
    Ok(client)
}

fn build(way: &Way, provider: &'static str) -> Result<Client, ProviderError> {
    static RING: OnceLock<()> = OnceLock::new();
    // The call fails only if the program has already installed a provider; fledge then uses that
    // provider.
    RING.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut builder = Client::builder()
        .user_agent(concat!("fledge/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none()) // a redirect must not receive the key
        .retry(retry::never())
        .connect_timeout(CONNECT_TIME)
        .pool_idle_timeout(POOL_TIME);
    if let Some(pem) = &way.ca_file {
        let bad = || ProviderError::BadCertificates { provider };
        let certificates = Certificate::from_pem_bundle(pem).map_err(|_| bad())?;
        builder = builder.tls_certs_merge(Some(certificates).filter(|found| !found.is_empty()).ok_or_else(bad)?);
    }
    if way.plain {
        builder = builder.tls_certs_only([]);
    }
    if let Some(proxy) = &way.proxy {
        let bad = || ProviderError::BadProxy { provider };
        let url = Url::parse(proxy.reveal()).map_err(|_| bad())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad());
        }
        builder = builder.proxy(Proxy::all(url).map_err(|_| bad())?);
    } else if way.local {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|source| ProviderError::Client { source })
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
