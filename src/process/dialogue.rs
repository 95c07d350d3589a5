//! A running program that exchanges lines with fledge. When it is ended or dropped, nothing that it
//! started is left.

use super::group::ProcessGroup;
use super::start::ProgramStart;
use super::{CLEARING, Invocation, Leader, census, clean, why_not};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, PipeWriter};
use std::os::fd::AsFd as _;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;

/// Bytes to read at once.
const PIECE: usize = 16 * 1024;
/// Bytes to keep of the standard error.
const LAST: usize = 4 * 1024;
/// Reads of the standard error that one call makes.
const PIECES: usize = 16;

/// The lines in both directions. Concurrent writers wait for their turn, and so do concurrent
/// readers.
#[derive(Debug)]
pub struct DialogueLines {
    out: Mutex<Out>,
    received: Mutex<Received>,
}

#[derive(Debug)]
struct Out {
    /// `None` once this side has closed it.
    pipe: Option<Sender>,
    /// True if a line was begun and not ended. Then no other line can follow.
    is_torn: bool,
}

#[derive(Debug)]
struct Received {
    pipe: Receiver,
    held: Vec<u8>,
    /// The number of bytes at the start of `held` that are known to have no line end.
    looked_at: usize,
    /// True if the bytes up to the next line end belong to a line that was too long.
    is_beyond: bool,
}

/// The standard error of a program, of which only the end is kept.
#[derive(Debug)]
pub struct StderrTail {
    pipe: Receiver,
    last: std::sync::Mutex<VecDeque<u8>>,
}

/// A running program, with the lines to and from it.
#[derive(Debug)]
pub struct Dialogue {
    /// Lines to its standard input and from its standard output. Without `aside`, its standard
    /// error is read here too.
    pub lines: Arc<DialogueLines>,
    /// Its standard error, if that is kept apart.
    pub aside: Option<Arc<StderrTail>>,
    leader: Leader,
    group: ProcessGroup,
}

impl DialogueLines {
    fn new(out: Sender, received: Receiver) -> Self {
        let received = Received { pipe: received, held: Vec::new(), looked_at: 0, is_beyond: false };
        Self { out: Mutex::new(Out { pipe: Some(out), is_torn: false }), received: Mutex::new(received) }
    }

    /// Returns the lines of this process itself, over its standard streams.
    ///
    /// # Errors
    /// If the standard streams are not pipes.
    pub fn own() -> io::Result<Self> {
        let received = io::stdin().as_fd().try_clone_to_owned()?;
        let out = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self::new(Sender::from_owned_fd(out)?, Receiver::from_owned_fd(received)?))
    }

    /// Sends a line, given without its line end. If the call is dropped in the middle of a line, no
    /// further line can be sent.
    ///
    /// # Errors
    /// If the other side no longer reads, or no further line can be sent.
    pub async fn say(&self, line: &str) -> io::Result<()> {
        let mut out = self.out.lock().await;
        let Out { pipe: Some(pipe), is_torn: is_torn @ false } = &mut *out else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        *is_torn = true;
        pipe.write_all(&[line.as_bytes(), b"\n"].concat()).await?;
        *is_torn = false;
        Ok(())
    }

    /// Closes the channel to the other side, which then reads the end of its input.
    pub async fn hang_up(&self) {
        self.out.lock().await.pipe = None;
    }

    /// Returns the next line without its line end, or `None` at the end of the input. Loses nothing
    /// if it is dropped while it waits.
    ///
    /// # Errors
    /// `InvalidData` if the line is longer than `limit` bytes; the next call returns the line after
    /// it. Any other error if reading fails.
    pub async fn receive(&self, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let mut received = self.received.lock().await;
        let Received { pipe, held, looked_at, is_beyond } = &mut *received;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &held[*looked_at..]) {
                let mut line: Vec<u8> = held.drain(..=*looked_at + end).collect();
                line.pop();
                *looked_at = 0;
                if std::mem::take(is_beyond) {
                    continue;
                }
                return Ok(Some(line));
            }
            *looked_at = held.len();
            if *is_beyond || held.len() > limit {
                (*held, *looked_at) = (Vec::new(), 0);
                if !std::mem::replace(is_beyond, true) {
                    let why = format!("a line is longer than {limit} bytes");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                }
            }
            held.reserve(PIECE);
            if pipe.read_buf(held).await? == 0 {
                *looked_at = 0;
                return Ok((!held.is_empty()).then(|| std::mem::take(held)));
            }
        }
    }
}

impl StderrTail {
    /// Reads the standard error for as long as the caller polls this.
    pub async fn listen(&self) -> Infallible {
        while self.pipe.readable().await.is_ok() && self.read_piece() {}
        std::future::pending().await
    }

    /// Returns the last of the standard error so far, at most 4 KiB.
    pub fn last(&self) -> String {
        self.read_piece();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        clean(last.make_contiguous())
    }

