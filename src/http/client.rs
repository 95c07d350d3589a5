//! The HTTP client for requests that go to no model, with the same proxy and certificates as the
//! client for a model.

use super::{Address, HttpError, HttpSettings};
use reqwest::{Certificate, Client, Proxy, Url, redirect, retry};
use std::{sync::OnceLock, time::Duration};

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Lifetime of an unused connection, shorter than the usual lifetime on servers.
const POOL_TIME: Duration = Duration::from_secs(30);

pub(super) fn build(address: &Address, ways: &HttpSettings) -> Result<Client, HttpError> {
    static RING: OnceLock<()> = OnceLock::new();
    // The call fails only if the program has already installed a provider; fledge then uses that
    // provider.
    RING.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut builder = Client::builder()
        .user_agent(concat!("fledge/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none()) // a redirect must not receive the token
        .retry(retry::never())
        .connect_timeout(CONNECT_TIME)
        .pool_idle_timeout(POOL_TIME);
    if let Some(pem) = &ways.ca_file {
        let certificates = Certificate::from_pem_bundle(pem).map_err(|_| HttpError::BadCertificates)?;
        let certificates = Some(certificates).filter(|found| !found.is_empty());
        builder = builder.tls_certs_merge(certificates.ok_or(HttpError::BadCertificates)?);
    }
    // Plain HTTP needs no root certificates. Loading them takes tens of milliseconds, and the
    // machine may have none.
    if address.is_plain() && !ways.proxy.as_ref().is_some_and(|proxy| proxy.starts_with("https:")) {
        builder = builder.tls_certs_only([]);
    }
    if let Some(proxy) = &ways.proxy {
        let url = Url::parse(proxy).map_err(|_| HttpError::BadProxy)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(HttpError::BadProxy);
        }
        builder = builder.proxy(Proxy::all(url).map_err(|_| HttpError::BadProxy)?);
    }
    if address.is_local() {
        builder = builder.no_proxy(); // local traffic stays local, because it may carry an unencrypted token
    }
    builder.build().map_err(|source| HttpError::Client { source })
}
