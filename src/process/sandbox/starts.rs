//! The start of a program in a sandbox on a machine that changes meanwhile. Bubblewrap fails if a
//! socket or a folder is gone by the time its mount is made. Then fledge builds the sandbox anew
//! from what exists, and the last time without covering sockets.

use super::bubblewrap::SocketRules;
use super::{PathRules, Placeholders, Sandbox, SandboxKind};
use crate::process::{self, Backpressure, EndedProcess, Invocation, ProcessEnd, ProcessFiles};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The maximum number of attempts to build a sandbox. The last one does not depend on any socket:
/// programs in it cannot make sockets that reach outside.
const STARTS: usize = 12;
/// The longest time that a failed build takes. A program that ran longer has started.
const BUILDING: Duration = Duration::from_secs(5);
/// The prefix of bubblewrap's message about a missing path.
const GONE: &str = "bwrap: Can't ";
/// The longest message of this kind, in bytes.
const LINE: usize = 8 * 1024;
/// The file that covers a socket.
const COVER: &str = "/dev/null";

impl Sandbox {
    /// Returns the invocations of successive attempts to run a program in the sandbox. Each is
    /// built from what exists at that moment. Take the next invocation only if a start failed
    /// because something had vanished: see [`Sandbox::found_something_gone`].
    pub fn builds(
        &self,
        rules: &PathRules,
        inner: &Invocation,
        placeholders: &Placeholders,
    ) -> impl Iterator<Item = Invocation> {
        let most = if self.kind() == SandboxKind::Bubblewrap { STARTS } else { 1 };
        (1..=most).map(move |number| {
            let sockets = if number < STARTS { SocketRules::OneByOne } else { SocketRules::None };
            let outer = self.built(rules, inner.clone(), sockets);
            placeholders.record_sockets(covers(&outer));
            outer
        })
    }

    /// Returns whether a line of output says that the sandbox could not be built because a path had
    /// vanished.
    pub fn found_something_gone(&self, line: &str) -> bool {
        self.kind() == SandboxKind::Bubblewrap && line.starts_with(GONE)
    }

    /// Runs a program in the sandbox, as [`process::run_at`] does without one. If the sandbox keeps
    /// the program from starting, returns [`ProcessEnd::NotStarted`].
    pub async fn run_at(
        &self,
        pace: Option<&Backpressure>,
        rules: &PathRules,
        inner: Invocation,
        stop: &CancellationToken,
        on_output: &(dyn Fn(&[u8]) + Send + Sync),
    ) -> EndedProcess {
        self.run_over(&self.placeholders(rules), (pace, &[]), rules, inner, stop, on_output).await
    }

    /// Runs a program in the sandbox with these bytes as its standard input. The caller holds the
    /// placeholders in the workspace.
    pub async fn run_fed(
        &self,
        input: &[u8],
        rules: &PathRules,
        inner: Invocation,
        stop: &CancellationToken,
    ) -> EndedProcess {
        self.run_over(&Placeholders::default(), (None, input), rules, inner, stop, &|_| {}).await
    }

    async fn run_over(
        &self,
        placeholders: &Placeholders,
        (pace, input): (Option<&Backpressure>, &[u8]),
        rules: &PathRules,
        inner: Invocation,
        stop: &CancellationToken,
        on_output: &(dyn Fn(&[u8]) + Send + Sync),
    ) -> EndedProcess {
        let mut builds = self.builds(rules, &inner, placeholders).peekable();
        while let Some(outer) = builds.next() {
            let waiting = (self.kind() == SandboxKind::Bubblewrap).then(Vec::new);
            let held = Held { on_output, waiting: Mutex::new(waiting) };
            let hear = |bytes: &[u8]| held.push(bytes);
            // Each attempt reads from the beginning.
            let files = if input.is_empty() { Ok(ProcessFiles::default()) } else { ProcessFiles::reading(input) };
            let files = match files {
                Ok(files) => files,
                Err(error) => return EndedProcess::at_once(ProcessEnd::NotStarted(error.to_string()), Duration::ZERO),
            };
            let ended = process::run_paced(pace, rules.limits.bounds(), files, outer.clone(), stop, &hear).await;
            let may_be_again = !stop.is_cancelled() && ended.duration <= BUILDING;
            if may_be_again && self.met_something_gone(&ended, &outer) && builds.peek().is_some() {
                continue; // building is costly, so the next sandbox is built only if needed
            }
            held.let_go();
            return self.explain_end(ended, rules, inner.clone(), stop).await;
        }
        EndedProcess::at_once(ProcessEnd::NotStarted("cannot build the sandbox".into()), Duration::ZERO)
    }

    /// Returns whether a vanished path kept the program from starting, and the program printed
    /// nothing else. A program that itself prints a message of this form, about a path of the
    /// sandbox, is started again.
    fn met_something_gone(&self, ended: &EndedProcess, outer: &Invocation) -> bool {
        let line = String::from_utf8_lossy(&ended.output.head);
        let is_named = |arg: &String| arg.len() > 1 && arg.starts_with('/') && line.contains(arg.as_str());
        self.claimed(ended).is_some() && self.found_something_gone(&line) && outer.args.iter().any(is_named)
    }
}

/// Returns the paths of the sockets that a sandbox covers.
fn covers(outer: &Invocation) -> impl Iterator<Item = &Path> {
    let all = outer.args.windows(3).filter(|part| part[0] == "--ro-bind" && part[1] == COVER);
    all.map(|part| Path::new(part[2].as_str()))
}

/// Output that is held back while it may be a message of bubblewrap.
struct Held<'a> {
    on_output: &'a (dyn Fn(&[u8]) + Send + Sync),
    /// The output held back. `None` if output passes through.
    waiting: Mutex<Option<Vec<u8>>>,
}

impl Held<'_> {
    fn push(&self, bytes: &[u8]) {
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
