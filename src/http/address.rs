//! The HTTP address of a receiver, and the part of it that may be shown.

use super::{HttpError, is_local};
use reqwest::Url;
use std::fmt;

/// An `http` or `https` address. `Debug` shows only the host, because the rest may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(Url);

impl Address {
    /// Parses an address as people write it.
    ///
    /// # Errors
    /// If the text is not a URL, has another scheme, or contains a user or password.
    pub fn parse(text: &str) -> Result<Self, HttpError> {
        let wrong = |problem: String| HttpError::BadAddress { problem };
        let url = Url::parse(text.trim()).map_err(|error| wrong(error.to_string()))?;
        match url.scheme() {
            "http" | "https" => {}
            other => return Err(wrong(format!("unsupported scheme `{other}`: expected http or https"))),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("contains a user or password; send them as a header".into()));
        }
        Ok(Self(url))
    }

    /// Returns the address with `path` appended to its path, such as `v1/sync`. The query and the
    /// fragment are dropped.
    pub fn join(&self, path: &str) -> Self {
        let mut url = self.0.clone();
        url.set_path(&format!("{}/{path}", self.0.path().trim_end_matches('/')));
        url.set_query(None);
        url.set_fragment(None);
        Self(url)
    }

    /// Returns the part that may be shown: the scheme, the host, and the port if it is not the
    /// scheme's default.
    pub fn host(&self) -> String {
        let port = self.0.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}", self.0.scheme(), self.0.host_str().unwrap_or_default())
    }

    /// Returns true if the traffic is encrypted or stays on this machine, so no other machine can
    /// read it.
    pub fn is_guarded(&self) -> bool {
        self.0.scheme() == "https" || self.is_local()
    }

    /// Returns true if the host is this machine.
    pub fn is_local(&self) -> bool {
        is_local(&self.0)
    }

    pub(super) fn url(&self) -> Url {
        self.0.clone()
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({}/…)", self.host())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_of_an_address_is_shown() {
        let address = Address::parse(" https://hooks.example.com:8443/services/canary?token=canary#canary\n").unwrap();
        assert_eq!(address.host(), "https://hooks.example.com:8443");
        assert_eq!(format!("{address:?}"), "Address(https://hooks.example.com:8443/…)");
        assert_eq!(address.join("v1/sync").url().as_str(), "https://hooks.example.com:8443/services/canary/v1/sync");
        for wrong in
            ["", "fledge.example.com", "ftp://canary.example.com/canary", "http://me:canary@example.com/", "http://:1/"]
        {
            let error = Address::parse(wrong).unwrap_err().to_string();
            assert!(error.starts_with("invalid address: ") && !error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn what_leaves_the_machine_in_the_open_is_known() {
        let guarded = |url: &str| Address::parse(url).unwrap().is_guarded();
        assert!(
            ["https://a.example", "http://localhost:1", "http://127.9.0.1", "http://[::1]:8/v1"]
                .into_iter()
                .all(guarded)
        );
        assert!(!["http://10.0.0.1", "http://localhost.evil.com", "http://0.0.0.0"].into_iter().any(guarded));
    }
}
