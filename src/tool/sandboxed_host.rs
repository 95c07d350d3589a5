//! The driver's side of a tool host in a sandbox. It starts the host on demand, passes calls to it
//! and ends it together with every process that the host started. No background task reads the
//! answers: each waiting call also receives answers for other calls and passes them on.

use super::Progress;
use super::contract::{ToolEffect, ToolRequest};
use super::host::HostSettings;
use super::ledger::LedgerCopy;
use super::wire::{HostMessage, HostOpening, HostOrder, LONGEST, LONGEST_LEDGER};
use super::{Tool, bound, picture, shell_exec};
use crate::chat::{FileChange, ToolOutcome};
use crate::id::CallId;
use crate::limits::{CANCEL_GRACE, GRACE, HELPER_TIMEOUT};
use crate::process::sandbox::{PathRules, Placeholders, Sandbox};
use crate::process::{Dialogue, Invocation};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

/// The subcommand that makes the fledge program a tool host.
pub const TOOL_HOST: &str = "tool-host";
/// The time limit for a closing host to send its ledger.
const PARTING: Duration = Duration::from_secs(1);
/// The number of checks, 2 ms apart, for calls that still use a host that is ending.
const LEAVING: usize = 250;
/// The time limit of a call that runs no command.
const LOOKING: Duration = Duration::from_secs(120);
/// The extra time that a command gets after its own timeout. During this time, the host asks the
/// command to end, kills it and drains its output.
const ENDING: Duration = GRACE.saturating_add(Duration::from_secs(6));
/// The time limit for a call to end after it was cancelled.
const STOPPING: Duration = CANCEL_GRACE.saturating_add(Duration::from_millis(200));

/// A tool host in another process.
#[derive(Debug)]
pub(super) struct SandboxedHost {
    sandbox: Sandbox,
    rules: PathRules,
    helper: PathBuf,
    settings: HostSettings,
    session: tokio::sync::Mutex<Option<Arc<Session>>>,
    past: Mutex<HostHistory>,
    /// The environment of the newest host and of the processes that it starts.
    env: Mutex<Option<Vec<(String, String)>>>,
}

/// The state that the next host starts with.
#[derive(Debug, Default)]
struct HostHistory {
    ledger: LedgerCopy,
    changes: Vec<FileChange>,
}

/// A running host process.
#[derive(Debug)]
struct Session {
    dialogue: Dialogue,
    calls: Mutex<HashMap<u64, UnboundedSender<Answer>>>,
    /// The reason why this host can no longer be used.
    lost: Mutex<Option<String>>,
    placeholders: Placeholders,
}

#[derive(Debug)]
enum Answer {
    Progress(String),
    Done(Box<ToolOutcome>),
    Lost(String),
}

/// A registered call that waits for its answer. If the call is dropped before the answer, the host
/// still works on it and can no longer be used.
struct Waiting<'s> {
    session: &'s Session,
    call: CallId,
    answers: UnboundedReceiver<Answer>,
    is_done: bool,
}

impl SandboxedHost {
    pub(super) fn new(sandbox: Sandbox, rules: PathRules, helper: PathBuf, settings: HostSettings) -> Self {
        Self {
            sandbox,
            rules,
            helper,
            settings,
            session: tokio::sync::Mutex::new(None),
            past: Mutex::default(),
            env: Mutex::default(),
        }
    }

    pub(super) fn recall(&self, changes: impl IntoIterator<Item = FileChange>) {
        self.past().changes.extend(changes);
    }

    pub(super) fn environment(&self) -> Option<Vec<(String, String)>> {
        self.env.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts the host if it is not running.
    pub(super) async fn ready(&self, stop: &CancellationToken) -> Result<(), String> {
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            session = self.session() => session.map(drop),
        }
    }

    /// Runs one call. If the host dies, all running calls fail, and the next call starts a new
    /// host.
    pub(super) async fn call(
        &self,
        tool: Tool,
        request: ToolRequest,
        stop: &CancellationToken,
        progress: Progress<'_>,
    ) -> ToolOutcome {
        let session = tokio::select! {
            biased;
            () = stop.cancelled() => return ToolOutcome::error("stopped: the run was cancelled"),
            session = self.session() => session,
        };
        let patience = self.patience(&request);
        let outcome = match session {
            Ok(session) => session.call(request, patience, stop, progress).await,
            Err(why) => return ToolOutcome::error(format!("the tools could not be started: {why}")),
        };
        let change = outcome.change.filter(|_| tool.flags.effect == ToolEffect::Mutating);
        self.past().changes.extend(change.clone());
        let limit = self.settings.max_result.max(super::host::MIN_RESULT);
        // Only `files-read` shows pictures, and one call shows at most one.
        let shows = tool.name == super::files_read::TOOL.name;
        let images = outcome.images.into_iter().take(usize::from(shows)).filter(picture::may_be_shown).collect();
        ToolOutcome { content: bound::head(&outcome.content, limit).to_owned(), change, images, ..outcome }
    }

