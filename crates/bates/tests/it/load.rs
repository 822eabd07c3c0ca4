//! Load: clients that ask without pause, whatever becomes of the server, and write down what they are answered.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use bates_testkit::history::History;

use super::running::{Client, Server};

/// Clients that run until they are told to end.
pub(crate) struct Load {
    history: History,
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

/// Waited on rather than asked again and again: the server needs the processors.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Which server it is, counted from 1, and its ports: of the Redis protocol, and of HTTP.
    server: (u64, [u16; 2]),
    is_over: bool,
    answers: u64,
    /// How many answers somebody waits for.
    enough: u64,
}

impl Load {
    /// So many clients, which ask in turn for so many counters: every other one over HTTP.
    pub(crate) fn begin(clients: u64, keys: u64) -> Self {
        let (history, shared) = (History::default(), Arc::<Shared>::default());
        let clients = (0..clients).map(|client| {
            let (history, shared) = (history.clone(), shared.clone());
            thread::spawn(move || run(&history, &shared, client, keys))
        });
        let clients = clients.collect();
        Self { history, shared, clients }
    }

    /// Sends the clients to a server, now and whenever their connection breaks.
    pub(crate) fn ask(&self, server: &Server) {
        self.shared.change(|state| state.server = (state.server.0 + 1, [server.port, server.http]));
    }

    /// Waits for so many answers more.
    pub(crate) fn wait_for(&self, answers: u64) {
        let mut state = self.shared.state.lock().unwrap();
        state.enough = state.answers + answers;
        drop(self.shared.changed.wait_while(state, |state| state.answers < state.enough).unwrap());
    }

    /// Lets the clients end, and hands out what they wrote down.
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

    /// The server, once it is another than the one that was tried last; `None` when it is over.
    fn next_server(&self, tried: u64) -> Option<(u64, [u16; 2])> {
        let state = self.state.lock().unwrap();
        let is_same = |state: &mut State| state.server.0 == tried && !state.is_over;
        let state = self.changed.wait_while(state, is_same).unwrap();
        (!state.is_over).then_some(state.server)
    }

    /// Counts an answer, and says whether to go on.
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
    // Each begins elsewhere, so that all keys are asked for at the same time.
    let mut turns = (0..names.len()).cycle().skip(usize::try_from(client * keys / 8).unwrap());
    let over_http = !client.is_multiple_of(2);
    let mut tried = 0;
    while let Some((server, ports)) = shared.next_server(tried) {
        tried = server;
        // A connection that breaks is made again until nobody listens any more.
        while let Some(mut connection) = Client::connect(ports[usize::from(over_http)]) {
            loop {
                let key = turns.next().unwrap();
                let asked = log.ask(scopes[key]);
                let next = if over_http { next_by_http } else { next_by_redis };
                let Some(answer) = next(&mut connection, &names[key]) else { break };
                if let Ok(number) = answer {
                    log.answered(asked, number, number);
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

/// The next number, or an error in words; `None` if the connection is gone.
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
