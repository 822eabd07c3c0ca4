//! Load: clients that ask without pause, whatever becomes of the server, and write down what they are answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use bates_testkit::history::History;

use super::running::Client;

/// Clients that run until they are told to end.
pub(crate) struct Load {
    history: History,
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Where the server is; 0 before there is one.
    port: AtomicU16,
    is_over: AtomicBool,
    answers: AtomicU64,
}

impl Load {
    /// So many clients, which ask in turn for so many counters.
    pub(crate) fn begin(clients: u64, keys: u64) -> Self {
        let (history, shared) = (History::default(), Arc::<Shared>::default());
        let clients = (0..clients).map(|client| {
            let (history, shared) = (history.clone(), shared.clone());
            // Each begins elsewhere, so that all keys are asked for at the same time.
            thread::spawn(move || run(&history, &shared, client * keys / 8, keys))
        });
        let clients = clients.collect();
        Self { history, shared, clients }
    }

    /// Sends the clients to a server, now and whenever their connection breaks.
    pub(crate) fn ask(&self, port: u16) {
        self.shared.port.store(port, Ordering::Release);
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

fn run(history: &History, shared: &Shared, begin: u64, keys: u64) {
    let names: Vec<String> = (0..keys).map(|key| format!("counter:{key}")).collect();
    let scopes: Vec<_> = names.iter().map(|name| history.scope(name)).collect();
    let mut log = history.client();
    let mut turns = (0..names.len()).cycle().skip(usize::try_from(begin).unwrap());
    while !shared.is_over.load(Ordering::Acquire) {
        let port = shared.port.load(Ordering::Acquire);
        let Some(mut connection) = (port != 0).then(|| Client::connect(port)).flatten() else {
            thread::yield_now();
            continue;
        };
        while !shared.is_over.load(Ordering::Acquire) {
            let key = turns.next().unwrap();
            let asked = log.ask(scopes[key]);
            let Some(answer) = connection.incr_raw(&names[key]) else { break };
            // An error gives no number; the connection goes on.
            let Some(number) = answer.strip_prefix(':') else { continue };
            let number = number.parse().unwrap();
            log.answered(asked, number, number);
            shared.answers.fetch_add(1, Ordering::AcqRel);
        }
    }
}
