//! Browser sessions. Each session is a file named after the digest of its cookie, with its expiry
//! time and the mark of its token. A new token ends all sessions.

use super::{ServeError, expiry, secret};
use crate::store::{make_private, read_text, sha256, write_whole};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The lifetime of a session.
pub(in crate::serve) const LASTS: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The largest number of sessions. A further session ends the one that would expire first.
const MOST: usize = 100;
/// The size limit of a session's file, in bytes.
const LONGEST: usize = 256;

/// The sessions that have not ended.
#[derive(Debug)]
pub(super) struct Sessions {
    folder: PathBuf,
    mark: String,
    /// The expiry times by digest, in milliseconds since 1970.
    all: Mutex<BTreeMap<String, i64>>,
}

impl Sessions {
    /// Reads the sessions of the token with this mark, and removes all others.
    pub(super) fn open(folder: &Path, mark: &str, now: Timestamp) -> Result<Self, ServeError> {
        let folder = folder.join("sessions");
        make_private(&folder)?;
        let mut all = BTreeMap::new();
        let entries = fs::read_dir(&folder).map_err(ServeError::file("read", &folder))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let text = read_text(&path, LONGEST).ok().flatten().unwrap_or_default();
            let until = expiry(&text).filter(|until| *until > now.as_millisecond());
            match (until, path.file_name().and_then(|name| name.to_str())) {
                (Some(until), Some(name)) if text.lines().nth(1) == Some(mark) => {
                    all.insert(name.to_owned(), until);
                }
                _ => drop(fs::remove_file(&path)),
            }
        }
        Ok(Self { folder, mark: mark.to_owned(), all: Mutex::new(all) })
    }

    /// Begins a session. Returns its cookie, which is stored nowhere.
    pub(super) fn begin(&self, now: Timestamp) -> Result<String, ServeError> {
        let cookie = secret()?;
        let name = sha256(cookie.as_bytes());
        let until = now.as_millisecond().saturating_add(i64::try_from(LASTS.as_millis()).unwrap_or(i64::MAX));
        write_whole(&self.folder.join(&name), format!("{until}\n{}\n", self.mark).as_bytes())?;
        let mut all = self.all();
        all.insert(name, until);
        while all.len() > MOST {
            let Some(first) = all.iter().min_by_key(|(_, until)| **until).map(|(name, _)| name.clone()) else { break };
            self.forget(&mut all, &first);
        }
        Ok(cookie)
    }

    /// Returns true if the cookie belongs to a session that has not expired.
    pub(super) fn knows(&self, cookie: &str, now: Timestamp) -> bool {
        // The lookup compares digests, so its timing reveals nothing about the cookie.
        self.all().get(&sha256(cookie.as_bytes())).is_some_and(|until| *until > now.as_millisecond())
    }

    /// Ends a session.
    pub(super) fn end(&self, cookie: &str) {
        self.forget(&mut self.all(), &sha256(cookie.as_bytes()));
    }

    /// Removes expired sessions. Returns their number.
    pub(super) fn sweep(&self, now: Timestamp) -> usize {
        let mut all = self.all();
        let over = all.iter().filter(|(_, until)| **until <= now.as_millisecond());
        let over: Vec<String> = over.map(|(name, _)| name.clone()).collect();
        over.iter().for_each(|name| self.forget(&mut all, name));
        over.len()
    }

    fn forget(&self, all: &mut BTreeMap<String, i64>, name: &str) {
        all.remove(name);
        let _is_gone_already = fs::remove_file(self.folder.join(name));
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, i64>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_outlives_the_server_and_ends_with_its_time_or_its_token() {
        let (home, now) = (crate::test_support::temp_dir(), Timestamp::UNIX_EPOCH);
        let sessions = Sessions::open(home.path(), "mark", now).unwrap();
        let (cookie, left) = (sessions.begin(now).unwrap(), sessions.begin(now).unwrap());
        sessions.end(&left);
        assert!(sessions.knows(&cookie, now) && !sessions.knows(&left, now) && !sessions.knows("", now));
        let again = Sessions::open(home.path(), "mark", now).unwrap();
        assert!(again.knows(&cookie, now) && !again.knows(&cookie, now + LASTS));
        assert_eq!((again.sweep(now), again.sweep(now + LASTS)), (0, 1));
        let cookie = again.begin(now).unwrap();
        assert!(!Sessions::open(home.path(), "another", now).unwrap().knows(&cookie, now));
        assert_eq!(fs::read_dir(home.path().join("sessions")).unwrap().count(), 0);
    }

    #[test]
    fn there_is_an_end_to_how_many_there_are() {
        let (home, now) = (crate::test_support::temp_dir(), Timestamp::UNIX_EPOCH);
        let sessions = Sessions::open(home.path(), "mark", now).unwrap();
        let first = sessions.begin(now).unwrap();
        for seconds in 1..=i64::try_from(MOST).unwrap() {
            sessions.begin(now + Duration::from_secs(seconds.unsigned_abs())).unwrap();
        }
        assert!(!sessions.knows(&first, now));
        assert_eq!(fs::read_dir(home.path().join("sessions")).unwrap().count(), MOST);
    }
}
