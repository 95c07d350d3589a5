//! A program with which lines go back and forth. When it is ended or dropped, nothing that it started is left.

use super::group::Group;
use super::start::Program;
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

/// Bytes that are read at once.
const PIECE: usize = 16 * 1024;
/// Bytes that are kept of what is said aside.
const LAST: usize = 4 * 1024;
/// Pieces of it that are taken at once.
const PIECES: usize = 16;

/// The two ways that lines go. Whoever says something waits for their turn; so does whoever listens.
#[derive(Debug)]
pub struct Lines {
    out: Mutex<Out>,
    heard: Mutex<Heard>,
}

#[derive(Debug)]
struct Out {
    /// `None` once there is nothing more to be said.
    pipe: Option<Sender>,
    /// A line was begun and not ended: nothing can follow it.
    is_torn: bool,
}

#[derive(Debug)]
struct Heard {
    pipe: Receiver,
    held: Vec<u8>,
    /// Bytes of those that are known to have no line end.
    looked_at: usize,
    /// What comes up to the next line end belongs to a line that was too long.
    is_beyond: bool,
}

/// What a program says aside, on its standard error: the last of it is kept.
#[derive(Debug)]
pub struct Aside {
    pipe: Receiver,
    last: std::sync::Mutex<VecDeque<u8>>,
}

/// A program that is talked to.
#[derive(Debug)]
pub struct Dialogue {
    /// What goes to its standard input, and comes from its standard output; where it says nothing aside, also from its standard error.
    pub lines: Arc<Lines>,
    /// What it says aside.
    pub aside: Option<Arc<Aside>>,
    leader: Leader,
    group: Group,
}

impl Lines {
    fn new(out: Sender, heard: Receiver) -> Self {
        let heard = Heard { pipe: heard, held: Vec::new(), looked_at: 0, is_beyond: false };
        Self { out: Mutex::new(Out { pipe: Some(out), is_torn: false }), heard: Mutex::new(heard) }
    }

