//! Fail points: named places where a test makes this process die or an operation fail.
//!
//! Crash tests use them to prove that fledge loses no data. A build without debug assertions, as
//! users have it, has no fail points.
//!
//! `FLEDGE_FAIL` selects the effect. NAME is `WORK: STAGE`, such as `journal sync: begun`. An
//! invalid value has no effect.
//! - `trace:FILE` appends the name of each place reached to the file, one per line.
//! - `abort:NAME#3` aborts the process, as a kill would, when it reaches the place for the third
//!   time.
//! - `error:NAME#3` makes the operation fail when the process reaches the place for the third time.
//! - `hold:NAME#3@PIPE` makes the process wait when it reaches the place for the third time, until
//!   a test has opened this named pipe for writing and closed it again.

/// Does nothing: this build has no fail points.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn reach(_work: &str, _stage: &str) -> std::io::Result<()> {
    Ok(())
}

#[cfg(debug_assertions)]
pub(crate) use armed::reach;

#[cfg(debug_assertions)]
mod armed {
    use std::fs::OpenOptions;
    use std::io::{self, Write};
    use std::path::PathBuf;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static EFFECT: LazyLock<Effect> = LazyLock::new(Effect::of_environment);

    #[derive(Debug, PartialEq, Eq)]
    enum Effect {
        None,
        Trace(PathBuf),
        Abort(Place),
        Error(Place),
        Hold(Place, PathBuf),
    }

    /// The name of a place, and the count of visits at which it takes effect.
    type Place = (String, u64);

    /// Marks a place, named by the work and its stage (`begun`, `done`).
    ///
    /// # Errors
    /// An [`io::Error`] if `FLEDGE_FAIL` makes this place fail, or if the trace file cannot be
    /// written.
    pub(crate) fn reach(work: &str, stage: &str) -> io::Result<()> {
        let name = format!("{work}: {stage}");
        match &*EFFECT {
            Effect::None => Ok(()),
            Effect::Trace(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                file?.write_all(format!("{name}\n").as_bytes())
            }
            Effect::Abort(place) if is_reached(place, &name) => std::process::abort(),
            Effect::Error(place) if is_reached(place, &name) => Err(io::Error::other(format!("made to fail, {name}"))),
            Effect::Hold(place, pipe) if is_reached(place, &name) => std::fs::read(pipe).map(drop),
            Effect::Abort(_) | Effect::Error(_) | Effect::Hold(..) => Ok(()),
        }
    }

    fn is_reached(place: &Place, name: &str) -> bool {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        place.0 == name && COUNT.fetch_add(1, Ordering::SeqCst) + 1 == place.1
    }

    impl Effect {
        #[expect(clippy::disallowed_methods, reason = "fail points have no access to the configuration")]
        fn of_environment() -> Self {
            Self::read(&std::env::var("FLEDGE_FAIL").unwrap_or_default())
        }

        fn read(text: &str) -> Self {
            let (verb, what) = text.split_once(':').unwrap_or_default();
            let (what, pipe) = match verb {
                "hold" => what.split_once('@').unwrap_or_default(),
                _ => (what, ""),
            };
            let place = what.rsplit_once('#').and_then(|(name, count)| Some((name.to_owned(), count.parse().ok()?)));
            match (verb, place) {
                ("trace", _) => Self::Trace(what.into()),
                ("abort", Some(place)) => Self::Abort(place),
                ("error", Some(place)) => Self::Error(place),
                ("hold", Some(place)) => Self::Hold(place, pipe.into()),
                _ => Self::None,
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn an_order_names_what_happens_where_and_at_which_time() {
            let place = || ("journal sync: begun".to_owned(), 12);
            assert_eq!(Effect::read("abort:journal sync: begun#12"), Effect::Abort(place()));
            assert_eq!(Effect::read("error:journal sync: begun#12"), Effect::Error(place()));
            assert_eq!(Effect::read("hold:journal sync: begun#12@/a/b"), Effect::Hold(place(), "/a/b".into()));
            assert_eq!(Effect::read("trace:/a/b#c"), Effect::Trace("/a/b#c".into()));
            assert_eq!(["", "abort:a", "abort:a#b", "a"].map(Effect::read), [const { Effect::None }; 4]);
        }
    }
}
