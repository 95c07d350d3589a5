//! One-time links: each a file named by the digest of its code, which is removed by whoever uses it first. So another process can make
//! one, and none is used twice.

use super::{ServeFault, expiry, secret};
use crate::store::{make_private, read_text, sha256, write_whole};
use jiff::Timestamp;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a link holds.
const LASTS: Duration = Duration::from_secs(15 * 60);
/// Bytes of the longest file of one.
const LONGEST: usize = 64;

/// The code of a link that nobody has used yet.
#[derive(Debug)]
pub struct Link;

impl Link {
    /// Makes one for the server of this folder; gives its code, which is kept nowhere.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn make(folder: &Path, now: Timestamp) -> Result<String, ServeFault> {
        let (code, folder) = (secret()?, place(folder));
        make_private(&folder)?;
        let until = now.as_millisecond().saturating_add(i64::try_from(LASTS.as_millis()).unwrap_or(i64::MAX));
        write_whole(&folder.join(sha256(code.as_bytes())), format!("{until}\n").as_bytes())?;
        Ok(code)
    }

    /// How long one holds.
    pub fn lasts() -> Duration {
        LASTS
    }

    /// Uses one up. `false` where it is none, has expired, or was used before.
    pub(super) fn redeem(folder: &Path, code: &str, now: Timestamp) -> bool {
        let path = place(folder).join(sha256(code.as_bytes()));
        let until = read_text(&path, LONGEST).ok().flatten().as_deref().and_then(expiry);
        // Of two at once only one removes it.
        let is_first = fs::remove_file(&path).is_ok();
        is_first && until.is_some_and(|until| now.as_millisecond() < until)
    }

    /// Removes those that have expired; says how many.
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
        let code = Link::make(home.path(), now).unwrap();
        assert!(!Link::redeem(home.path(), "another", now) && !Link::redeem(home.path(), "", now));
        assert!(Link::redeem(home.path(), &code, now));
        assert!(!Link::redeem(home.path(), &code, now), "used twice");
        let (late, swept) = (Link::make(home.path(), now).unwrap(), Link::make(home.path(), now).unwrap());
        assert_eq!(Link::sweep(home.path(), now), 0);
        assert!(!Link::redeem(home.path(), &late, now + LASTS));
        assert_eq!(Link::sweep(home.path(), now + LASTS), 1);
        assert!(!Link::redeem(home.path(), &swept, now));
    }
}
