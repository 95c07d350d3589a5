//! A server on loopback that plays one script for each request: it sends, drips, floods, stalls,
//! resets and closes, and counts.
//!
//! All servers share a separate thread, so a busy test does not delay them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// An action on a connection after the request was read. At the end of its script, the server
/// closes the connection properly.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes one by one, repeatedly, with this time between them.
    Drip(Vec<u8>, Duration),
    /// Sends these bytes repeatedly, as fast as the client reads.
    Flood(Vec<u8>),
    /// Sends nothing more and keeps the connection open.
    Stall,
    /// Resets the connection.
    Reset,
}

/// The actions on one connection.
pub(crate) type Script = Vec<Act>;

/// A server, which repeats its last script for further requests.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
}

/// The server's observations of its clients.
#[derive(Debug, Default)]
struct Seen {
    requests: Mutex<Vec<String>>,
    sent: AtomicU64,
    /// The number of connections that reached a point where the client has to act.
    middles: watch::Sender<usize>,
    /// The number of clients that hung up at that point.
    hang_ups: watch::Sender<usize>,
}

impl Server {
    /// Opens a server for clients that speak HTTP.
    pub(crate) fn open(scripts: &[Script]) -> Self {
        Self::start(scripts.to_vec(), true)
    }

    /// Opens a server that answers any first bytes.
    pub(crate) fn raw(scripts: &[Script]) -> Self {
        Self::start(scripts.to_vec(), false)
    }

    fn start(scripts: Vec<Script>, reads: bool) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), Arc::new(Seen::default()));
        let all = seen.clone();
        ground().spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                let (seen, scripts) = (all.clone(), scripts.clone());
                ground().spawn(async move { serve(socket, reads, &scripts, &seen).await });
            }
        });
        Self { address, seen }
    }

    /// Returns the server's address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the requests as received.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// Returns the number of requests.
    pub(crate) fn count(&self) -> usize {
        self.seen.requests.lock().unwrap().len()
    }

    /// Returns the number of bytes that clients took from the server.
    pub(crate) fn sent(&self) -> u64 {
        self.seen.sent.load(Ordering::SeqCst)
    }

    /// Waits until a client is in the middle of a script that does not end by itself.
    pub(crate) async fn middle(&self) {
        let mut counted = self.seen.middles.subscribe();
        let _sender_lives_as_long = counted.wait_for(|count| *count > 0).await;
    }

    /// Waits until a client hangs up in the middle of a script that does not end by itself.
    pub(crate) async fn hung_up(&self) {
        let mut counted = self.seen.hang_ups.subscribe();
        let _sender_lives_as_long = counted.wait_for(|count| *count > 0).await;
    }
}

/// Returns the thread that all servers share.
fn ground() -> &'static Handle {
    static GROUND: LazyLock<Handle> = LazyLock::new(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        handle
    });
    &GROUND
}

async fn serve(mut socket: TcpStream, reads: bool, scripts: &[Script], seen: &Seen) {
    let request = match reads {
        true => read_request(&mut socket).await,
        false => socket.read(&mut [0; 4096]).await.ok().map(|_| String::new()),
    };
    let Some(request) = request else { return };
    let number = {
        let mut requests = seen.requests.lock().unwrap();
        requests.push(request);
        requests.len()
    };
    for act in &scripts[number.min(scripts.len()) - 1] {
        match act {
            Act::Send(bytes) => {
                if socket.write_all(bytes).await.is_err() {
                    return;
                }
                seen.sent.fetch_add(bytes.len() as u64, Ordering::SeqCst);
            }
            Act::Drip(bytes, gap) => {
                let _nodelay = socket.set_nodelay(true);
                for byte in bytes.iter().cycle() {
                    if socket.write_all(&[*byte]).await.is_err() {
                        break;
                    }
                    seen.middles.send_modify(|count| *count += 1);
                    tokio::time::sleep(*gap).await;
                }
                seen.hang_ups.send_modify(|count| *count += 1);
            }
            Act::Flood(bytes) => {
                while socket.write_all(bytes).await.is_ok() {
                    seen.sent.fetch_add(bytes.len() as u64, Ordering::SeqCst);
                    seen.middles.send_modify(|count| *count += 1);
                }
                seen.hang_ups.send_modify(|count| *count += 1);
            }
            Act::Stall => {
                seen.middles.send_modify(|count| *count += 1);
                let _gone = socket.read(&mut [0]).await;
                seen.hang_ups.send_modify(|count| *count += 1);
            }
            Act::Reset => {
                let _reset_by_drop = socket.set_zero_linger();
                return;
            }
        }
    }
    let _gone = socket.shutdown().await;
    let _until_the_client_has_read_all = socket.read(&mut [0]).await;
}

/// Reads a request: its head, and the body of the announced length.
async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let (mut all, mut piece) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let text = String::from_utf8_lossy(&all);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text.into_owned());
            }
        }
        match socket.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => all.extend_from_slice(&piece[..count]),
        }
    }
}