    /// Ends the host after it has sent its ledger. On return, no process that it started is alive.
    pub(super) async fn close(&self) {
        let mut held = self.session.lock().await;
        let Some(session) = held.take() else { return };
        if session.why_lost().is_none()
            && let Ok(Some(ledger)) = tokio::time::timeout(PARTING, session.part()).await
        {
            *self.past() = HostHistory { ledger, changes: Vec::new() };
        }
        session.end().await;
    }

    async fn session(&self) -> Result<Arc<Session>, String> {
        let mut held = self.session.lock().await;
        if let Some(session) =
            held.as_ref().filter(|session| session.why_lost().is_none() && session.dialogue.is_alive())
        {
            return Ok(session.clone());
        }
        if let Some(old) = held.take() {
            old.end().await;
        }
        let session = tokio::time::timeout(HELPER_TIMEOUT, self.begin())
            .await
            .map_err(|_| "the tool host did not start in time".to_owned());
        let session = Arc::new(session??);
        *held = Some(session.clone());
        Ok(session)
    }

    async fn begin(&self) -> Result<Session, String> {
        let invocation = Invocation {
            program: self.helper.display().to_string(),
            args: vec![TOOL_HOST.into()],
            dir: self.settings.root.clone(),
            env: self.settings.env.clone().into(),
            timeout: None,
            grace: Duration::ZERO,
            linger: Duration::ZERO,
            log: None,
            log_limit: 0,
        };
        let placeholders = self.sandbox.placeholders(&self.rules);
        let session = self.begin_behind(&invocation, &placeholders).await?;
        Ok(Session { placeholders, ..session })
    }

    async fn begin_behind(&self, invocation: &Invocation, placeholders: &Placeholders) -> Result<Session, String> {
        let mut why = String::new();
        for outer in self.sandbox.builds(&self.rules, invocation, placeholders) {
            let session = Session::start(&outer)?;
            match session.open(self.opening(&outer)).await {
                Ok(()) => return Ok(session),
                Err(fault) => why = fault,
            }
            session.dialogue.end().await;
            if !self.sandbox.found_something_gone(&why) {
                break;
            }
        }
        Err(why)
    }

    /// Builds the first message to the host. In a sandbox, the host and its processes have another
    /// home and another temporary folder.
    fn opening(&self, outer: &Invocation) -> HostOpening {
        let env: Vec<(String, String)> =
            outer.env.pairs().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        *self.env.lock().unwrap_or_else(PoisonError::into_inner) = Some(env.clone());
        let settings = HostSettings { env, ..self.settings.clone() };
        let past = self.past();
        HostOpening { settings, ledger: past.ledger.clone(), changes: past.changes.clone() }
    }

    /// Returns the time limit of a call. A host that its own shell command has stopped neither
    /// answers nor ends.
    fn patience(&self, request: &ToolRequest) -> Duration {
        if request.name != shell_exec::TOOL.name {
            return LOOKING;
        }
        let asked = request.input["timeout"].as_u64().map(Duration::from_secs);
        asked.unwrap_or(self.settings.shell_timeout).min(self.settings.shell_timeout) + ENDING
    }

