//! The HTTP client behind a courier: by the same ways as one to a model.

use super::{Address, CourierError, Ways};
use reqwest::{Certificate, Client, Proxy, Url, redirect, retry};
use std::{sync::OnceLock, time::Duration};

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How long an unused connection is kept: shorter than servers keep theirs.
const POOL_TIME: Duration = Duration::from_secs(30);

pub(super) fn build(address: &Address, ways: &Ways) -> Result<Client, CourierError> {
    static RING: OnceLock<()> = OnceLock::new();
    // It fails only when the program has chosen a provider already, and then that one serves.
    RING.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut builder = Client::builder()
        .user_agent(concat!("fledge/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none()) // a token must not follow one
        .retry(retry::never())
        .connect_timeout(CONNECT_TIME)
        .pool_idle_timeout(POOL_TIME);
    if let Some(pem) = &ways.ca_file {
        let certificates = Certificate::from_pem_bundle(pem).map_err(|_| CourierError::BadCertificates)?;
        let certificates = Some(certificates).filter(|found| !found.is_empty());
        builder = builder.tls_certs_merge(certificates.ok_or(CourierError::BadCertificates)?);
    }
    // Plain HTTP needs no root certificates: loading them takes tens of milliseconds, and there may be none on the machine.
    if address.is_plain() && !ways.proxy.as_ref().is_some_and(|proxy| proxy.starts_with("https:")) {
        builder = builder.tls_certs_only([]);
    }
    if let Some(proxy) = &ways.proxy {
        let url = Url::parse(proxy).map_err(|_| CourierError::BadProxy)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(CourierError::BadProxy);
        }
        builder = builder.proxy(Proxy::all(url).map_err(|_| CourierError::BadProxy)?);
    }
    if address.is_local() {
        builder = builder.no_proxy(); // what is for this machine stays on it: a token may go there in the open
    }
    builder.build().map_err(|source| CourierError::Client { source })
}
