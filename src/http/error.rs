//! The error of a request that got no valid answer.

use std::{error::Error, time::Duration};

/// An error of an HTTP request. Messages contain at most the host of an address, and no value of a
/// header.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address cannot be used.
    #[error("invalid address: {problem}")]
    BadAddress {
        /// The reason.
        problem: String,
    },
    /// A header cannot be sent.
    #[error("invalid header `{header}`: HTTP does not allow its name or value")]
    BadHeader {
        /// The header's name.
        header: String,
    },
    /// The proxy's address cannot be used.
    #[error("the proxy must be an http or https address")]
    BadProxy,
    /// The certificates cannot be used.
    #[error("the CA file contains no certificates: expected PEM, e.g. `-----BEGIN CERTIFICATE-----`")]
    BadCertificates,
    /// The HTTP client cannot be created.
    #[error("cannot start the HTTP client")]
    Client {
        /// The cause.
        source: reqwest::Error,
    },
    /// The host refuses connections or cannot be reached.
    #[error("cannot connect to {host}: {why}")]
    Unreachable {
        /// The host.
        host: String,
        /// The cause.
        why: String,
    },
    /// The connection ended before the answer was complete.
    #[error("the connection to {host} broke: {why}")]
    Broken {
        /// The host.
        host: String,
        /// The cause.
        why: String,
    },
    /// The answer did not arrive in time.
    #[error("no answer from {host} within {time:?}")]
    Late {
        /// The host.
        host: String,
        /// The time limit.
        time: Duration,
    },
    /// The answer exceeds its size limit.
    #[error("the answer from {host} is larger than {most} bytes")]
    TooLarge {
        /// The host.
        host: String,
        /// The limit, in bytes.
        most: usize,
    },
    /// The answer is a redirect, which fledge does not follow.
    #[error("{host} redirects (status {status}): configure the final address")]
    Redirect {
        /// The host.
        host: String,
        /// The status of the answer.
        status: u16,
    },
}

impl HttpError {
    /// Returns true if the same request may succeed later.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } | Self::Late { .. } => true,
            Self::BadAddress { .. }
            | Self::BadHeader { .. }
            | Self::BadProxy
            | Self::BadCertificates
            | Self::Client { .. }
            | Self::TooLarge { .. }
            | Self::Redirect { .. } => false,
        }
    }

    pub(super) fn unreachable(host: String, error: &reqwest::Error) -> Self {
        match error.is_connect() {
            true => Self::Unreachable { host, why: root(error) },
            false => Self::broken(host, error),
        }
    }

    pub(super) fn broken(host: String, error: &reqwest::Error) -> Self {
        Self::Broken { host, why: root(error) }
    }
}

/// Returns the innermost cause. The outer causes add only the complete address, which may be
/// secret.
fn root(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    match cause.downcast_ref::<reqwest::Error>() {
        Some(_) => "the request failed".into(),
        None => cause.to_string(),
    }
}
