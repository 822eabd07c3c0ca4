//! A proxy between a client and its server that loses, delays or invents answers, one request at a time.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{Client, builder};

/// What the proxy does with a request.
pub(crate) enum Action {
    /// Forwards it and its answer.
    Pass,
    /// Forwards it and drops the answer.
    Lose,
    /// Drops it before the server sees it.
    Drop,
    /// Sends this answer; the server never sees the request.
    Answer(String),
    /// Forwards it, signals the sender once the server has answered, and drops the answer when the receiver is
    /// signalled.
    Hold(Sender<()>, Receiver<()>),
}

/// A proxy. The plan says what it does with the first requests; it passes all later ones.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    target: AtomicU16,
    plan: Mutex<VecDeque<Action>>,
    seen: Mutex<Vec<String>>,
}

impl Proxy {
    pub(crate) fn start(target: u16, plan: impl IntoIterator<Item = Action>) -> Self {
        Self::listen(target, plan, None)
    }

    /// A proxy that accepts TLS connections.
    pub(crate) fn start_tls(target: u16, tls: ServerConfig) -> Self {
        Self::listen(target, [], Some(Arc::new(tls)))
    }

    fn listen(target: u16, plan: impl IntoIterator<Item = Action>, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (target, plan) = (AtomicU16::new(target), Mutex::new(plan.into_iter().collect()));
        let shared = Arc::new(Shared { target, plan, seen: Mutex::default() });
        let for_connections = shared.clone();
        // The thread ends with the test process.
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, shared, tls) = (client.unwrap(), for_connections.clone(), tls.clone());
                thread::spawn(move || match tls {
                    Some(tls) => {
                        let session = ServerConnection::new(tls).unwrap();
                        shared.serve(StreamOwned::new(session, client));
                    }
                    None => shared.serve(client),
                });
            }
        });
        Self { port, shared }
    }

    pub(crate) fn client(&self) -> Client {
        builder(self.port).build().unwrap()
    }

    /// Sends later requests to this port.
    pub(crate) fn set_target(&self, target: u16) {
        self.shared.target.store(target, Ordering::SeqCst);
    }

    /// Method and path of each request so far: `POST /v1/series/ticket/next`.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.shared.seen.lock().unwrap().clone()
    }
}

impl Shared {
    /// Serves one connection until either side closes it.
    fn serve(&self, mut client: impl Read + Write) {
        while let Some(request) = message(&mut client) {
            let line = String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned();
            let words: Vec<&str> = line.split(' ').take(2).collect();
            self.seen.lock().unwrap().push(words.join(" "));
            let action = self.plan.lock().unwrap().pop_front().unwrap_or(Action::Pass);
            let answer = match action {
                Action::Drop => return,
                Action::Answer(ref answer) => Some(answer.clone().into_bytes()),
                Action::Pass | Action::Lose | Action::Hold(..) => self.forward(&request),
            };
            match action {
                Action::Lose => return,
                Action::Hold(answered, go_on) => {
                    answered.send(()).unwrap();
                    let _ = go_on.recv();
                    return;
                }
                _ => {}
            }
            let Some(answer) = answer else { return };
            if client.write_all(&answer).is_err() {
                return;
            }
        }
    }

    fn forward(&self, request: &[u8]) -> Option<Vec<u8>> {
        let mut server = TcpStream::connect(("127.0.0.1", self.target.load(Ordering::SeqCst))).ok()?;
        server.write_all(request).ok()?;
        message(&mut server)
    }
}

/// Reads one request or answer; its headers give its length.
fn message(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        read_some(stream, &mut bytes)?;
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    let is_chunked = text.contains("transfer-encoding: chunked");
    while bytes.len() < head + length || is_chunked && !bytes.ends_with(b"\r\n0\r\n\r\n") {
        read_some(stream, &mut bytes)?;
    }
    Some(bytes)
}

fn read_some(stream: &mut impl Read, bytes: &mut Vec<u8>) -> Option<()> {
    let mut buffer = vec![0; 64 * 1024];
    let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
    bytes.extend_from_slice(&buffer[..count]);
    Some(())
}

/// An error answer in the format of Bates.
pub(crate) fn problem(status: u16, code: &str, may_burn: bool, after: u64) -> Action {
    let body =
        serde_json::json!({ "code": code, "detail": "invented", "status": status, "may_burn": may_burn });
    let body = body.to_string();
    Action::Answer(format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/problem+json\r\nretry-after: {after}\r\ncontent-length: \
         {}\r\n\r\n{body}",
        body.len()
    ))
}
