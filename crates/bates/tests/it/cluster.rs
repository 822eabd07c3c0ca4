//! Several nodes on one PostgreSQL, and clients that switch between them and log their answers.

use std::fs;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use bates_testkit::history::{Client as Log, History, Scope};
use bates_testkit::{PrivatePostgres, programs};
use tempfile::TempDir;

use super::running::{Client, Server};

/// One series of each promise.
const CONFIGURATION: &str = r#"
series:
  ticket: { pattern: "{seq}", promise: unique, key: "ticket:{name}" }
  counter: { pattern: "{seq}", promise: ordered, key: "counter:{name}" }
  invoice: { pattern: "{seq}", promise: gapless, key: "invoice:{name}" }
"#;

/// A PostgreSQL server, and the configuration of the nodes on it.
pub(crate) struct Cluster {
    pub(crate) postgres: PrivatePostgres,
    folder: TempDir,
    /// How long nodes wait for their store, in milliseconds.
    store_timeout: &'static str,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        Self { store_timeout: "5000", ..Self::start_with(CONFIGURATION) }
    }

    /// With a long store timeout, for tests in which a slow machine must not fail a node.
    pub(crate) fn start_with(configuration: &str) -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("bates.yaml"), configuration).unwrap();
        Self { postgres: PrivatePostgres::start().unwrap(), folder, store_timeout: "20000" }
    }

    /// Writes a file beside the configuration, and returns its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Runs a command of the binary on the store: whether it succeeded, and its output.
    pub(crate) fn bates(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_bates"))
            .args(arguments)
            .env("BATES_STORE", self.postgres.url())
            // A slow machine must not fail the command.
            .env("BATES_STORE_TIMEOUT_MS", "60000")
            .env("BATES_CONFIG", self.folder.path().join("bates.yaml"))
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    pub(crate) fn node(&self) -> Server {
        let file = self.folder.path().join("bates.yaml");
        let node = Server::try_node(
            &self.postgres.url(),
            &["--new"],
            &[("BATES_CONFIG", file.to_str().unwrap()), ("BATES_STORE_TIMEOUT_MS", self.store_timeout)],
        );
        node.unwrap_or_else(|stderr| panic!("the node did not start: {stderr}"))
    }

    /// Runs SQL and returns the bare rows.
    pub(crate) fn query(&self, sql: &str) -> String {
        let psql = programs::find("psql").expect("psql; run `cargo xtask test`, which installs it");
        let output = Command::new(psql)
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"])
            .args(["--command", sql, &self.postgres.url()])
            .output()
            .unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Whether the ledger of a gapless scope holds every position from the first to the cursor.
    pub(crate) fn is_gapless(&self, name: &str) -> bool {
        let sql = format!(
            "SELECT sum(last - first + 1) = max(last) AND max(last) + 1 = (SELECT next FROM bates.cursor
             WHERE series = 'invoice' AND scope = 'name={name}')
             FROM bates.ledger WHERE series = 'invoice' AND scope = 'name={name}'"
        );
        self.query(&sql) == "t"
    }
}

/// Clients that take numbers of the same keys from one node after the other, until `end`.
pub(crate) struct Switching {
    history: History,
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The ports of the nodes; `replace` puts a new node in the place of a killed one.
    ports: Vec<u16>,
    is_over: bool,
    answers: u64,
    /// `wait_for` returns at this many answers.
    enough: u64,
}

impl Switching {
    /// Starts clients that take numbers of `keys` in turn.
    pub(crate) fn begin(clients: usize, keys: &[String], nodes: &[&Server]) -> Self {
        Self::begin_in(&History::default(), clients, keys, nodes)
    }

    /// Starts clients that log to a history shared with others.
    pub(crate) fn begin_in(history: &History, clients: usize, keys: &[String], nodes: &[&Server]) -> Self {
        let shared = Arc::<Shared>::default();
        shared.state.lock().unwrap().ports = nodes.iter().map(|node| node.port).collect();
        let begin = |client| {
            let (history, shared, keys) = (history.clone(), shared.clone(), keys.to_vec());
            thread::spawn(move || run(&history, &shared, client, &keys))
        };
        let clients = (0..clients).map(begin).collect();
        Self { history: history.clone(), shared, clients }
    }

    /// Sends the clients of the node at this index to another node.
    pub(crate) fn replace(&self, at: usize, node: &Server) {
        self.shared.state.lock().unwrap().ports[at] = node.port;
    }

    /// Waits until the clients have got this many more answers.
    pub(crate) fn wait_for(&self, answers: u64) {
        let mut state = self.shared.state.lock().unwrap();
        state.enough = state.answers + answers;
        drop(self.shared.changed.wait_while(state, |state| state.answers < state.enough).unwrap());
    }

    pub(crate) fn end(self) -> History {
        self.shared.state.lock().unwrap().is_over = true;
        for client in self.clients {
            client.join().unwrap();
        }
        self.history
    }
}

fn run(history: &History, shared: &Shared, client: usize, keys: &[String]) {
    let scopes: Vec<Scope> = keys.iter().map(|key| history.scope(key)).collect();
    let mut log = history.client();
    let mut connections: Vec<(u16, Option<Client>)> = Vec::new();
    for turn in client.. {
        let ports = shared.state.lock().unwrap().ports.clone();
        connections.resize_with(ports.len(), || (0, None));
        // The turn of the node drifts against that of the key, so that every key meets every node.
        let (node, key) = ((turn + turn / 7) % ports.len(), turn % keys.len());
        let (port, connection) = &mut connections[node];
        if *port != ports[node] || connection.is_none() {
            (*port, *connection) = (ports[node], Client::connect(ports[node]));
        }
        let answered =
            connection.as_mut().is_some_and(|client| take(client, &mut log, scopes[key], &keys[key]));
        if !answered {
            *connection = None;
        }
        if !shared.count(answered) {
            return;
        }
    }
}

/// Takes a number and logs it; false if none was answered.
fn take(client: &mut Client, log: &mut Log, scope: Scope, key: &str) -> bool {
    let request = log.ask(scope);
    let number = client.incr(key);
    if let Some(number) = number {
        log.answered(request, number, number);
    }
    number.is_some()
}

impl Shared {
    /// Counts an answer if there was one; returns whether to go on.
    fn count(&self, answered: bool) -> bool {
        let mut state = self.state.lock().unwrap();
        state.answers += u64::from(answered);
        if state.answers >= state.enough {
            self.changed.notify_all();
        }
        !state.is_over
    }
}
