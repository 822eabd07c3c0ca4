//! A filler that sleeps through its lock.

use std::collections::HashSet;
use std::process::{Child, Stdio};

use super::{Home, Redis, bates, command, gaps, series};
use crate::running::signal;

const SIZE: u64 = 300_000;

/// A filler that is stopped when it has pushed a part, and its lock ended as if its time were over.
fn asleep(home: &Home, redis: &Redis, environment: &[(&str, &str)]) -> Child {
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
    assert!(redis.level("pool:A") < SIZE, "it was stopped on its way");
    let _: u64 = redis.command(&["DEL", "{pool:A}:bates:lock"]);
    filler
}

/// Nodes that fill nothing by themselves: the pool is asked for by hand alone.
fn started(home: &Home, redis: &Redis) -> String {
    let series = series(&redis.url(), &format!("size: {SIZE}, refill_at: 99%"), "");
    drop(home.start(&series));
    series
}

#[test]
fn a_filler_that_wakes_behind_another_one_pushes_nothing_and_says_what_it_did_not_use() {
    let (home, redis) = (Home::postgres(), Redis::start());
    let series = started(&home, &redis);
    let sleeper = asleep(&home, &redis, &[]);
    let other = bates(&home, &["fill", "ticket", "p=A"]);
    assert!(other.status.success(), "{other:?}");
    let full = redis.level("pool:A");
    assert_eq!(full, SIZE);
    signal(sleeper.id(), "CONT");
    let ended = sleeper.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && said.contains("another filler was faster"), "{said}");
    assert_eq!(redis.level("pool:A"), SIZE, "a stale push is refused");
    let all: Vec<String> = redis.command(&["LRANGE", "pool:A", "0", "-1"]);
    assert_eq!(all.iter().collect::<HashSet<_>>().len() as u64, SIZE);
    let server = home.start(&series);
    let gaps = gaps(&server);
    assert!(gaps["fill_fenced"] > 0 && gaps.len() == 1, "{gaps:?}");
}

/// The test above is worth as much as the bug it finds.
#[test]
fn without_a_fence_a_stale_push_goes_through() {
    let (home, redis) = (Home::postgres(), Redis::start());
    started(&home, &redis);
    let unfenced = [("BATES_PLANTED_BUG", "push-without-fence")];
    let sleeper = asleep(&home, &redis, &unfenced);
    let mut other = command(&home, &["fill", "ticket", "p=A"]);
    assert!(other.envs(unfenced).output().unwrap().status.success());
    signal(sleeper.id(), "CONT");
    sleeper.wait_with_output().unwrap();
    assert!(redis.level("pool:A") > SIZE);
}
