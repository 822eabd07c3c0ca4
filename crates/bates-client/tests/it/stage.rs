//! A Redis, a stand-in for Bates and a pool on both, and what was taken from it.

use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

use bates_client::{Pool, Settings};
use bates_testkit::PrivateRedis;

use super::stand_in::StandIn;

/// So long that nothing is late on a busy machine: who gives numbers is then decided by who can.
pub(crate) const PATIENT: Duration = Duration::from_mins(1);

pub(crate) struct Stage {
    pub(crate) redis: PrivateRedis,
    pub(crate) bates: StandIn,
}

impl Stage {
    /// Lists begin with so many numbers.
    pub(crate) fn new(fill: u64) -> Self {
        Self::ending(fill, u64::MAX / 2)
    }

    /// The same, with a last number.
    pub(crate) fn ending(fill: u64, end: u64) -> Self {
        let redis = PrivateRedis::start().unwrap();
        let bates = StandIn::start(&redis.url(), fill, end);
        Self { redis, bates }
    }

    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.bates.url(), self.redis.url(), "document");
        settings.scope =
            [("project", "PROJ"), ("type", "9012")].map(|(name, value)| (name.into(), value.into())).into();
        settings
    }

    /// A pool that waits for Redis as long as it takes.
    pub(crate) fn patient(&self) -> Pool {
        Pool::open(&Settings { deadline: PATIENT, ..self.settings() }).unwrap()
    }

    /// Asks Redis for something, past the pool.
    pub(crate) async fn ask(&self, words: &[&str]) -> redis::Value {
        let client = redis::Client::open(self.redis.url()).unwrap();
        // A busy machine takes longer than the half second that is the default.
        let patient =
            redis::AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut connection = client.get_multiplexed_async_connection_with_config(&patient).await.unwrap();
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]).query_async(&mut connection).await.unwrap()
    }

    /// Signals Redis.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("sh")
            .args(["-c", r#"kill -s "$1" "$2""#, "sh", name, &self.redis.pid().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }
}

/// What was taken, each number once.
#[derive(Default)]
pub(crate) struct Taken(HashSet<String>);

impl Taken {
    /// Takes from a pool. No call may fail, and no number may come twice.
    pub(crate) async fn take(&mut self, pool: &Pool, count: usize) -> Vec<String> {
        let numbers = pool.pop(count).await.unwrap();
        assert_eq!(numbers.len(), count);
        for number in &numbers {
            // `R-7` and `B-7` would be the same number.
            assert!(self.0.insert(number[2..].to_owned()), "{number} came twice");
        }
        numbers
    }

    /// Takes until one comes from Redis.
    pub(crate) async fn until_redis(&mut self, pool: &Pool) {
        while !self.take(pool, 1).await[0].starts_with("R-") {}
    }
}
