//! A filler that stalls until its lock has expired.

use std::collections::HashSet;
use std::process::{Child, Stdio};

use super::{Home, Redis, bates, command, gaps, series};
use crate::running::signal;

const SIZE: u64 = 300_000;

/// Starts a filler, stops it after it has pushed a part, and deletes its lock as if it had expired.
fn stalled_filler(home: &Home, redis: &Redis, environment: &[(&str, &str)]) -> Child {
    let mut filler = command(home, &["fill", "ticket", "p=A"]);
    let mut filler = filler
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while redis.level("pool:A") < 20_000 {
        assert!(filler.try_wait().unwrap().is_none(), "it ended before it was stopped");
    }
    signal(filler.id(), "STOP");
    assert!(redis.level("pool:A") < SIZE, "it was stopped before the end");
    let _: u64 = redis.command(&["DEL", "{pool:A}:bates:lock"]);
    filler
}

/// Creates the series in the store. Its configuration lists no scope, so that only `bates fill` fills the pool.
fn create_series(home: &Home, redis: &Redis) -> String {
    let series = series(&redis.url(), &format!("size: {SIZE}, refill_at: 99%"), "");
    drop(home.start(&series));
    series
}

#[test]
fn a_filler_that_wakes_after_another_pushes_nothing_and_reports_its_unused_numbers() {
    let (home, redis) = (Home::postgres(), Redis::start());
    let series = create_series(&home, &redis);
    let stalled = stalled_filler(&home, &redis, &[]);
    let other = bates(&home, &["fill", "ticket", "p=A"]);
    assert!(other.status.success(), "{other:?}");
    let full = redis.level("pool:A");
    assert_eq!(full, SIZE);
    signal(stalled.id(), "CONT");
    let ended = stalled.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && stderr.contains("another filler has the lock"), "{stderr}");
    assert_eq!(redis.level("pool:A"), SIZE, "a stale push is refused");
    let all: Vec<String> = redis.command(&["LRANGE", "pool:A", "0", "-1"]);
    assert_eq!(all.iter().collect::<HashSet<_>>().len() as u64, SIZE);
    let server = home.start(&series);
    let gaps = gaps(&server);
    assert!(gaps["fill_fenced"] > 0 && gaps.len() == 1, "{gaps:?}");
}

/// Shows that the test above can fail.
#[test]
fn without_a_fence_a_stale_push_goes_through() {
    let (home, redis) = (Home::postgres(), Redis::start());
    create_series(&home, &redis);
    let unfenced = [("BATES_PLANTED_BUG", "push-without-fence")];
    let stalled = stalled_filler(&home, &redis, &unfenced);
    let mut other = command(&home, &["fill", "ticket", "p=A"]);
    assert!(other.envs(unfenced).output().unwrap().status.success());
    signal(stalled.id(), "CONT");
    stalled.wait_with_output().unwrap();
    assert!(redis.level("pool:A") > SIZE);
}
