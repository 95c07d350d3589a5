//! A scripted model on loopback: it answers each request with the next turn of its script, and
//! records the requests.

use super::PATIENCE;
use super::wire::{Dialect, End, Turn};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

/// A scripted model, which stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Model {
    address: SocketAddr,
    stage: Arc<Stage>,
}

/// A request to the model.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    /// The headers by lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
    /// The body as text.
    pub(crate) text: String,
    pub(crate) body: Value,
    /// The time at which the whole request had arrived.
    pub(crate) at: Instant,
}

/// A function from the body of a request and the number of requests to the turn that answers it. It
/// also returns the number that the answer's ids contain.
type Mind = dyn FnMut(&Value, usize) -> (Option<Turn>, usize) + Send;

struct Stage {
    answer_with: Mutex<Box<Mind>>,
    asked: Mutex<Vec<Asked>>,
    news: Condvar,
    closed: AtomicBool,
}

impl Model {
    /// Starts a model with a script. It answers requests beyond the end of the script with status
    /// 400.
    pub(crate) fn new(script: impl IntoIterator<Item = Turn>) -> Self {
        let mut script: VecDeque<Turn> = script.into_iter().collect();
        Self::thinking(move |_, count| {
            let turn = match script.front() {
                Some(turn) if turn.always => Some(turn.clone()),
                Some(_) | None => script.pop_front(),
            };
            (turn, count)
        })
    }

    /// Starts a model that computes each answer.
    pub(crate) fn thinking(answer_with: impl FnMut(&Value, usize) -> (Option<Turn>, usize) + Send + 'static) -> Self {
        let stage = Arc::new(Stage {
            answer_with: Mutex::new(Box::new(answer_with)),
            asked: Mutex::default(),
            news: Condvar::new(),
            closed: AtomicBool::new(false),
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let open = stage.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().take_while(|_| !open.closed.load(Ordering::SeqCst)).flatten() {
                let stage = open.clone();
                std::thread::spawn(move || serve(&stream, &stage)); // ends with its connection
            }
        });
        Self { address, stage }
    }

    /// Returns the base URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.stage.asked.lock().unwrap().clone()
    }

    /// Waits until the model has received this many requests.
    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize) {
        let asked = self.stage.asked.lock().unwrap();
        let few = |asked: &mut Vec<Asked>| asked.len() < count;
        let (_asked, waited) = self.stage.news.wait_timeout_while(asked, PATIENCE, few).unwrap();
        assert!(!waited.timed_out(), "request {count} never came");
    }

    /// Returns the number of requests.
    pub(crate) fn count(&self) -> usize {
        self.asked().len()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.stage.closed.store(true, Ordering::SeqCst);
        let _wakes_the_listener = TcpStream::connect(self.address);
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Asked {
    /// Returns the newest message, of any role, as text.
    pub(crate) fn newest(&self) -> String {
        self.body["messages"].as_array().and_then(|messages| messages.last()).map(Value::to_string).unwrap_or_default()
    }
}

impl Stage {
    /// Records a request. Returns the turn that answers it, and its number.
    fn next(&self, asked: Asked) -> (Option<Turn>, usize) {
        let body = asked.body.clone();
        let mut all = self.asked.lock().unwrap();
        all.push(asked);
        self.news.notify_all();
        (self.answer_with.lock().unwrap())(&body, all.len())
    }
}

/// Answers the requests of one connection until it is closed.
fn serve(mut stream: &TcpStream, stage: &Stage) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(asked) = receive(&mut reader)? {
        let dialect = Dialect::of(&asked.path);
        let (turn, number) = stage.next(asked);
        let (Some(dialect), Some(turn)) = (dialect, turn) else {
            write!(stream, "HTTP/1.1 400 No\r\ncontent-length: 20\r\n\r\nthe script has ended")?;
            continue;
        };
        match &turn.end {
            End::HangsAtOnce => return await_close(reader),
            End::Status(code, headers) => {
                let body = dialect.complaint(*code);
                write!(stream, "HTTP/1.1 {code} No\r\ncontent-type: application/json\r\n")?;
                for (name, value) in headers {
                    write!(stream, "{name}: {value}\r\n")?;
                }
                write!(stream, "content-length: {}\r\n\r\n{body}", body.len())?;
                continue;
            }
            End::Whole | End::Dripping | End::BreaksOff | End::Hangs => {}
        }
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")?;
        let (body, end) = dialect.frames(&turn, number);
        let drips = matches!(turn.end, End::Dripping);
        body.iter().try_for_each(|frame| send(stream, frame, drips))?;
        match turn.end {
            End::BreaksOff => return Ok(()),
            End::Hangs => return await_close(reader),
            End::Whole | End::Dripping | End::HangsAtOnce | End::Status(..) => {}
        }
        end.iter().try_for_each(|frame| send(stream, frame, drips))?;
        write!(stream, "0\r\n\r\n")?;
    }
    Ok(())
}

fn await_close(mut reader: impl Read) -> std::io::Result<()> {
    reader.read(&mut [0]).map(drop)
}

/// Sends a piece of the answer, as one chunk or as one chunk for each byte.
fn send(mut stream: &TcpStream, frame: &str, drips: bool) -> std::io::Result<()> {
    for piece in frame.as_bytes().chunks(if drips { 1 } else { frame.len() }) {
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend(piece);
        chunk.extend(b"\r\n");
        stream.write_all(&chunk)?;
    }
    Ok(())
}

/// Reads a request. Returns `None` if the client has closed the connection.
fn receive(reader: &mut impl BufRead) -> std::io::Result<Option<Asked>> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let path = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let pair =
        |line: &String| line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
    let headers: BTreeMap<String, String> = head.iter().skip(1).filter_map(pair).collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let text = String::from_utf8_lossy(&body).into_owned();
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    Ok(Some(Asked { path, headers, text, body, at: Instant::now() }))
}
