//! Shared pools on real servers: Bates fills them, programs take from them, and Redis loses data.

mod attach;
pub(crate) mod data_loss;
pub(crate) mod faults;
mod fill;
mod forks;
mod many_pools;
mod offered;
mod pop;
mod stalled_filler;
mod tls;
mod two_installations;

use std::collections::HashMap;
use std::process::{Command, Output};

use bates_testkit::PrivateRedis;

use super::documents::Home;
use super::running::Server;

/// A series whose scopes are lists `pool:{p}` in Redis, and keys `own:{p}` on the Redis port of Bates.
pub(super) fn series(redis: &str, size: &str, scopes: &str) -> String {
    let pool = format!("{{ redis: \"{redis}\", key: \"pool:{{p}}\", {size}, scopes: [{scopes}] }}");
    format!("  ticket: {{ pattern: \"{{p}}-{{seq}}\", key: \"own:{{p}}\", pool: {pool} }}\n")
}

/// A Redis server and commands for it. It may be down at any time.
pub(crate) struct Redis {
    pub(crate) server: PrivateRedis,
}

impl Redis {
    pub(super) fn start() -> Self {
        Self { server: PrivateRedis::start().unwrap() }
    }

    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    pub(super) fn try_command<T: redis::FromRedisValue>(url: &str, words: &[&str]) -> Option<T> {
        let client = redis::Client::open(url).unwrap();
        let mut connection = client.get_connection().ok()?;
        redis::cmd(words[0]).arg(&words[1..]).query(&mut connection).ok()
    }

    pub(crate) fn command<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        Self::try_command(&self.url(), words).unwrap_or_else(|| panic!("{words:?} got no answer"))
    }

    pub(super) fn level(&self, key: &str) -> u64 {
        Self::try_command(&self.url(), &["LLEN", key]).unwrap_or(0)
    }

    pub(super) fn epoch(&self, key: &str) -> u64 {
        let marker = format!("{{{key}}}:bates");
        Self::try_command::<Option<u64>>(&self.url(), &["HGET", &marker, "epoch"]).flatten().unwrap_or(0)
    }

    /// Waits until a list has at least this many numbers; the test runner ends a test that waits forever.
    pub(super) fn wait_for_level(&self, key: &str, level: u64) {
        while self.level(key) < level {
            std::thread::yield_now();
        }
    }
}

/// Runs a `bates` command on the store of this home.
pub(super) fn bates(home: &Home, arguments: &[&str]) -> Output {
    command(home, arguments).output().unwrap()
}

pub(super) fn command(home: &Home, arguments: &[&str]) -> Command {
    let store = match &home.postgres {
        Some(postgres) => postgres.url(),
        None => format!("sqlite:{}", home.path("data").display()),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    if home.postgres.is_some() {
        // These tests make no claim about the speed of the store.
        command.env("BATES_STORE_TIMEOUT_MS", "60000");
    }
    command.env("BATES_CONFIG", home.path("bates.yaml")).env("BATES_STORE", &store).args(arguments);
    command
}

/// The number of missing positions for each gap reason.
pub(super) fn gaps(server: &Server) -> HashMap<String, u64> {
    let (status, _) = super::http::ask(server.http, "POST", "/v1/reconcile", "");
    assert_eq!(status, 200);
    let (_, answer) = super::http::ask(server.http, "GET", "/v1/gaps?limit=10000", "");
    let mut reasons = HashMap::new();
    for gap in answer["gaps"].as_array().unwrap() {
        let count = gap["last"].as_u64().unwrap() - gap["first"].as_u64().unwrap() + 1;
        *reasons.entry(gap["reason"].as_str().unwrap().to_owned()).or_default() += count;
    }
    reasons
}
