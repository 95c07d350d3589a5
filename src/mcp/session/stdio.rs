//! The connection to a program, with one message per line. Other output between messages is
//! skipped. If an answer is too long or cannot be parsed, the waiting calls fail and the session
//! continues.

use super::MAX_MESSAGE;
use crate::process::{DialogueLines, StderrTail};
use memchr::memmem;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// The time limit for a program to answer the probe for the newest protocol version. Many older
/// programs ignore requests that they do not know.
const PROBE: Duration = Duration::from_millis(1500);

/// The outcome of the probe for the newest protocol version.
#[derive(Debug, Default)]
pub(super) struct Probe(AtomicU8);

/// The possible outcomes of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probed {
    /// No probe was sent.
    Unasked,
    /// The probe was sent and has no answer yet.
    Open,
    /// The time limit has passed.
    Late,
    /// The program answered.
    Answered,
}

impl Probe {
    pub(super) fn get(&self) -> Probed {
        let all = [Probed::Unasked, Probed::Open, Probed::Late, Probed::Answered];
        all.get(usize::from(self.0.load(Ordering::Relaxed))).copied().unwrap_or(Probed::Unasked)
    }

    fn set(&self, probed: Probed) {
        self.0.store(probed as u8, Ordering::Relaxed);
    }
}

/// The transport of messages to and from a program.
#[derive(Debug)]
pub(super) struct Stdio {
    lines: Arc<DialogueLines>,
    aside: Option<Arc<StderrTail>>,
    /// The requests that wait for an answer.
    open: Vec<RequestId>,
    /// Answers that fledge gives in place of the server.
    given: VecDeque<ServerJsonRpcMessage>,
    probe: Arc<Probe>,
    /// The request of the probe and its time limit.
    asked: Option<(RequestId, Option<Duration>)>,
    /// True if the probe has no time limit.
    is_patient: bool,
}

impl Stdio {
    /// Creates the transport. If `is_patient` is set, the probe for the newest protocol version has
    /// no time limit.
    pub(super) fn new(
        lines: Arc<DialogueLines>,
        aside: Option<Arc<StderrTail>>,
        probe: Arc<Probe>,
        is_patient: bool,
    ) -> Self {
        Self { lines, aside, open: Vec::new(), given: VecDeque::new(), probe, asked: None, is_patient }
    }

    /// Answers the probe in place of a server that does not answer it.
    fn give_up_asking(&mut self) {
        self.probe.set(Probed::Late);
        if let Some((id, wait)) = &mut self.asked {
            *wait = None;
            self.open.retain(|open| open != id);
            let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "the server does not answer this request", None);
            self.given.push_back(ServerJsonRpcMessage::error(error, Some(id.clone())));
        }
    }

    /// Parses the message of a line, if the line is a message.
    fn read(&mut self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        match serde_json::from_slice::<ServerJsonRpcMessage>(line) {
            Ok(message) => {
                let answered = match &message {
                    ServerJsonRpcMessage::Response(response) => Some(&response.id),
                    ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
                    ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
                };
                if let Some(id) = answered {
                    self.open.retain(|open| open != id);
                    if self.asked.as_ref().is_some_and(|(asked, _)| asked == id) {
                        let is_late = self.asked.take().is_some_and(|(_, wait)| wait.is_none()) && !self.is_patient;
                        if is_late {
                            return None; // fledge has already answered this
                        }
                        self.probe.set(Probed::Answered);
                    }
                }
                Some(message)
            }
            Err(error) => {
                if is_answer(line) {
                    self.give_up(&format!("cannot parse the answer: {error}"));
                }
                None
            }
        }
    }

    /// Answers all waiting requests with an error, because the request that the answer belongs to
    /// is unknown.
    fn give_up(&mut self, why: &str) {
        let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, why.to_owned(), None);
        let answers = self.open.drain(..).map(|id| ServerJsonRpcMessage::error(error.clone(), Some(id)));
        self.given.extend(answers);
    }
}

/// Returns whether a line that is not a valid message looks like an answer.
fn is_answer(line: &[u8]) -> bool {
    let has = |part: &[u8], key: &str| memmem::find(part, key.as_bytes()).is_some();
    line.starts_with(b"{")
        && has(line, "\"jsonrpc\"")
        && has(line, "\"id\"")
        && !has(&line[..line.len().min(256)], "\"method\"")
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        if let TxJsonRpcMessage::<RoleClient>::Request(request) = &item {
            self.open.push(request.id.clone());
            if matches!(request.request, ClientRequest::DiscoverRequest(_)) {
                self.probe.set(Probed::Open);
                self.asked = Some((request.id.clone(), (!self.is_patient).then_some(PROBE)));
            }
        }
        let (lines, line) = (self.lines.clone(), serde_json::to_string(&item));
        async move { lines.say(&line?).await }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(given) = self.given.pop_front() {
                return Some(given);
            }
            let aside = self.aside.as_ref();
            let never = async {
                match aside {
                    Some(aside) => aside.listen().await,
                    None => std::future::pending().await,
                }
            };
            let wait = self.asked.as_ref().and_then(|(_, wait)| *wait);
            let late = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            let received = tokio::select! {
                received = self.lines.receive(MAX_MESSAGE) => received,
                never = never => match never {},
                () = late => {
                    self.give_up_asking();
                    continue;
                }
            };
            match received {
                Ok(Some(line)) => {
                    if let Some(message) = self.read(&line) {
                        return Some(message);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    self.give_up(&format!("the answer has more than {MAX_MESSAGE} bytes: ask for less"));
                }
                Ok(None) | Err(_) => return None,
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
