//! Client leases and prefetched numbers, on server processes and both stores: every leased number is used once or
//! becomes a gap.

mod kills;
mod prefetch;
mod requests;

use std::collections::BTreeMap;
use std::time::Duration;

use bates_client::{Client, ClientBuilder};
use serde_json::Value;

use super::documents::Home;
use super::http::ask;
use super::running::Server;

/// Series of every kind that can be leased, and two that cannot.
const SERIES: &str = "  ticket: { pattern: \"T-{seq}\" }
  document: { pattern: \"{project}-{type}-{seq}\", start: 1001 }
  conversation: { pattern: \"{seq}\", key: \"seq:{conversation}\" }
  short: { pattern: \"{seq:base62:6}\", order: shuffled }
  farmer: { pattern: \"{seq:11}{check:verhoeff}\", order: shuffled, reject: openg2p }
  plain: { pattern: \"{seq:4}\", reject: openg2p, start: 1000 }
  dated: { pattern: \"{date:%Y}-{seq:4}\", reset: yearly, reject: openg2p, start: 1000 }
  stamped: { pattern: \"{date:%Y%m%d}-{seq:6}\", reset: yearly, reject: openg2p }
  daily: { pattern: \"{date:%Y%m%d}-{seq}\", reset: daily }
  fiscal: { pattern: \"{date:%Y}-{seq}\", reset: yearly }
  audited: { pattern: \"A-{seq}\", audit: true }
  digit: { pattern: \"{seq:1}\" }
  queue: { pattern: \"Q-{seq}\", promise: ordered }
  bill: { pattern: \"B-{seq}\", promise: gapless }
";

/// A server, and the home that holds its store.
struct Stage {
    server: Server,
    // Invariant: the last field, so that the server ends before its folder is removed.
    home: Home,
}

impl Stage {
    fn on(home: Home) -> Self {
        let server = home.start(SERIES);
        Self { server, home }
    }

    fn killed_and_started_again(self) -> Self {
        let Self { server, home } = self;
        server.kill();
        Self::on(home)
    }

    /// A client that gives up after three attempts.
    fn client(&self) -> Client {
        builder(self.server.http).attempts(3).build().unwrap()
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        ask(self.server.http, method, path, body)
    }

    fn post(&self, path: &str, body: &str) -> Value {
        let (status, answer) = self.ask("POST", path, body);
        assert_eq!(status, 200, "{path} {body}: {answer}");
        answer
    }

    /// The number of positions in each open lease.
    fn held(&self) -> BTreeMap<String, u64> {
        let (_, answer) = self.ask("GET", "/v1/leases", "");
        let leases = answer["leases"].as_array().unwrap().iter().map(|lease| {
            let count =
                |range: &Value| range["last"].as_u64().unwrap() - range["first"].as_u64().unwrap() + 1;
            let positions = lease["ranges"].as_array().unwrap().iter().map(count).sum();
            (lease["lease"].as_str().unwrap().to_owned(), positions)
        });
        leases.collect()
    }

    /// The missing positions of a series, each with its reason.
    fn gaps(&self, series: &str) -> BTreeMap<u64, String> {
        self.post("/v1/reconcile", "");
        let (_, answer) = self.ask("GET", &format!("/v1/gaps?series={series}"), "");
        let gaps = answer["gaps"].as_array().unwrap().iter().flat_map(|gap| {
            let reason = gap["reason"].as_str().unwrap().to_owned();
            let range = gap["first"].as_u64().unwrap()..=gap["last"].as_u64().unwrap();
            range.map(move |position| (position, reason.clone()))
        });
        gaps.collect()
    }
}

/// A client for a local port with the shortest pause between attempts.
fn builder(port: u16) -> ClientBuilder {
    let pause = Duration::from_millis(1);
    Client::builder(format!("http://127.0.0.1:{port}")).pause(pause, pause)
}

/// Lets other tasks run until the condition holds.
async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
