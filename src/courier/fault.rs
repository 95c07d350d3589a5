//! Why a letter did not get there, or its answer did not come back.

use std::{error::Error, time::Duration};

/// Why there is no answer. Names the host and nothing else of an address, and no header.
#[derive(Debug, thiserror::Error)]
pub enum CourierError {
    /// The address is none that can be sent to.
    #[error("the address cannot be used: {problem}")]
    BadAddress {
        /// What is wrong with it.
        problem: String,
    },
    /// A header cannot be sent.
    #[error("the header `{header}` has a name or a value that HTTP cannot carry")]
    BadHeader {
        /// Its name.
        header: String,
    },
    /// The proxy's address cannot be used.
    #[error("the proxy must be an http or https address")]
    BadProxy,
    /// The certificates cannot be used.
    #[error("the CA file holds no certificates; expected PEM, as `-----BEGIN CERTIFICATE-----`")]
    BadCertificates,
    /// The HTTP client does not start.
    #[error("the HTTP client does not start")]
    Client {
        /// Why.
        source: reqwest::Error,
    },
    /// Nobody is there.
    #[error("cannot connect to {host}: {why}")]
    Unreachable {
        /// Where.
        host: String,
        /// Why.
        why: String,
    },
    /// It breaks off before the answer is whole.
    #[error("{host} breaks off: {why}")]
    Broken {
        /// Where.
        host: String,
        /// How.
        why: String,
    },
    /// It took too long.
    #[error("{host} has not answered within {time:?}")]
    Late {
        /// Where.
        host: String,
        /// How long it was waited for.
        time: Duration,
    },
    /// The answer is longer than may be.
    #[error("the answer of {host} has more than {most} bytes")]
    TooLarge {
        /// Where.
        host: String,
        /// How many it may have.
        most: usize,
    },
    /// It sends elsewhere.
    #[error("{host} sends elsewhere (status {status}), and nobody follows: give the address where it leads")]
    Redirect {
        /// Where.
        host: String,
        /// Its status.
        status: u16,
    },
}

impl CourierError {
    /// Whether it may go better later with nothing changed.
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

/// The innermost cause: the outer ones only say that something went wrong, and where to, with all of the address.
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
