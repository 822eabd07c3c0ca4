//! A Redis, a stand-in for Bates, a pool on both, and the numbers taken from it.

use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

use bates_client::{Pool, Settings};
use bates_testkit::PrivateRedis;

use super::stand_in::StandIn;

/// So long that no answer is late, even on a busy machine: Bates gives a number only if Redis cannot.
pub(crate) const PATIENT: Duration = Duration::from_mins(1);

pub(crate) struct Fixture {
    pub(crate) redis: PrivateRedis,
    pub(crate) bates: StandIn,
}

impl Fixture {
    /// Each new list begins with `fill` numbers.
    pub(crate) fn new(fill: u64) -> Self {
        Self::ending(fill, u64::MAX / 2)
    }

    /// Like [`Fixture::new`], with a last number.
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
    pub(crate) fn patient_pool(&self) -> Pool {
        Pool::open(&Settings { deadline: PATIENT, ..self.settings() }).unwrap()
    }

    /// Sends a command to Redis, without the pool.
    pub(crate) async fn redis_command(&self, words: &[&str]) -> redis::Value {
        let client = redis::Client::open(self.redis.url()).unwrap();
        // On a busy machine the default timeout of half a second is too short.
        let no_timeout =
            redis::AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut connection = client.get_multiplexed_async_connection_with_config(&no_timeout).await.unwrap();
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]).query_async(&mut connection).await.unwrap()
    }

    /// Sends a signal to Redis.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("sh")
            .args(["-c", r#"kill -s "$1" "$2""#, "sh", name, &self.redis.pid().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }
}

/// The numbers taken so far, to notice one that repeats.
#[derive(Default)]
pub(crate) struct TakenNumbers(HashSet<String>);

impl TakenNumbers {
    /// Takes from a pool; no call may fail, and no number may repeat.
    pub(crate) async fn take(&mut self, pool: &Pool, count: usize) -> Vec<String> {
        let numbers = pool.pop(count).await.unwrap();
        assert_eq!(numbers.len(), count);
        for number in &numbers {
            // `R-7` and `B-7` would be the same number.
            assert!(self.0.insert(number[2..].to_owned()), "{number} repeats");
        }
        numbers
    }

    /// Takes until a number comes from Redis.
    pub(crate) async fn until_redis(&mut self, pool: &Pool) {
        while !self.take(pool, 1).await[0].starts_with("R-") {}
    }
}
