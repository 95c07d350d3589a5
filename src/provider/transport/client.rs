//! The HTTP clients of models. Connections with equal settings share one client and its sockets.

use super::super::{Endpoint, ProviderError};
use crate::http::{HttpError, HttpSettings, client_builder, is_local, is_plain};
use reqwest::{Client, Url};
use std::sync::{Mutex, PoisonError};

/// The settings that distinguish clients.
#[derive(Debug, Clone, PartialEq)]
struct ClientKey {
    is_plain: bool,
    is_local: bool,
    settings: HttpSettings,
}

/// Returns the client for an address.
pub(super) fn shared(url: &Url, endpoint: &Endpoint, provider: &'static str) -> Result<Client, ProviderError> {
    static CLIENTS: Mutex<Vec<(ClientKey, Client)>> = Mutex::new(Vec::new());
    let proxy = endpoint.proxy.as_ref().map(|proxy| proxy.reveal().to_owned());
    let settings = HttpSettings { proxy, ca_file: endpoint.ca_file.clone() };
    let key = ClientKey { is_plain: is_plain(url, &settings), is_local: is_local(url), settings };
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, client)) = clients.iter().find(|(known, _)| *known == key) {
        return Ok(client.clone());
    }
    let builder = client_builder(url, &key.settings).map_err(|error| match error {
        HttpError::BadCertificates => ProviderError::BadCertificates { provider },
        _ => ProviderError::BadProxy { provider },
    })?;
    let client = builder.build().map_err(|source| ProviderError::Client { source })?;
    clients.push((key, client.clone()));
    Ok(client)
}
