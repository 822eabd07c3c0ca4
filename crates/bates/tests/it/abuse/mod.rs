//! What strangers and greedy callers cannot do to a server process and to its other callers.

mod connections;
mod guesses;
mod memory;
mod strangers;

use serde_json::Value;

use super::http::{exchange, send};
use super::running::Server;

const SECRET: &str = "open sesame, open sesame";

/// A server with a secret and these further variables.
struct Rig {
    server: Server,
    _data: tempfile::TempDir,
}

impl Rig {
    fn start(variables: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let environment = [&[("BATES_SECRET", SECRET)], variables].concat();
        Self { server: Server::start_with(data.path(), "127.0.0.1:0", &environment), _data: data }
    }

    /// Sends a request with a secret; returns the status, the head in lower case, and the body.
    fn ask(&self, secret: &str, request: &str) -> (u16, String, String) {
        send(self.server.http, request, &format!("Authorization: Bearer {secret}\r\n"), "")
    }

    fn status(&self, secret: &str) -> u16 {
        self.ask(secret, "GET /v1/series").0
    }

    /// The status of a request without a secret.
    fn status_of(&self, path: &str) -> u16 {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        exchange(self.server.http, request.as_bytes()).0
    }

    /// Sends wrong secrets until one is not checked.
    fn guess_until_refused(&self) {
        let is_refused = (0..1_000).any(|_| self.status("guess") == 429);
        assert!(is_refused, "a thousand wrong secrets were checked");
    }

    fn metric(&self, name: &str) -> u64 {
        let (status, head, text) = self.ask(SECRET, "GET /metrics");
        assert_eq!(status, 200, "{head}");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
    }
}

/// The code of a refusal.
fn code(body: &str) -> String {
    let problem: Value = serde_json::from_str(body).unwrap();
    problem["code"].as_str().unwrap().to_owned()
}
