//! Load: clients that ask without pause, whatever becomes of the server, and write down what they are answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use bates_testkit::history::History;

use super::running::{Client, Server};

/// Clients that run until they are told to end.
pub(crate) struct Load {
    history: History,
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Where the server is; 0 before there is one. Over the Redis protocol, and over HTTP.
    port: AtomicU16,
    http: AtomicU16,
    is_over: AtomicBool,
    answers: AtomicU64,
}

impl Load {
    /// So many clients, which ask in turn for so many counters: every other one over HTTP.
    pub(crate) fn begin(clients: u64, keys: u64) -> Self {
        let (history, shared) = (History::default(), Arc::<Shared>::default());
        let clients = (0..clients).map(|client| {
            let (history, shared) = (history.clone(), shared.clone());
            // Each begins elsewhere, so that all keys are asked for at the same time.
            thread::spawn(move || run(&history, &shared, client, keys))
        });
        let clients = clients.collect();
        Self { history, shared, clients }
    }

    /// Sends the clients to a server, now and whenever their connection breaks.
    pub(crate) fn ask(&self, server: &Server) {
        self.shared.http.store(server.http, Ordering::Release);
        self.shared.port.store(server.port, Ordering::Release);
    }

    /// Waits for so many answers more.
    pub(crate) fn wait_for(&self, answers: u64) {
        let enough = self.shared.answers.load(Ordering::Acquire) + answers;
        while self.shared.answers.load(Ordering::Acquire) < enough {
            thread::yield_now();
        }
    }

    /// Lets the clients end, and hands out what they wrote down.
    pub(crate) fn end(self) -> History {
        self.shared.is_over.store(true, Ordering::Release);
        for client in self.clients {
            client.join().unwrap();
        }
        self.history
    }
}

fn run(history: &History, shared: &Shared, client: u64, keys: u64) {
    let names: Vec<String> = (0..keys).map(|key| format!("{key}")).collect();
    let scopes: Vec<_> = names.iter().map(|name| history.scope(name)).collect();
    let mut log = history.client();
    // Each begins elsewhere, so that all keys are asked for at the same time.
    let mut turns = (0..names.len()).cycle().skip(usize::try_from(client * keys / 8).unwrap());
    let port = if client.is_multiple_of(2) { &shared.port } else { &shared.http };
    while !shared.is_over.load(Ordering::Acquire) {
        let at = port.load(Ordering::Acquire);
        let Some(connection) = (at != 0).then(|| Client::connect(at)).flatten() else {
            thread::yield_now();
            continue;
        };
        let mut asker =
            if client.is_multiple_of(2) { Asker::Redis(connection) } else { Asker::Http(connection) };
        while !shared.is_over.load(Ordering::Acquire) {
            let key = turns.next().unwrap();
            let asked = log.ask(scopes[key]);
            let Some(answer) = asker.ask(&names[key]) else { break };
            // An error gives no number; the connection goes on.
            let Ok(number) = answer else { continue };
            log.answered(asked, number, number);
            shared.answers.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// A client of the counters, over one protocol or the other.
enum Asker {
    Redis(Client),
    Http(Client),
}

impl Asker {
    /// The next number, or an error in words; `None` if the connection is gone.
    fn ask(&mut self, name: &str) -> Option<Result<u64, String>> {
        match self {
            Self::Redis(client) => {
                let answer = client.incr_raw(&format!("counter:{name}"))?;
                Some(answer.strip_prefix(':').and_then(|number| number.parse().ok()).ok_or(answer))
            }
            Self::Http(client) => {
                let answer = client.post(&format!("/v1/series/counter/next?name={name}"))?;
                let number = answer.strip_prefix("{\"ids\":[\"").and_then(|rest| rest.strip_suffix("\"]}"));
                Some(number.and_then(|number| number.parse().ok()).ok_or(answer))
            }
        }
    }
}
