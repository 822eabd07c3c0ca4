//! The Rust client against server processes: what every call answers, and what it does when answers get lost.

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

/// A server with a series of every kind, and where it keeps them.
pub(crate) struct Stage {
    pub(crate) server: Server,
    // Invariant: last, so that the server is gone when its folder is.
    pub(crate) home: Home,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// With these variables in the environment of the server.
    pub(crate) fn with(environment: &[(&str, &str)]) -> Self {
        let home = Home::folder();
        let server = home.start_with(&series(&home), environment);
        Self { server, home }
    }

    /// A server on what another one left, which was killed.
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

/// A client of a port of this machine that rests only as long as it is told to.
pub(crate) fn builder(port: u16) -> ClientBuilder {
    let pause = Duration::from_millis(1);
    Client::builder(format!("http://127.0.0.1:{port}")).pause(pause, pause)
}