    /// Those of this process itself: its standard streams, which must be pipes.
    ///
    /// # Errors
    /// When they are none.
    pub fn own() -> io::Result<Self> {
        let heard = io::stdin().as_fd().try_clone_to_owned()?;
        let out = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self::new(Sender::from_owned_fd(out)?, Receiver::from_owned_fd(heard)?))
    }

    /// Says a line, which is given without its end. One that is dropped in the middle is the last one.
    ///
    /// # Errors
    /// When nobody listens any more.
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

    /// Says nothing more: the other side finds its input at its end.
    pub async fn hang_up(&self) {
        self.out.lock().await.pipe = None;
    }

    /// The next line without its end; `None` when there is none any more. What is dropped while it waits loses nothing.
    ///
    /// # Errors
    /// `InvalidData` when it is longer than `limit` bytes: then the line after it is the next one. Any other when it cannot be read.
    pub async fn hear(&self, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let mut heard = self.heard.lock().await;
        let Heard { pipe, held, looked_at, is_beyond } = &mut *heard;
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

impl Aside {
    /// Listens as long as it is waited for.
    pub async fn listen(&self) -> Infallible {
        while self.pipe.readable().await.is_ok() && self.take() {}
        std::future::pending().await
    }

    /// The last of what was said so far, at most 4 KiB.
    pub fn last(&self) -> String {
        self.take();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        clean(last.make_contiguous())
    }

    /// Takes what is there; `false` when there will be no more.
    fn take(&self) -> bool {
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
    /// Starts a program; its time and its log are not looked at. Needs a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// Why it could not be started.
    pub fn start(invocation: &Invocation) -> Result<Self, String> {
        Self::begin(invocation, None)
    }

    /// The same with what it says aside, which is kept out of its lines.
    ///
    /// # Errors
    /// As those of [`Dialogue::start`].
    pub fn start_apart(invocation: &Invocation) -> Result<Self, String> {
        let pipe = || -> io::Result<_> {
            let (aside, errors) = io::pipe()?;
            Ok((Aside { pipe: Receiver::from_owned_fd(aside.into())?, last: Default::default() }, errors))
        };
        Self::begin(invocation, Some(pipe().map_err(|error| format!("cannot make a pipe: {error}"))?))
    }

    fn begin(invocation: &Invocation, aside: Option<(Aside, PipeWriter)>) -> Result<Self, String> {
        let Invocation { program, args, dir, env, .. } = invocation;
        let cannot = |error: io::Error| format!("cannot make a pipe: {error}");
        let pipes = || -> io::Result<_> {
            let ((input, out), (heard, output)) = (io::pipe()?, io::pipe()?);
            Ok((input, output, Sender::from_owned_fd(out.into())?, Receiver::from_owned_fd(heard.into())?))
        };
        let (input, output, out, heard) = pipes().map_err(cannot)?;
        let news = signal(SignalKind::child()).map_err(|error| format!("cannot listen for ended programs: {error}"))?;
        let (aside, errors) = aside.unzip();
        let (input, errors) = (Some(input.into()), errors.map(Into::into));
        let group = Group::start(Program { path: program, args, dir, variables: env, input, output, errors })
            .map_err(|error| why_not(program, &error))?;
        let leader = Leader { pid: group.leader(), news };
        Ok(Self { lines: Arc::new(Lines::new(out, heard)), aside: aside.map(Arc::new), leader, group })
    }

    /// Whether the program runs.
    pub fn is_alive(&self) -> bool {
        census::runs(self.leader.pid)
    }

    /// Tells it that nothing more is said, gives it so much time to end by itself, and then ends it.
    pub async fn part(mut self, grace: Duration) -> bool {
        let parting = async {
            self.lines.hang_up().await;
            self.leader.ended().await;
        };
        let _it_did_not = tokio::time::timeout(grace, parting).await;
        self.end().await
    }

    /// Kills it and all that it has started, and returns when nothing of it is left. `false` when something cannot be killed.
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
            let heard = dialogue.lines.hear(100).await.unwrap();
            assert_eq!(heard, Some(format!("heard {word}").into_bytes()));
        }
        assert!(dialogue.is_alive() && dialogue.group.alive() > 1);
        assert!(dialogue.end().await);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_an_error_and_the_last_one_needs_no_end() {
        let dialogue = talk("echo short; printf %s last");
        assert_eq!(dialogue.lines.hear(100).await.unwrap(), Some(b"short".to_vec()));
        assert_eq!(dialogue.lines.hear(100).await.unwrap(), Some(b"last".to_vec()));
        assert_eq!(dialogue.lines.hear(100).await.unwrap(), None);
        let dialogue = talk("yes | tr -d '\\n'");
        assert!(dialogue.lines.hear(100_000).await.is_err());
    }

    #[tokio::test]
    async fn after_a_line_that_is_too_long_the_next_one_is_heard() {
        let dialogue = talk("head -c 300000 /dev/zero; echo; echo next");
        let heard = dialogue.lines.hear(100_000).await;
        assert_eq!(heard.unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(dialogue.lines.hear(100_000).await.unwrap(), Some(b"next".to_vec()));
    }

    #[tokio::test]
    async fn what_is_said_aside_is_kept_out_of_the_lines_and_its_end_remembered() {
        let script = "i=0; while [ $i -lt 2000 ]; do echo aside $i >&2; i=$((i+1)); done; echo done; read -r word; echo gone >&2";
        let dialogue = Dialogue::start_apart(&invocation(script)).unwrap();
        let (lines, aside) = (dialogue.lines.clone(), dialogue.aside.clone().unwrap());
        let heard = tokio::select! { heard = lines.hear(100) => heard, never = aside.listen() => match never {} };
        assert_eq!(heard.unwrap(), Some(b"done".to_vec()));
        assert!(dialogue.part(PATIENCE).await);
        let last = aside.last();
        assert!(last.len() <= LAST && last.ends_with("aside 1999\ngone\n"), "{last}");
    }
}
