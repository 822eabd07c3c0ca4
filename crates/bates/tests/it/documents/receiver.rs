//! The receiver of a webhook: accepts, refuses, fails or hangs as the test sets it, and records what it accepted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What the receiver does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    Accepts,
    /// Refuses documents that hold the word poison, and accepts others.
    RefusesPoison,
    Fails,
    /// Never answers.
    Hangs,
    /// Never answers documents that hold the word poison, and accepts others.
    HangsOnPoison,
}

pub(super) struct Receiver {
    pub(super) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    behaviour: Mutex<Behaviour>,
    accepted: Mutex<Vec<String>>,
    requests: Mutex<u32>,
}

impl Receiver {
    pub(super) fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            behaviour: Mutex::new(behaviour),
            accepted: Mutex::default(),
            requests: Mutex::default(),
        });
        let serving = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = serving.clone();
                thread::spawn(move || answer(&stream.unwrap(), &shared));
            }
        });
        Self { port, shared }
    }

    pub(super) fn behave(&self, behaviour: Behaviour) {
        *self.shared.behaviour.lock().unwrap() = behaviour;
    }

    /// The numbers of the accepted documents, in the order of arrival.
    pub(super) fn accepted(&self) -> Vec<String> {
        self.shared.accepted.lock().unwrap().clone()
    }

    /// How many requests it received.
    pub(super) fn requests(&self) -> u32 {
        *self.shared.requests.lock().unwrap()
    }
}

fn answer(stream: &TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let body = String::from_utf8(body).unwrap();
        *shared.requests.lock().unwrap() += 1;
        let behaviour = *shared.behaviour.lock().unwrap();
        let hangs = match behaviour {
            Behaviour::Hangs => true,
            Behaviour::HangsOnPoison => body.contains("poison"),
            _ => false,
        };
        let status = match behaviour {
            _ if hangs => loop {
                thread::park();
            },
            Behaviour::Fails => "503 Service Unavailable",
            Behaviour::RefusesPoison if body.contains("poison") => "400 Bad Request",
            _ => {
                let message: serde_json::Value = serde_json::from_str(&body).unwrap();
                shared.accepted.lock().unwrap().push(message["data"]["number"].as_str().unwrap().to_owned());
                "204 No Content"
            }
        };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
