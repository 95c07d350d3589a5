//! A program with which lines go back and forth. When it is ended or dropped, nothing that it started is left.

use super::group::Group;
use super::start::Program;
use super::{CLEARING, Invocation, Leader, census, why_not};
use std::io;
use std::os::fd::AsFd as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;

/// Bytes that are read at once.
const PIECE: usize = 16 * 1024;

/// The two ways that lines go. Whoever says something waits for their turn; so does whoever listens.
#[derive(Debug)]
pub struct Lines {
    out: Mutex<Out>,
    heard: Mutex<Heard>,
}

#[derive(Debug)]
struct Out {
    pipe: Sender,
    /// A line was begun and not ended: nothing can follow it.
    is_torn: bool,
}

#[derive(Debug)]
struct Heard {
    pipe: Receiver,
    held: Vec<u8>,
    /// Bytes of those that are known to have no line end.
    looked_at: usize,
}

/// A program that is talked to.
#[derive(Debug)]
pub struct Dialogue {
    /// What goes to its standard input, and comes from its standard output and error.
    pub lines: Lines,
    leader: Leader,
    group: Group,
}

impl Lines {
    fn new(out: Sender, heard: Receiver) -> Self {
        let heard = Heard { pipe: heard, held: Vec::new(), looked_at: 0 };
        Self { out: Mutex::new(Out { pipe: out, is_torn: false }), heard: Mutex::new(heard) }
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
        if std::mem::replace(&mut out.is_torn, true) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        out.pipe.write_all(&[line.as_bytes(), b"\n"].concat()).await?;
        out.is_torn = false;
        Ok(())
    }

    /// The next line without its end; `None` when there is none any more. What is dropped while it waits loses nothing.
    ///
    /// # Errors
    /// When it is longer than `limit` bytes, and when it cannot be read.
    pub async fn hear(&self, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let mut heard = self.heard.lock().await;
        let Heard { pipe, held, looked_at } = &mut *heard;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &held[*looked_at..]) {
                let mut line: Vec<u8> = held.drain(..=*looked_at + end).collect();
                line.pop();
                *looked_at = 0;
                return Ok(Some(line));
            }
            *looked_at = held.len();
            if held.len() > limit {
                return Err(io::Error::other(format!("a line is longer than {limit} bytes")));
            }
            held.reserve(PIECE);
            if pipe.read_buf(held).await? == 0 {
                *looked_at = 0;
                return Ok((!held.is_empty()).then(|| std::mem::take(held)));
            }
        }
    }
}

impl Dialogue {
    /// Starts a program; its time and its log are not looked at. Needs a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// Why it could not be started.
    pub fn start(invocation: &Invocation) -> Result<Self, String> {
        let Invocation { program, args, dir, env, .. } = invocation;
        let cannot = |error: io::Error| format!("cannot make a pipe: {error}");
        let pipes = || -> io::Result<_> {
            let ((input, out), (heard, output)) = (io::pipe()?, io::pipe()?);
            Ok((input, output, Sender::from_owned_fd(out.into())?, Receiver::from_owned_fd(heard.into())?))
        };
        let (input, output, out, heard) = pipes().map_err(cannot)?;
        let news = signal(SignalKind::child()).map_err(|error| format!("cannot listen for ended programs: {error}"))?;
        let group = Group::start(Program { path: program, args, dir, variables: env, input: Some(input), output })
            .map_err(|error| why_not(program, &error))?;
        let leader = Leader { pid: group.leader(), news };
        Ok(Self { lines: Lines::new(out, heard), leader, group })
    }

    /// Whether the program runs.
    pub fn is_alive(&self) -> bool {
        census::runs(self.leader.pid)
    }

    /// Kills it and all that it has started, and returns when nothing of it is left. `false` when something cannot be killed.
    pub async fn end(self) -> bool {
        let Self { lines, mut leader, group } = self;
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
    use std::time::Duration;

    fn talk(script: &str) -> Dialogue {
        let invocation = Invocation {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            dir: "/".into(),
            env: Variables::new([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            timeout: None,
            grace: Duration::ZERO,
            linger: Duration::ZERO,
            log: None,
            log_limit: 0,
        };
        Dialogue::start(&invocation).unwrap()
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
}
