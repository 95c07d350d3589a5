//! Authentication: by the token, or by a session that began with a one-time link.
//!
//! fledge keeps only digests of links and sessions, each as a file in the server's folder. They
//! therefore survive a restart, and another process can create a link.

mod links;
mod sessions;
mod token;

pub use links::LoginLink;
pub use token::AccessToken;

use super::ServeError;
use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use sessions::Sessions;
use std::path::{Path, PathBuf};

/// The number of random bytes in a token, a link code or a session cookie.
const CHANCE: usize = 32;

/// The authentication of a server.
#[derive(Debug)]
pub struct LoginGuard {
    folder: PathBuf,
    token: AccessToken,
    sessions: Sessions,
}

impl LoginGuard {
    /// Opens the authentication of a server's folder, with the sessions of this token.
    ///
    /// # Errors
    /// If the sessions cannot be read.
    pub fn open(folder: &Path, token: AccessToken, now: Timestamp) -> Result<Self, ServeError> {
        LoginLink::sweep(folder, now);
        let sessions = Sessions::open(folder, token.mark(), now)?;
        Ok(Self { folder: folder.to_owned(), token, sessions })
    }

    /// Returns true if this is the token. The comparison takes constant time.
    pub(in crate::serve) fn knows_token(&self, given: &[u8]) -> bool {
        self.token.is(given)
    }

    /// Returns true if this is a session that has not expired.
    pub(in crate::serve) fn knows_session(&self, given: &str, now: Timestamp) -> bool {
        self.sessions.knows(given, now)
    }

    /// Exchanges a link's code for a session, and uses up the link. Returns `None` if the link is
    /// unknown or no longer valid. May block.
    ///
    /// # Errors
    /// If the session cannot be stored.
    pub(in crate::serve) fn enter(&self, code: &str, now: Timestamp) -> Result<Option<String>, ServeError> {
        if !LoginLink::redeem(&self.folder, code, now) {
            return Ok(None);
        }
        self.sessions.begin(now).map(Some)
    }

    /// Ends a session. May block.
    pub(in crate::serve) fn leave(&self, given: &str) {
        self.sessions.end(given);
    }

    /// Removes expired sessions, and returns their number. May block.
    pub fn sweep_sessions(&self, now: Timestamp) -> usize {
        self.sessions.sweep(now)
    }

    /// Removes expired links, and returns their number. May block.
    pub fn sweep_links(&self, now: Timestamp) -> usize {
        LoginLink::sweep(&self.folder, now)
    }
}

/// Returns a random text that cannot be guessed.
fn secret() -> Result<String, ServeError> {
    use base64::Engine;
    let mut bytes = [0; CHANCE];
    SystemRandom::new().fill(&mut bytes).map_err(|_| ServeError::NoChance)?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

/// Parses the expiry time in a file, in milliseconds since 1970.
fn expiry(text: &str) -> Option<i64> {
    text.lines().next()?.parse().ok()
}
