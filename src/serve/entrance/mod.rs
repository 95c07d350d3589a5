//! Who gets in: whoever has the token, or a session that a one-time link has begun. Of links and sessions only digests are kept, each a
//! file of the server's folder, so that they outlive it and another process can make a link.

mod links;
mod sessions;
mod token;

pub use links::Link;
pub use token::Token;

use super::ServeFault;
use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use sessions::Sessions;
use std::path::{Path, PathBuf};

/// Random bytes of a token, a link or a session.
const CHANCE: usize = 32;

/// The door-keeper.
#[derive(Debug)]
pub struct Entrance {
    folder: PathBuf,
    token: Token,
    sessions: Sessions,
}

impl Entrance {
    /// That of a server's folder, with sessions that this token has let in before.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn open(folder: &Path, token: Token, now: Timestamp) -> Result<Self, ServeFault> {
        Link::sweep(folder, now);
        let sessions = Sessions::open(folder, token.mark(), now)?;
        Ok(Self { folder: folder.to_owned(), token, sessions })
    }

    /// Whether this is the token. Takes the same time whatever is wrong with it.
    pub(in crate::serve) fn knows_token(&self, given: &[u8]) -> bool {
        self.token.is(given)
    }

    /// Whether this is a session that has not expired.
    pub(in crate::serve) fn knows_session(&self, given: &str, now: Timestamp) -> bool {
        self.sessions.knows(given, now)
    }

    /// Begins a session for who has a link, which is used up by it; `None` where it is none, or no more. May block.
    ///
    /// # Errors
    /// When the session cannot be kept.
    pub(in crate::serve) fn enter(&self, code: &str, now: Timestamp) -> Result<Option<String>, ServeFault> {
        if !Link::redeem(&self.folder, code, now) {
            return Ok(None);
        }
        self.sessions.begin(now).map(Some)
    }

    /// Ends a session. May block.
    pub(in crate::serve) fn leave(&self, given: &str) {
        self.sessions.end(given);
    }

    /// Forgets sessions that have ended; says how many. May block.
    pub fn sweep_sessions(&self, now: Timestamp) -> usize {
        self.sessions.sweep(now)
    }

    /// Forgets links that have expired; says how many. May block.
    pub fn sweep_links(&self, now: Timestamp) -> usize {
        Link::sweep(&self.folder, now)
    }
}

/// A word that nobody guesses.
fn secret() -> Result<String, ServeFault> {
    use base64::Engine;
    let mut bytes = [0; CHANCE];
    SystemRandom::new().fill(&mut bytes).map_err(|_| ServeFault::NoChance)?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

/// The time that a file says, in milliseconds since 1970.
fn expiry(text: &str) -> Option<i64> {
    text.lines().next()?.parse().ok()
}