    fn past(&self) -> MutexGuard<'_, HostHistory> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn start(outer: &Invocation) -> Result<Self, String> {
        let dialogue = Dialogue::start(outer)?;
        let (calls, lost, placeholders) = (Mutex::default(), Mutex::default(), Placeholders::default());
        Ok(Self { dialogue, calls, lost, placeholders })
    }

    /// Sends the opening and waits until the host is ready.
    async fn open(&self, opening: HostOpening) -> Result<(), String> {
        let message = self.say(&HostOrder::Open(Box::new(opening))).await;
        match self.receive(LONGEST).await {
            Ok(HostMessage::Ready) => message,
            Ok(HostMessage::Refused(why)) | Err(why) => Err(why),
            Ok(HostMessage::Progress(..) | HostMessage::Done(..) | HostMessage::Closed(_)) => {
                Err("unexpected first message from the tool host".into())
            }
        }
    }

    async fn call(
        &self,
        request: ToolRequest,
        patience: Duration,
        stop: &CancellationToken,
        progress: Progress<'_>,
    ) -> ToolOutcome {
        let mut waiting = self.wait_for(request.call);
        let call = request.call;
        let order = HostOrder::Call(request);
        let (saying, late) = (self.say(&order), tokio::time::sleep(patience));
        tokio::pin!(saying, late);
        let (mut is_said, mut is_told) = (false, false);
        loop {
            let limit =
                async { if is_told { tokio::time::sleep(STOPPING).await } else { std::future::pending().await } };
            let answer = tokio::select! {
                biased;
                answer = waiting.answers.recv() => answer.unwrap_or_else(|| Answer::Lost("fledge ended the tool host".into())),
                message = &mut saying, if !is_said => {
                    is_said = true;
                    message.unwrap_or_else(|why| self.lose(&why));
                    continue;
                }
                () = stop.cancelled(), if !is_told => {
                    is_told = true;
                    let cancel = HostOrder::Cancel(call);
                    let reported = tokio::time::timeout(STOPPING, self.say(&cancel)).await;
                    reported.unwrap_or_else(|_| Err("the tool host does not read messages".into())).unwrap_or_else(|why| self.lose(&why));
                    continue;
                }
                () = &mut late => {
                    self.lose("the tool host does not answer");
                    continue;
                }
                () = limit => {
                    self.lose("the call did not stop in time");
                    return ToolOutcome::error("stopped: the run was cancelled");
                }
                () = self.pass_on() => continue,
            };
            match answer {
                Answer::Progress(text) => progress(text),
                Answer::Done(outcome) => {
                    waiting.is_done = true;
                    return *outcome;
                }
                Answer::Lost(why) => {
                    return ToolOutcome::error(format!(
                        "the tool host ended during this call ({why}); the call may have done all, some or none of its work"
                    ));
                }
            }
        }
    }

    fn wait_for(&self, call: CallId) -> Waiting<'_> {
        let (sender, answers) = unbounded_channel();
        self.calls().insert(call.0, sender);
        Waiting { session: self, call, answers, is_done: false }
    }

    /// Receives one message and passes it to the call that it belongs to.
    async fn pass_on(&self) {
        let (call, answer) = match self.receive(LONGEST).await {
            Ok(HostMessage::Progress(call, text)) => (call, Answer::Progress(text)),
            Ok(HostMessage::Done(call, outcome)) => (call, Answer::Done(outcome)),
            Ok(HostMessage::Ready | HostMessage::Refused(_) | HostMessage::Closed(_)) => {
                return self.lose("unexpected message from the tool host");
            }
            Err(why) => return self.lose(&why),
        };
        if let Some(sender) = self.calls().get(&call.0) {
            let _nobody_waits_for_it = sender.send(answer);
        }
    }

    /// Asks the host for its ledger.
    async fn part(&self) -> Option<LedgerCopy> {
        self.say(&HostOrder::Close).await.ok()?;
        loop {
            match self.receive(LONGEST_LEDGER).await.ok()? {
                HostMessage::Closed(ledger) => return Some(ledger),
                HostMessage::Progress(..) | HostMessage::Done(..) => {} // no call waits for this
                HostMessage::Ready | HostMessage::Refused(_) => return None,
            }
        }
    }

    /// Ends the host. All waiting calls learn of the end first.
    async fn end(self: Arc<Self>) {
        self.lose("fledge ended the tool host");
        for _ in 0..LEAVING {
            if Arc::strong_count(&self) == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        match Arc::try_unwrap(self) {
            Ok(Self { dialogue, placeholders, .. }) => {
                if !dialogue.end().await {
                    tracing::warn!("cannot kill a process that a tool has started");
                }
                drop(placeholders);
            }
            Err(_) => tracing::warn!("a tool call is still running; fledge ends it with its run"),
        }
    }

    async fn say(&self, order: &HostOrder) -> Result<(), String> {
        let line = serde_json::to_string(order).map_err(|error| error.to_string())?;
        self.dialogue.lines.say(&line).await.map_err(|error| error.to_string())
    }

    async fn receive(&self, limit: usize) -> Result<HostMessage, String> {
        let line = self.dialogue.lines.receive(limit).await.map_err(|error| error.to_string())?;
        let line = line.ok_or("the process of the tool host ended")?;
        serde_json::from_slice(&line).map_err(|_| bound::line(&String::from_utf8_lossy(&line), 200))
    }

    /// Marks the host as unusable and reports the reason to all waiting calls.
    fn lose(&self, why: &str) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let why = lost.get_or_insert_with(|| why.to_owned()).clone();
        for sender in self.calls().values() {
            let _nobody_waits_for_it = sender.send(Answer::Lost(why.clone()));
        }
    }

    fn why_lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, UnboundedSender<Answer>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.session.calls().remove(&self.call.0);
        if !self.is_done {
            self.session.lose("a call was abandoned");
        }
    }
}
