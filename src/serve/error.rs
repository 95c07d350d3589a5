//! The errors of starting a server.

use crate::store::StoreError;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The reason why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another server already serves the project.
    #[error("another server already serves this project: {holder}")]
    Held {
        /// The other server.
        holder: String,
    },
    /// No server runs for the project.
    #[error("no server is running for the project {project}")]
    NoServer {
        /// The project's folder.
        project: String,
    },
    /// Another program uses the address.
    #[error("{address} is in use by another program")]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// The server cannot listen at the address.
    #[error("cannot listen at {address}")]
    Unbound {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The address is reachable from other machines.
    #[error("{address} is open to other machines, which can read the traffic: fledge serve has no TLS")]
    Public {
        /// The address.
        address: SocketAddr,
    },
    /// The token cannot be used.
    #[error("the token {place}: {why}")]
    Token {
        /// The source of the token.
        place: String,
        /// The reason.
        why: String,
    },
    /// The system gives no random bytes.
    #[error("cannot get random bytes from the system")]
    NoChance,
    /// A file of the server cannot be read or written.
    #[error("cannot {verb} {}", .path.display())]
    File {
        /// The failed operation.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ServeError {
    pub(in crate::serve) fn file(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { verb, path, source }
    }
}
