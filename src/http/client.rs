//! The settings of every HTTP client: to models, to servers of tools, and to all other receivers.

use super::{HttpError, HttpSettings};
use reqwest::{Certificate, Client, ClientBuilder, Proxy, Url, redirect, retry};
use std::{net::IpAddr, sync::OnceLock, time::Duration};

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Lifetime of an unused connection. It is shorter than on servers; otherwise a request could use a
/// connection that the server has closed.
const POOL_TIME: Duration = Duration::from_secs(30);

/// Returns a client for one address that follows no redirect and repeats no request. The caller may
/// add settings before it builds the client.
///
/// # Errors
/// If the proxy or the certificates cannot be used.
pub fn client_builder(url: &Url, settings: &HttpSettings) -> Result<ClientBuilder, HttpError> {
    static RING: OnceLock<()> = OnceLock::new();
    // The call fails only if the program has already installed a provider; fledge then uses that
    // provider.
    RING.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut builder = Client::builder()
        .user_agent(concat!("fledge/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none()) // a redirect must not receive a key
        .retry(retry::never())
        .connect_timeout(CONNECT_TIME)
        .pool_idle_timeout(POOL_TIME);
    if let Some(pem) = &settings.ca_file {
        let certificates = Certificate::from_pem_bundle(pem).map_err(|_| HttpError::BadCertificates)?;
        let certificates = Some(certificates).filter(|found| !found.is_empty());
        builder = builder.tls_certs_merge(certificates.ok_or(HttpError::BadCertificates)?);
    }
    if is_plain(url, settings) {
        builder = builder.tls_certs_only([]);
    }
    if let Some(proxy) = &settings.proxy {
        let url = Url::parse(proxy).map_err(|_| HttpError::BadProxy)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(HttpError::BadProxy);
        }
        builder = builder.proxy(Proxy::all(url).map_err(|_| HttpError::BadProxy)?);
    } else if is_local(url) {
        builder = builder.no_proxy();
    }
    Ok(builder)
}

/// Returns true if no TLS is needed. Then no root certificates are loaded: that takes tens of
/// milliseconds, and the machine may have none.
pub fn is_plain(url: &Url, settings: &HttpSettings) -> bool {
    url.scheme() == "http" && !settings.proxy.as_ref().is_some_and(|proxy| proxy.starts_with("https:"))
}

/// Returns true if the host is this machine.
pub fn is_local(url: &Url) -> bool {
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
