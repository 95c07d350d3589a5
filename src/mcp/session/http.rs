//! The connection to a server at an address, by streamable HTTP. It follows no redirect, and uses
//! no proxy for addresses on this machine.

use super::filter::FilteredTransport;
use super::{MAX_MESSAGE, short};
use crate::error_chain::chain;
use crate::http::{HttpSettings, client_builder};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use rmcp::RoleClient;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

/// The maximum size of an error response, in bytes.
const MAX_COMPLAINT: usize = 4 * 1024;

/// Creates the transport to an address.
///
/// # Errors
/// A message, if the address or a header is invalid.
pub(super) fn transport(
    address: &str,
    headers: &[(String, String)],
) -> Result<impl Transport<RoleClient> + 'static, String> {
    let url = Url::parse(address).map_err(|error| format!("invalid address: {error}"))?;
    let client = client(&url, headers)?;
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .max_sse_event_size(MAX_MESSAGE)
        .max_json_response_size(MAX_MESSAGE)
        .max_error_response_size(MAX_COMPLAINT);
    Ok(FilteredTransport::new(StreamableHttpClientTransport::with_client(client, config)))
}

fn client(url: &Url, headers: &[(String, String)]) -> Result<Client, String> {
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        let wrong = || format!("invalid header `{name}`");
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        all.insert(key, value);
    }
    let builder = client_builder(url, &HttpSettings::default()).map_err(|error| short(&chain(&error)))?;
    builder.default_headers(all).build().map_err(|error| short(&chain(&error)))
}
