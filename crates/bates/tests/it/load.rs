//! Load: clients that send requests without a pause, even while servers are killed, and log their answers.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use bates_testkit::history::History;

use super::running::{Client, Server};

/// Clients that run until `end`.
pub(crate) struct Load {
    history: History,
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

/// Waited on with a condition variable, not polled, since the server needs the processors.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The current server, counted from 1, and its ports for the Redis protocol and HTTP.
    server: (u64, [u16; 2]),
    is_over: bool,
    answers: u64,
    /// `wait_for` returns at this many answers.
    enough: u64,
}

impl Load {
    /// Starts clients that take numbers of `keys` counters in turn; every other client uses HTTP.
    pub(crate) fn begin(clients: u64, keys: u64) -> Self {
        let (history, shared) = (History::default(), Arc::<Shared>::default());
        let clients = (0..clients).map(|client| {
            let (history, shared) = (history.clone(), shared.clone());
            thread::spawn(move || run(&history, &shared, client, keys))
        });
        let clients = clients.collect();
        Self { history, shared, clients }
    }

    /// Sends the clients to this server from now on.
    pub(crate) fn ask(&self, server: &Server) {
        self.shared.change(|state| state.server = (state.server.0 + 1, [server.port, server.http]));
    }

    /// Waits until the clients have got this many more answers.
    pub(crate) fn wait_for(&self, answers: u64) {
        let mut state = self.shared.state.lock().unwrap();
        state.enough = state.answers + answers;
        drop(self.shared.changed.wait_while(state, |state| state.answers < state.enough).unwrap());
    }

    /// Ends the clients, and returns the history of their answers.
    pub(crate) fn end(self) -> History {
        self.shared.change(|state| state.is_over = true);
        for client in self.clients {
            client.join().unwrap();
        }
        self.history
    }
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits for a server other than the one tried last; `None` when the load ends.
    fn next_server(&self, tried: u64) -> Option<(u64, [u16; 2])> {
        let state = self.state.lock().unwrap();
        let is_same = |state: &mut State| state.server.0 == tried && !state.is_over;
        let state = self.changed.wait_while(state, is_same).unwrap();
        (!state.is_over).then_some(state.server)
    }

    /// Counts an answer; returns whether to go on.
    fn count(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.answers += 1;
        if state.answers == state.enough {
            self.changed.notify_all();
        }
        !state.is_over
    }
}

fn run(history: &History, shared: &Shared, client: u64, keys: u64) {
    let names: Vec<String> = (0..keys).map(|key| key.to_string()).collect();
    let scopes: Vec<_> = names.iter().map(|name| history.scope(name)).collect();
    let mut log = history.client();
    // Each client begins at another key, so that all keys are in use at the same time.
    let mut turns = (0..names.len()).cycle().skip(usize::try_from(client * keys / 8).unwrap());
    let over_http = !client.is_multiple_of(2);
    let mut tried = 0;
    while let Some((server, ports)) = shared.next_server(tried) {
        tried = server;
        // Reconnects after a broken connection, until the server no longer listens.
        while let Some(mut connection) = Client::connect(ports[usize::from(over_http)]) {
            loop {
                let key = turns.next().unwrap();
                let request = log.ask(scopes[key]);
                let next = if over_http { next_by_http } else { next_by_redis };
                let Some(answer) = next(&mut connection, &names[key]) else { break };
                if let Ok(number) = answer {
                    log.answered(request, number, number);
                } else if shared.state.lock().unwrap().is_over {
                    return;
                } else {
                    // An error gives no number; the connection goes on.
                    continue;
                }
                if !shared.count() {
                    return;
                }
            }
        }
    }
}

/// A number, or the error as text; `None` if the connection is gone.
type Answer = Option<Result<u64, String>>;

fn next_by_redis(client: &mut Client, name: &str) -> Answer {
    let answer = client.incr_raw(&format!("counter:{name}"))?;
    Some(answer.strip_prefix(':').and_then(|number| number.parse().ok()).ok_or(answer))
}

fn next_by_http(client: &mut Client, name: &str) -> Answer {
    let answer = client.post(&format!("/v1/series/counter/next?name={name}"))?;
    let number = answer.strip_prefix("{\"ids\":[\"").and_then(|rest| rest.strip_suffix("\"]}"));
    Some(number.and_then(|number| number.parse().ok()).ok_or(answer))
}
