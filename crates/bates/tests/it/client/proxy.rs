//! What stands between a client and its server, and loses, holds or makes up answers, one request at a time.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{Client, builder};

/// What becomes of a request.
pub(crate) enum Act {
    /// The server answers it.
    Pass,
    /// The server answers it, and the answer gets lost.
    Lose,
    /// The server never sees it.
    Drop,
    /// This is answered instead, and the server never sees it.
    Say(String),
    /// The server answers it. This is told, and once it was told to go on, the answer gets lost.
    Hold(Sender<()>, Receiver<()>),
}

/// A proxy. What it does with the next requests is planned; the others pass.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    target: AtomicU16,
    plan: Mutex<VecDeque<Act>>,
    seen: Mutex<Vec<String>>,
}

impl Proxy {
    pub(crate) fn start(target: u16, plan: impl IntoIterator<Item = Act>) -> Self {
        Self::listen(target, plan, None)
    }

    /// One that its clients speak TLS with.
    pub(crate) fn start_tls(target: u16, tls: ServerConfig) -> Self {
        Self::listen(target, [], Some(Arc::new(tls)))
    }

    fn listen(target: u16, plan: impl IntoIterator<Item = Act>, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (target, plan) = (AtomicU16::new(target), Mutex::new(plan.into_iter().collect()));
        let shared = Arc::new(Shared { target, plan, seen: Mutex::default() });
        let theirs = shared.clone();
        // It ends with the process of the tests.
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, shared, tls) = (client.unwrap(), theirs.clone(), tls.clone());
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

    /// Where the server is from now on.
    pub(crate) fn turn_to(&self, target: u16) {
        self.shared.target.store(target, Ordering::SeqCst);
    }

    /// The first words of the requests so far: `POST /v1/series/ticket/next`.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.shared.seen.lock().unwrap().clone()
    }
}

impl Shared {
    /// One connection, until either side has enough.
    fn serve(&self, mut client: impl Read + Write) {
        while let Some(request) = message(&mut client) {
            let line = String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned();
            let words: Vec<&str> = line.split(' ').take(2).collect();
            self.seen.lock().unwrap().push(words.join(" "));
            let act = self.plan.lock().unwrap().pop_front().unwrap_or(Act::Pass);
            let answer = match act {
                Act::Drop => return,
                Act::Say(ref answer) => Some(answer.clone().into_bytes()),
                Act::Pass | Act::Lose | Act::Hold(..) => self.answered(&request),
            };
            match act {
                Act::Lose => return,
                Act::Hold(told, go_on) => {
                    told.send(()).unwrap();
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

    fn answered(&self, request: &[u8]) -> Option<Vec<u8>> {
        let mut server = TcpStream::connect(("127.0.0.1", self.target.load(Ordering::SeqCst))).ok()?;
        server.write_all(request).ok()?;
        message(&mut server)
    }
}

/// A request or an answer, as long as its head says.
fn message(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        more(stream, &mut bytes)?;
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    let is_chunked = text.contains("transfer-encoding: chunked");
    while bytes.len() < head + length || is_chunked && !bytes.ends_with(b"\r\n0\r\n\r\n") {
        more(stream, &mut bytes)?;
    }
    Some(bytes)
}

fn more(stream: &mut impl Read, bytes: &mut Vec<u8>) -> Option<()> {
    let mut some = vec![0; 64 * 1024];
    let count = stream.read(&mut some).ok().filter(|count| *count > 0)?;
    bytes.extend_from_slice(&some[..count]);
    Some(())
}

/// A refusal in the words of Bates.
pub(crate) fn problem(status: u16, code: &str, may_burn: bool, after: u64) -> Act {
    let body =
        serde_json::json!({ "code": code, "detail": "made up", "status": status, "may_burn": may_burn });
    let body = body.to_string();
    Act::Say(format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/problem+json\r\nretry-after: {after}\r\ncontent-length: \
         {}\r\n\r\n{body}",
        body.len()
    ))
}