    /// Reads what is available. Returns `false` at the end.
    fn read_piece(&self) -> bool {
        let mut piece = [0; LAST];
        for _ in 0..PIECES {
            match self.pipe.try_read(&mut piece) {
                Ok(0) => return false,
                Ok(count) => {
                    let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                    last.extend(&piece[..count]);
                    let beyond = last.len().saturating_sub(LAST);
                    last.drain(..beyond);
                }
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }
}

impl Dialogue {
    /// Starts a program, without regard to its timeout and its log. Needs a tokio runtime with I/O
    /// and time.
    ///
    /// # Errors
    /// The reason why the program could not be started.
    pub fn start(invocation: &Invocation) -> Result<Self, String> {
        Self::spawn(invocation, None)
    }

    /// Starts a program as [`Dialogue::start`] does, and keeps its standard error out of its lines.
    ///
    /// # Errors
    /// The reason why the program could not be started.
    pub fn start_apart(invocation: &Invocation) -> Result<Self, String> {
        let pipe = || -> io::Result<_> {
            let (aside, errors) = io::pipe()?;
            Ok((StderrTail { pipe: Receiver::from_owned_fd(aside.into())?, last: Default::default() }, errors))
        };
        Self::spawn(invocation, Some(pipe().map_err(|error| format!("cannot make a pipe: {error}"))?))
    }

    fn spawn(invocation: &Invocation, aside: Option<(StderrTail, PipeWriter)>) -> Result<Self, String> {
        let Invocation { program, args, dir, env, .. } = invocation;
        let cannot = |error: io::Error| format!("cannot make a pipe: {error}");
        let pipes = || -> io::Result<_> {
            let ((input, out), (received, output)) = (io::pipe()?, io::pipe()?);
            Ok((input, output, Sender::from_owned_fd(out.into())?, Receiver::from_owned_fd(received.into())?))
        };
        let (input, output, out, received) = pipes().map_err(cannot)?;
        let news = signal(SignalKind::child()).map_err(|error| format!("cannot listen for ended programs: {error}"))?;
        let (aside, errors) = aside.unzip();
        let (input, errors) = (Some(input.into()), errors.map(Into::into));
        let group =
            ProcessGroup::start(ProgramStart { path: program, args, dir, variables: env, input, output, errors })
                .map_err(|error| why_not(program, &error))?;
        let leader = Leader { pid: group.leader(), news };
        Ok(Self { lines: Arc::new(DialogueLines::new(out, received)), aside: aside.map(Arc::new), leader, group })
    }

    /// Returns whether the program runs.
    pub fn is_alive(&self) -> bool {
        census::runs(self.leader.pid)
    }

    /// Closes the program's input, gives it `grace` to end by itself, and then ends it as
    /// [`Dialogue::end`] does.
    pub async fn part(mut self, grace: Duration) -> bool {
        let parting = async {
            self.lines.hang_up().await;
            self.leader.ended().await;
        };
        let _it_did_not = tokio::time::timeout(grace, parting).await;
        self.end().await
    }

    /// Kills the program and everything it has started, and returns when nothing of it is left.
    /// Returns `false` if something cannot be killed.
    pub async fn end(self) -> bool {
        let Self { lines, mut leader, group, .. } = self;
        drop(lines);
        let is_clear = tokio::time::timeout(CLEARING, async {
            group.gone().await;
            leader.ended().await;
        });
        let is_clear = is_clear.await.is_ok();
        group.reap();
        is_clear
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Variables;
    use crate::test_support::PATIENCE;

    fn talk(script: &str) -> Dialogue {
        Dialogue::start(&invocation(script)).unwrap()
    }

    fn invocation(script: &str) -> Invocation {
        Invocation {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            dir: "/".into(),
            env: Variables::new([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            timeout: None,
            grace: Duration::ZERO,
            linger: Duration::ZERO,
            log: None,
            log_limit: 0,
        }
    }

    #[tokio::test]
    async fn lines_go_both_ways_and_nothing_is_left_when_it_is_ended() {
        let dialogue = talk("(setsid sleep 600 &) ; while read -r line; do echo \"heard $line\"; done");
        for word in ["a", "é b"] {
            dialogue.lines.say(word).await.unwrap();
            let received = dialogue.lines.receive(100).await.unwrap();
            assert_eq!(received, Some(format!("heard {word}").into_bytes()));
        }
        assert!(dialogue.is_alive() && dialogue.group.alive() > 1);
        assert!(dialogue.end().await);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_an_error_and_the_last_one_needs_no_end() {
        let dialogue = talk("echo short; printf %s last");
        assert_eq!(dialogue.lines.receive(100).await.unwrap(), Some(b"short".to_vec()));
        assert_eq!(dialogue.lines.receive(100).await.unwrap(), Some(b"last".to_vec()));
        assert_eq!(dialogue.lines.receive(100).await.unwrap(), None);
        let dialogue = talk("yes | tr -d '\\n'");
        assert!(dialogue.lines.receive(100_000).await.is_err());
    }

    #[tokio::test]
    async fn after_a_line_that_is_too_long_the_next_one_is_heard() {
        let dialogue = talk("head -c 300000 /dev/zero; echo; echo next");
        let received = dialogue.lines.receive(100_000).await;
        assert_eq!(received.unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(dialogue.lines.receive(100_000).await.unwrap(), Some(b"next".to_vec()));
    }

    #[tokio::test]
    async fn what_is_said_aside_is_kept_out_of_the_lines_and_its_end_remembered() {
        let script = "i=0; while [ $i -lt 2000 ]; do echo aside $i >&2; i=$((i+1)); done; echo done; read -r word; echo gone >&2";
        let dialogue = Dialogue::start_apart(&invocation(script)).unwrap();
        let (lines, aside) = (dialogue.lines.clone(), dialogue.aside.clone().unwrap());
        let received =
            tokio::select! { received = lines.receive(100) => received, never = aside.listen() => match never {} };
        assert_eq!(received.unwrap(), Some(b"done".to_vec()));
        assert!(dialogue.part(PATIENCE).await);
        let last = aside.last();
        assert!(last.len() <= LAST && last.ends_with("aside 1999\ngone\n"), "{last}");
    }
}
