//! The listener: it accepts a limited number of connections, bounds the size and time of request
//! heads, and stops only after answers in progress are complete.

use super::super::{AppState, ServeError};
use super::enter::LocalAddress;
use super::wire::WireType;
use axum::Router;
use axum::extract::Request;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The limit of concurrent connections.
const MOST: usize = 256;
/// The number of connections that the system queues until they are accepted.
const WAITING: u32 = 1024;
/// The limits of a request's head: the number of headers, and its size in bytes.
const MOST_HEADERS: usize = 64;
const LARGEST_HEAD: usize = 32 * 1024;
/// The longest time in which a client may take no bytes of an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause after a failed accept.
const PAUSE: Duration = Duration::from_millis(100);
/// The answer to a connection above the limit.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n";

/// The listening socket and the host names of a server.
#[derive(Debug)]
pub struct ServerListener {
    listener: TcpListener,
    address: SocketAddr,
    names: Arc<[String]>,
}

impl ServerListener {
    /// Opens the socket. Must be called inside a runtime.
    ///
    /// # Errors
    /// If the address is in use, the system refuses it, or it is public without `allow_public`.
    pub fn open(address: SocketAddr, allow_public: bool, names: Vec<String>) -> Result<Self, ServeError> {
        if !allow_public && !address.ip().to_canonical().is_loopback() {
            return Err(ServeError::Public { address });
        }
        let listener = listening(address).map_err(|source| match source.kind() {
            ErrorKind::AddrInUse => ServeError::InUse { address },
            _ => ServeError::Unbound { address, source },
        })?;
        let address = listener.local_addr().map_err(|source| ServeError::Unbound { address, source })?;
        Ok(Self { listener, address, names: names.into() })
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn listening(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?; // connections of an earlier server may be in TIME_WAIT
    socket.bind(address)?;
    socket.listen(WAITING)
}

/// Serves until `stop`, then lets open requests finish within the grace period.
pub async fn serve(door: ServerListener, app_state: &Arc<AppState>, stop: &CancellationToken, grace: Duration) {
    let (app, places, ending) = (super::app(app_state), Arc::new(Semaphore::new(MOST)), GracefulShutdown::new());
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_over) = connections.join_next() => continue,
            accepted = door.listener.accept() => accepted,
        };
        let socket = match accepted {
            Ok((socket, _)) => socket,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(PAUSE).await; // file descriptors may be exhausted, and become free soon
                continue;
            }
        };
        app_state.figures.accepted();
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => {
                let connection = connection(socket, place, &app, &door.names, app_state.request_within, &ending);
                let app_state = Arc::clone(app_state);
                connections.spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!("a connection ended: {error}");
                    }
                    app_state.figures.closed();
                });
            }
            Err(_) => {
                refuse(&socket);
                app_state.figures.refused();
                app_state.figures.closed();
            }
        }
    }
    drop(door);
    app_state.stopping.cancel();
    let all_are_over = async {
        ending.shutdown().await;
        while connections.join_next().await.is_some() {}
    };
    if tokio::time::timeout(grace, all_are_over).await.is_err() {
        tracing::warn!("some requests were not answered within the grace period");
    }
    connections.shutdown().await;
}

/// Serves one connection.
fn connection(
    socket: TcpStream,
    place: OwnedSemaphorePermit,
    app: &Router,
    names: &Arc<[String]>,
    head_within: Duration,
    ending: &GracefulShutdown,
) -> impl Future<Output = Result<(), Box<dyn std::error::Error + Send + Sync>>> + Send + use<> {
    let local = socket.local_addr().map(|address| LocalAddress { address, names: Arc::clone(names) });
    let (app, watcher) = (TowerToHyperService::new(app.clone()), ending.watcher());
    async move {
        let _place = place;
        let local = local?;
        socket.set_nodelay(true)?;
        let answering = hyper::service::service_fn(move |mut request: Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(local.clone());
            app.call(request)
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(head_within).max_headers(MOST_HEADERS);
        http.max_buf_size(LARGEST_HEAD).max_header_size(LARGEST_HEAD);
        let wire = TokioIo::new(WireType::new(socket, PATIENCE));
        watcher.watch(http.serve_connection(wire, answering)).await?;
        Ok(())
    }
}

/// Sends the answer for a full server without waiting.
fn refuse(socket: &TcpStream) {
    let _as_far_as_it_goes: io::Result<usize> = socket.try_write(FULL);
}
