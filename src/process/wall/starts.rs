//! Starting a program behind a wall on a machine that does not stand still: a socket or a folder that is gone by the time its mount is made
//! keeps bubblewrap from building the wall. Then it is built anew from what there is, and at last without a look at sockets.

use super::bubblewrap::Sockets;
use super::{Holes, Placeholders, Wall, WallKind};
use crate::process::{self, End, Ended, Files, Invocation, Pace};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often a wall is built at most. The last one needs no socket to stay: behind it no program can make any that leads out of it.
const STARTS: usize = 12;
/// Who ran longer than this has not failed at the wall.
const BUILDING: Duration = Duration::from_secs(5);
/// What bubblewrap says when something is not there, or not any more.
const GONE: &str = "bwrap: Can't ";
/// Bytes of the longest such line.
const LINE: usize = 8 * 1024;
/// What covers a socket.
const COVER: &str = "/dev/null";

impl Wall {
    /// The same program behind the wall as it can be built now, and again as it can be built by then, for as long as it is not started for
    /// something that has vanished: see [`Wall::found_something_gone`].
    pub fn builds(
        &self,
        holes: &Holes,
        inner: &Invocation,
        placeholders: &Placeholders,
    ) -> impl Iterator<Item = Invocation> {
        let most = if self.kind() == WallKind::Bubblewrap { STARTS } else { 1 };
        (1..=most).map(move |number| {
            let sockets = if number < STARTS { Sockets::OneByOne } else { Sockets::None };
            let outer = self.built(holes, inner.clone(), sockets);
            placeholders.mind(covers(&outer));
            outer
        })
    }

    /// Whether a line of output says that the wall could not be built because something was not there any more.
    pub fn found_something_gone(&self, line: &str) -> bool {
        self.kind() == WallKind::Bubblewrap && line.starts_with(GONE)
    }

    /// Runs a program behind it, as [`process::run_at`] would without one; one that was stopped by the wall is [`End::NotStarted`].
    pub async fn run_at(
        &self,
        pace: Option<&Pace>,
        holes: &Holes,
        inner: Invocation,
        stop: &CancellationToken,
        on_output: &(dyn Fn(&[u8]) + Send + Sync),
    ) -> Ended {
        self.run_over(&self.placeholders(holes), (pace, &[]), holes, inner, stop, on_output).await
    }

    /// Runs a program behind it that reads these bytes, over what was put into the workspace already, by whoever holds it.
    pub async fn run_fed(&self, input: &[u8], holes: &Holes, inner: Invocation, stop: &CancellationToken) -> Ended {
        self.run_over(&Placeholders::default(), (None, input), holes, inner, stop, &|_| {}).await
    }

    async fn run_over(
        &self,
        placeholders: &Placeholders,
        (pace, input): (Option<&Pace>, &[u8]),
        holes: &Holes,
        inner: Invocation,
        stop: &CancellationToken,
        on_output: &(dyn Fn(&[u8]) + Send + Sync),
    ) -> Ended {
        let mut builds = self.builds(holes, &inner, placeholders).peekable();
        while let Some(outer) = builds.next() {
            let waiting = (self.kind() == WallKind::Bubblewrap).then(Vec::new);
            let held = Held { on_output, waiting: Mutex::new(waiting) };
            let hear = |bytes: &[u8]| held.take(bytes);
            // Each start reads from the beginning.
            let files = if input.is_empty() { Ok(Files::default()) } else { Files::reading(input) };
            let files = match files {
                Ok(files) => files,
                Err(error) => return Ended::at_once(End::NotStarted(error.to_string()), Duration::ZERO),
            };
            let ended = process::run_paced(pace, holes.limits.bounds(), files, outer.clone(), stop, &hear).await;
            let may_be_again = !stop.is_cancelled() && ended.duration <= BUILDING;
            if may_be_again && self.met_something_gone(&ended, &outer) && builds.peek().is_some() {
                continue; // the next wall is built, at some cost, only where it is needed
            }
            held.let_go();
            return self.told(ended, holes, inner.clone(), stop).await;
        }
        Ended::at_once(End::NotStarted("the wall was not built".into()), Duration::ZERO)
    }

    /// Whether that is all that came of it. A program that says the same about a path of the wall is started again: it is its own doing.
    fn met_something_gone(&self, ended: &Ended, outer: &Invocation) -> bool {
        let line = String::from_utf8_lossy(&ended.output.head);
        let is_named = |arg: &String| arg.len() > 1 && arg.starts_with('/') && line.contains(arg.as_str());
        self.claimed(ended).is_some() && self.found_something_gone(&line) && outer.args.iter().any(is_named)
    }
}

/// The sockets that a wall covers.
fn covers(outer: &Invocation) -> impl Iterator<Item = &Path> {
    let all = outer.args.windows(3).filter(|part| part[0] == "--ro-bind" && part[1] == COVER);
    all.map(|part| Path::new(part[2].as_str()))
}

/// Output that may be what bubblewrap says of itself waits until that is known.
struct Held<'a> {
    on_output: &'a (dyn Fn(&[u8]) + Send + Sync),
    /// What waits; `None` where nothing needs to.
    waiting: Mutex<Option<Vec<u8>>>,
}

impl Held<'_> {
    fn take(&self, bytes: &[u8]) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(all) = waiting.as_mut() else { return (self.on_output)(bytes) };
        all.extend_from_slice(bytes);
        let known = all.len().min(GONE.len());
        let is_one_line = memchr::memchr(b'\n', all).is_none_or(|end| end + 1 == all.len());
        if all[..known] != GONE.as_bytes()[..known] || !is_one_line || all.len() > LINE {
            (self.on_output)(all);
            *waiting = None;
        }
    }

    fn let_go(self) {
        let waiting = self.waiting.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = waiting.filter(|all| !all.is_empty()) {
            (self.on_output)(&all);
        }
    }
}
