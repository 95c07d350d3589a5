//! How long the steps of a project's lanes took, so that the longest can be started first. A small file beside the runs; it helps and
//! proves nothing, so one that is broken counts as empty, and of two runs that write it at once one may be forgotten.

use super::{StoreError, sha256};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

const VERSION: u32 = 1;
/// How many steps are remembered. Those that were not seen for longest are forgotten.
const MOST: usize = 2000;
/// The largest file that is read, in bytes.
const MAX_FILE: usize = 1024 * 1024;

/// What is known of how long steps take.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durations {
    schema_version: u32,
    /// Counts the runs that have added to it.
    run: u64,
    steps: BTreeMap<String, Known>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    ms: u32,
    /// The run that has added to it last.
    run: u64,
}

impl Durations {
    /// Reads the file. Empty when it is missing, broken, or of a newer version.
    pub fn read(path: &Path) -> Self {
        let text = super::read_text(path, MAX_FILE).ok().flatten().unwrap_or_default();
        serde_json::from_str(&text).ok().filter(|known: &Self| known.schema_version == VERSION).unwrap_or_default()
    }

    /// How long a step is thought to take; zero when it is not known. It is another step when its command is another one.
    pub fn of(&self, lane: &str, step: &str, command: &str) -> Duration {
        self.steps.get(&key(lane, step, command)).map_or(Duration::ZERO, |known| Duration::from_millis(known.ms.into()))
    }

    /// Adds to the file how long steps have taken, each with its lane, name and command: three tenths of the new, seven of what was
    /// known. Written in one step but not synced: after a crash of the machine it may be an older one, or broken.
    ///
    /// # Errors
    /// When it cannot be written; what was there before is then still there.
    pub fn add<'a>(
        path: &Path,
        took: impl IntoIterator<Item = (&'a str, &'a str, &'a str, Duration)>,
    ) -> Result<(), StoreError> {
        let mut all = Self::read(path);
        (all.schema_version, all.run) = (VERSION, all.run.saturating_add(1));
        for (lane, step, command, took) in took {
            let took = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
            let known = all.steps.entry(key(lane, step, command)).or_insert(Known { ms: took, run: 0 });
            *known = Known { ms: mixed(known.ms, took), run: all.run };
        }
        all.prune();
        let fail = |source| StoreError::new("write", path, source);
        let folder = path.parent().unwrap_or(Path::new("."));
        super::make_private(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
        let text = serde_json::to_vec(&all).map_err(|error| fail(error.into()))?;
        file.write_all(&text).map_err(fail)?;
        file.persist(path).map(drop).map_err(|error| fail(error.error))
    }

    /// Forgets the steps that were not seen for longest.
    fn prune(&mut self) {
        let surplus = self.steps.len().saturating_sub(MOST);
        let mut by_age: Vec<(u64, String)> = self.steps.iter().map(|(key, known)| (known.run, key.clone())).collect();
        by_age.sort_unstable();
        for (_, key) in &by_age[..surplus] {
            self.steps.remove(key);
        }
    }
}

fn mixed(old: u32, new: u32) -> u32 {
    let sum = u64::from(old) * 7 + u64::from(new) * 3;
    u32::try_from(sum / 10).unwrap_or(u32::MAX)
}

/// Names a step for people who look into the file; the digest is that of its command.
fn key(lane: &str, step: &str, command: &str) -> String {
    format!("{lane}/{step} {}", &sha256(command.as_bytes())[..12])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn what_is_learned_moves_slowly_and_belongs_to_a_command() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("project/durations.json");
        assert_eq!(Durations::read(&path), Durations::default());
        Durations::add(&path, [("verify", "test", "cargo test", ms(1000)), ("verify", "lint", "x", ms(5))]).unwrap();
        Durations::add(&path, [("verify", "test", "cargo test", ms(2000))]).unwrap();
        let known = Durations::read(&path);
        let of = |lane: &str, command: &str| known.of(lane, "test", command);
        assert_eq!(
            [of("verify", "cargo test"), of("verify", "true"), of("fix", "cargo test")],
            [ms(1300), ms(0), ms(0)]
        );
        assert_eq!(known.of("verify", "lint", "x"), ms(5));
    }

    #[test]
    fn what_is_broken_or_newer_counts_as_empty_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("durations.json");
        let newer = r#"{"schema_version":2,"run":1,"steps":{}}"#;
        for text in ["", "{", "[]", "\u{0}", newer, r#"{"schema_version":1,"run":1,"steps":{"a":5}}"#] {
            fs::write(&path, text).unwrap();
            assert_eq!(Durations::read(&path), Durations::default(), "{text}");
            Durations::add(&path, [("a", "b", "c", ms(100))]).unwrap();
            assert_eq!(Durations::read(&path).of("a", "b", "c"), ms(100));
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(Durations::add(&path, [("a", "b", "c", ms(100))]).is_err());
    }

    #[test]
    fn what_was_not_seen_for_longest_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("durations.json");
        let steps: Vec<String> = (0..MOST).map(|n| format!("step {n}")).collect();
        Durations::add(&path, [("verify", "first", "c", ms(100))]).unwrap();
        Durations::add(&path, [("verify", "second", "c", ms(100))]).unwrap();
        Durations::add(&path, steps[1..].iter().map(|step| ("verify", step.as_str(), "c", ms(100)))).unwrap();
        let known = Durations::read(&path);
        assert_eq!([known.of("verify", "first", "c"), known.of("verify", "second", "c")], [ms(0), ms(100)]);
        assert_eq!(known.steps.len(), MOST);
    }

    #[test]
    fn runs_that_write_it_at_once_never_tear_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("durations.json");
        std::thread::scope(|scope| {
            for name in ["a", "b", "c", "d"] {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..25 {
                        Durations::add(path, [("verify", name, "c", ms(100))]).unwrap();
                        assert_ne!(Durations::read(path), Durations::default());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
