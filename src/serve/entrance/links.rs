//! One-time links. Each link is a file named after the digest of its code, and its first use
//! removes the file. Another process can therefore create a link, and no link works twice.

use super::{ServeError, expiry, secret};
use crate::store::{make_private, read_text, sha256, write_whole};
use jiff::Timestamp;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The lifetime of a link.
const LASTS: Duration = Duration::from_secs(15 * 60);
/// The size limit of a link's file, in bytes.
const LONGEST: usize = 64;

/// A one-time link that is not used yet.
#[derive(Debug)]
pub struct LoginLink;

impl LoginLink {
    /// Creates a link for the server of this folder. Returns its code, which is stored nowhere.
    ///
    /// # Errors
    /// If the link cannot be written.
    pub fn make(folder: &Path, now: Timestamp) -> Result<String, ServeError> {
        let (code, folder) = (secret()?, place(folder));
        make_private(&folder)?;
        let until = now.as_millisecond().saturating_add(i64::try_from(LASTS.as_millis()).unwrap_or(i64::MAX));
        write_whole(&folder.join(sha256(code.as_bytes())), format!("{until}\n").as_bytes())?;
        Ok(code)
    }

    /// Returns the lifetime of a link.
    pub fn lasts() -> Duration {
        LASTS
    }

    /// Uses up a link. Returns `false` if it does not exist, has expired, or was used before.
    pub(super) fn redeem(folder: &Path, code: &str, now: Timestamp) -> bool {
        let path = place(folder).join(sha256(code.as_bytes()));
        let until = read_text(&path, LONGEST).ok().flatten().as_deref().and_then(expiry);
        // Only one of two concurrent requests can remove the file.
        let is_first = fs::remove_file(&path).is_ok();
        is_first && until.is_some_and(|until| now.as_millisecond() < until)
    }

    /// Removes expired links. Returns their number.
    pub(super) fn sweep(folder: &Path, now: Timestamp) -> usize {
        let files = fs::read_dir(place(folder)).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_over = |path: &PathBuf| {
            let until = read_text(path, LONGEST).ok().flatten().as_deref().and_then(expiry);
            until.is_some_and(|until| until <= now.as_millisecond())
        };
        files.filter(is_over).filter(|path| fs::remove_file(path).is_ok()).count()
    }
}

fn place(folder: &Path) -> PathBuf {
    folder.join("links")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_used_once_and_not_after_its_time() {
        let home = crate::test_support::temp_dir();
        let now = Timestamp::UNIX_EPOCH;
        let code = LoginLink::make(home.path(), now).unwrap();
        assert!(!LoginLink::redeem(home.path(), "another", now) && !LoginLink::redeem(home.path(), "", now));
        assert!(LoginLink::redeem(home.path(), &code, now));
        assert!(!LoginLink::redeem(home.path(), &code, now), "used twice");
        let (late, swept) = (LoginLink::make(home.path(), now).unwrap(), LoginLink::make(home.path(), now).unwrap());
        assert_eq!(LoginLink::sweep(home.path(), now), 0);
        assert!(!LoginLink::redeem(home.path(), &late, now + LASTS));
        assert_eq!(LoginLink::sweep(home.path(), now + LASTS), 1);
        assert!(!LoginLink::redeem(home.path(), &swept, now));
    }
}
