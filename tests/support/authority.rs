//! A certificate authority made for one test, and the one server that it certifies. No file holds a
//! private key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// The DER identifier of the signature algorithm: ECDSA on P-256 with SHA-256.
const ALGORITHM: [u8; 12] = [0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
/// The DER identifier of a public key for that algorithm.
const KEY_ALGORITHM: [u8; 21] =
    [0x30, 19, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];

/// A server with TLS on `localhost`.
pub(crate) struct Secured {
    port: u16,
    /// The certificate of its authority, as PEM.
    pub(crate) ca: String,
    received_requests: Arc<Mutex<Vec<String>>>,
}

impl Secured {
    /// Starts a server with this answer to each request. If a client asks for a tunnel, the tunnel
    /// ends at this server too.
    pub(crate) fn new(answer: &'static str) -> Self {
        let (ca, config) = vouched();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received_requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let hears = received_requests.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (config, hears) = (config.clone(), hears.clone());
                std::thread::spawn(move || {
                    let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), socket);
                    let Some(head) = request(&mut stream) else { return };
                    let is_tunnel = head.starts_with("CONNECT ");
                    hears.lock().unwrap().push(head);
                    if !is_tunnel {
                        return say(&mut stream, answer);
                    }
                    let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").and_then(|()| stream.flush());
                    let mut inner = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
                    if let Some(head) = request(&mut inner) {
                        hears.lock().unwrap().push(head);
                        say(&mut inner, answer);
                    }
                });
            }
        });
        Self { port, ca, received_requests }
    }

    /// Returns the base URL.
    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// Returns the heads of all requests so far.
    pub(crate) fn received_requests(&self) -> Vec<String> {
        self.received_requests.lock().unwrap().clone()
    }
}

fn say<T: Read + Write>(stream: &mut StreamOwned<ServerConnection, T>, answer: &str) {
    let _gone = stream.write_all(answer.as_bytes());
    stream.conn.send_close_notify();
    let _gone = stream.flush();
}

/// Reads a request with its body. Returns its head.
fn request(stream: &mut impl Read) -> Option<String> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(head.to_owned());
            }
        }
        match stream.read(&mut piece) {
            Ok(count @ 1..) => bytes.extend(&piece[..count]),
            Ok(_) | Err(_) => return None,
        }
    }
}

/// Makes an authority. Returns its certificate as PEM, and the configuration of a server that it
/// certifies.
fn vouched() -> (String, Arc<ServerConfig>) {
    let random = SystemRandom::new();
    let pair = || {
        let bytes = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, bytes.as_ref(), &random).unwrap();
        (key, bytes.as_ref().to_vec())
    };
    let ((root, _), (own, own_bytes)) = (pair(), pair());
    let is_authority =
        [extension(&[0x55, 0x1d, 19], &seq(&[&der(1, &[0xff])])), extension(&[0x55, 0x1d, 15], &[3, 2, 1, 6])];
    let names = seq(&[&der(0x82, b"localhost"), &der(0x87, &[127, 0, 0, 1])]);
    let is_server = [extension(&[0x55, 0x1d, 17], &names)];
    let ca = certificate(1, "an authority", &root, &is_authority, &root);
    let server = certificate(2, "localhost", &own, &is_server, &root);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own_bytes));
    let config = config.with_no_client_auth().with_single_cert(vec![CertificateDer::from(server)], key).unwrap();
    let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(ca));
    (pem, Arc::new(config))
}

/// Returns the certificate of a key, signed by the authority (RFC 5280).
fn certificate(serial: u8, name: &str, key: &EcdsaKeyPair, extensions: &[Vec<u8>], root: &EcdsaKeyPair) -> Vec<u8> {
    let named = |name: &str| seq(&[&der(0x31, &seq(&[&der(6, &[0x55, 4, 3]), &der(12, name.as_bytes())]))]);
    let times = seq(&[&der(23, b"250101000000Z"), &der(24, b"99991231235959Z")]);
    let bits = der(3, &[&[0], key.public_key().as_ref()].concat());
    let extensions = der(0xa3, &seq(&extensions.iter().map(Vec::as_slice).collect::<Vec<_>>()));
    let (version, number) = (der(0xa0, &der(2, &[2])), der(2, &[serial]));
    let content = seq(&[
        &version,
        &number,
        &ALGORITHM,
        &named("an authority"),
        &times,
        &named(name),
        &seq(&[&KEY_ALGORITHM, &bits]),
        &extensions,
    ]);
    let signature = root.sign(&SystemRandom::new(), &content).unwrap();
    seq(&[&content, &ALGORITHM, &der(3, &[&[0], signature.as_ref()].concat())])
}

/// Returns a critical extension.
fn extension(id: &[u8], content: &[u8]) -> Vec<u8> {
    seq(&[&der(6, id), &der(1, &[0xff]), &der(4, content)])
}

fn seq(parts: &[&[u8]]) -> Vec<u8> {
    der(0x30, &parts.concat())
}

/// Returns a value with its tag and length (X.690).
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let head = match length {
        0..0x80 => vec![tag, length as u8],
        0x80..0x100 => vec![tag, 0x81, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    [head, content.to_vec()].concat()
}
