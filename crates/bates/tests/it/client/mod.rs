//! The Rust client against server processes: what every call returns, and what the client does when answers get lost.

mod calls;
mod kills;
mod lost_answers;
pub(crate) mod proxy;
mod refusals;
mod tls;

use std::time::Duration;

use bates_client::{Client, ClientBuilder};

use super::documents::Home;
use super::running::Server;

/// A server with series of every kind, and the home that holds its store.
pub(crate) struct Stage {
    pub(crate) server: Server,
    // Invariant: the last field, so that the server ends before its folder is removed.
    pub(crate) home: Home,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// Starts the server with these environment variables.
    pub(crate) fn with(environment: &[(&str, &str)]) -> Self {
        let home = Home::folder();
        let server = home.start_with(&series(&home), environment);
        Self { server, home }
    }

    /// Kills the server and starts another one on the same store.
    pub(crate) fn killed_and_started_again(self) -> Self {
        let Self { server, home } = self;
        server.kill();
        let server = home.start(&series(&home));
        Self { server, home }
    }

    pub(crate) fn client(&self) -> Client {
        builder(self.server.http).build().unwrap()
    }
}

fn series(home: &Home) -> String {
    let sink = home.sink();
    format!(
        "  document: {{ pattern: \"{{project}}-{{type}}-{{seq}}\", start: 1001, sink: {sink} }}
  ticket: {{ pattern: \"T-{{seq}}\" }}
  queue: {{ pattern: \"Q-{{seq}}\", promise: ordered }}
  invoice: {{ pattern: \"INV-{{date:%Y}}-{{seq:6}}\", promise: gapless, reset: yearly, sink: {sink} }}
  bill: {{ pattern: \"B-{{seq}}\", promise: gapless, sink: {sink} }}
  digit: {{ pattern: \"{{seq:1}}\" }}
  farmer: {{ pattern: \"{{seq:11}}{{check:verhoeff}}\", order: shuffled, reject: openg2p }}
"
    )
}

/// A client for a local port with the shortest pause between attempts.
pub(crate) fn builder(port: u16) -> ClientBuilder {
    let pause = Duration::from_millis(1);
    Client::builder(format!("http://127.0.0.1:{port}")).pause(pause, pause)
}
