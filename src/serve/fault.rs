//! Why no server can be started.

use crate::store::StoreError;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What was wrong.
#[derive(Debug, thiserror::Error)]
pub enum ServeFault {
    /// Another server has the project.
    #[error("another server has this project: {holder}")]
    Held {
        /// Which one.
        holder: String,
    },
    /// No server has the project.
    #[error("no server has the project {project}")]
    NoServer {
        /// Its folder.
        project: String,
    },
    /// Somebody listens there.
    #[error("{address} is in use by another program")]
    InUse {
        /// Where.
        address: SocketAddr,
    },
    /// It cannot be listened there.
    #[error("cannot listen at {address}")]
    Unbound {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Others than this machine would be served.
    #[error("{address} is open to other machines, which read what is sent to it: there is no TLS here")]
    Public {
        /// Where.
        address: SocketAddr,
    },
    /// The token cannot be used.
    #[error("the token {place}: {why}")]
    Token {
        /// Where it is from.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// The machine has no chance left.
    #[error("the system gives no random bytes")]
    NoChance,
    /// A file of the server's own cannot be read or written.
    #[error("cannot {verb} {}", .path.display())]
    File {
        /// What cannot be done.
        verb: &'static str,
        /// With what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is kept cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ServeFault {
    pub(in crate::serve) fn file(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { verb, path, source }
    }
}
