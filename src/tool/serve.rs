//! The tool host as a separate process. It reads orders from standard input and writes its answers
//! to standard output until either ends.

use super::bound;
use super::host::ToolHost;
use super::wire::{HostMessage, HostOpening, HostOrder, LONGEST_ORDER};
use crate::chat::ToolOutcome;
use crate::error_chain::chain;
use crate::id::CallId;
use crate::process::DialogueLines;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use std::collections::HashMap;
use std::io;
use tokio::sync::mpsc::{Sender, channel};
use tokio_util::sync::CancellationToken;

/// The number of messages that may wait to be written. Progress that exceeds it is dropped.
const WAITING: usize = 256;
/// The maximum size of one piece of progress, in bytes.
const MAX_PROGRESS: usize = 64 * 1024;

/// Serves calls until the driver closes the host or the connection ends. The standard streams must
/// be pipes.
///
/// # Errors
/// If reading or writing the streams fails, or if an order is invalid.
pub async fn serve() -> io::Result<()> {
    let lines = DialogueLines::own()?;
    let opening = match next(&lines).await? {
        Some(HostOrder::Open(opening)) => *opening,
        Some(HostOrder::Call(_) | HostOrder::Cancel(_) | HostOrder::Close) | None => return Ok(()),
    };
    let HostOpening { settings, ledger, changes } = opening;
    let host = match ToolHost::new(settings) {
        Ok(host) => host,
        Err(error) => return say(&lines, &HostMessage::Refused(chain(&error))).await,
    };
    host.restore(ledger);
    host.recall(&changes);
    say(&lines, &HostMessage::Ready).await?;
    let (sender, mut waiting) = channel(WAITING);
    let saying = async {
        while let Some(word) = waiting.recv().await {
            say(&lines, &word).await?;
        }
        Ok(())
    };
    let (message, worked) = tokio::join!(saying, work(&host, &lines, sender));
    message.and(worked)
}

/// Carries out orders. Calls run in parallel. Calls that are unfinished at the end are dropped
/// together with everything that they started.
async fn work(host: &ToolHost, lines: &DialogueLines, words: Sender<HostMessage>) -> io::Result<()> {
    let mut calls = FuturesUnordered::new();
    let mut stops: HashMap<u64, CancellationToken> = HashMap::new();
    loop {
        let order = tokio::select! {
            order = next(lines) => order?,
            Some(call) = calls.next(), if !calls.is_empty() => {
                stops.remove(&call);
                continue;
            }
        };
        match order {
            Some(HostOrder::Call(request)) => {
                let (call, stop, words) = (request.call, CancellationToken::new(), words.clone());
                stops.insert(call.0, stop.clone());
                calls.push(async move {
                    let progress = |text: String| {
                        let text = bound::head(&text, MAX_PROGRESS).to_owned();
                        let _nobody_waits_for_it = words.try_send(HostMessage::Progress(call, text));
                    };
                    let outcome: ToolOutcome = host.call(request, &stop, &progress).await;
                    let _nobody_listens = words.send(HostMessage::Done(call, Box::new(outcome))).await;
                    call.0
                });
            }
            Some(HostOrder::Cancel(CallId(call))) => {
                if let Some(stop) = stops.get(&call) {
                    stop.cancel();
                }
            }
            Some(HostOrder::Close) => {
                let _nobody_listens = words.send(HostMessage::Closed(host.remembered())).await;
                return Ok(());
            }
            Some(HostOrder::Open(_)) | None => return Ok(()),
        }
    }
}

async fn next(lines: &DialogueLines) -> io::Result<Option<HostOrder>> {
    let line = lines.receive(LONGEST_ORDER).await?;
    line.map(|line| serde_json::from_slice(&line).map_err(io::Error::from)).transpose()
}

async fn say(lines: &DialogueLines, word: &HostMessage) -> io::Result<()> {
    lines.say(&serde_json::to_string(word)?).await
}
