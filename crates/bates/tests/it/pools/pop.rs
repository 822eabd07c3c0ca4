//! `bates pop` and the client behind it, against real servers: faults of Redis fail no call and repeat no number.

use std::collections::HashSet;
use std::process::Output;

use bates_client::{Pool, Settings};

use super::{Home, Redis, command, series};
use crate::running::Server;

/// Asserts that none of the numbers came before.
fn assert_new<'n>(seen: &mut HashSet<String>, numbers: impl IntoIterator<Item = &'n str>) {
    for number in numbers {
        assert!(seen.insert(number.to_owned()), "{number} came twice");
    }
}

fn pop(home: &Home, server: &Server, redis: &Redis, arguments: &[&str]) -> Output {
    let url = format!("http://127.0.0.1:{}", server.http);
    let mut pop = command(home, &["pop", "ticket", "--redis", &redis.url(), "--url", &url]);
    pop.env_remove("BATES_SECRET").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn bates_pop_gives_numbers_through_every_fault_of_redis() {
    let (home, mut redis) = (Home::folder(), Redis::start());
    let server = home.start(&series(&redis.url(), "size: 5000", "{ p: A }"));
    redis.wait_for_level("pool:A", 5_000);
    let mut seen = HashSet::new();
    let mut take = |redis: &Redis, count: &str| {
        let output = pop(&home, &server, redis, &["p=A", "-n", count]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let lines = text(&output.stdout);
        assert_eq!(lines.lines().count().to_string(), count);
        assert_new(&mut seen, lines.lines());
        lines
    };
    assert_eq!(take(&redis, "3"), "A-1\nA-2\nA-3\n");
    let _: String = redis.command(&["SAVE"]);
    take(&redis, "12000");
    redis.server.kill().unwrap();
    take(&redis, "300");
    redis.server.restart().unwrap();
    take(&redis, "12000");
    let _: String = redis.command(&["FLUSHALL"]);
    take(&redis, "3000");
    let json = pop(&home, &server, &redis, &["p=A", "--json"]);
    assert!(text(&json.stdout).starts_with("[\"A-"), "{json:?}");
}

#[test]
fn bates_pop_reports_an_error_with_its_exit_code() {
    let (home, redis) = (Home::folder(), Redis::start());
    let server = home.start(&series(&redis.url(), "size: 10", "{ p: A }"));
    for (arguments, code, words) in [
        (["p"].as_slice(), 2, "expected NAME=VALUE"),
        (&["q=A"], 2, "bad_scope"),
        (&["p=A", "-n", "0"], 2, "0 is not in 1..=1000000"),
        (&["p=A", "--json", "-n", "1000001"], 2, "1000001 is not in 1..=1000000"),
    ] {
        let output = pop(&home, &server, &redis, arguments);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(code) && stderr.contains(words), "{arguments:?}: {stderr}");
    }
    let no_server = ["pop", "ticket", "p=A", "--redis", "redis://127.0.0.1:1", "--url", "http://127.0.0.1:1"];
    let output = command(&home, &no_server).output().unwrap();
    let stderr = text(&output.stderr);
    assert!(output.status.code() == Some(3) && stderr.contains("neither Redis nor Bates"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_pop_during_restarts_of_redis_get_each_number_once_and_no_error() {
    let (home, mut redis) = (Home::folder(), Redis::start());
    let definition = series(&redis.url(), "size: 2000", "{ p: A }");
    let server = home.start(&definition);
    redis.wait_for_level("pool:A", 2_000);
    let mut settings = Settings::new(format!("http://127.0.0.1:{}", server.http), redis.url(), "ticket");
    settings.scope.insert("p".into(), "A".into());
    let pools: Vec<Pool> = (0..4).map(|_| Pool::open(&settings).unwrap()).collect();
    let mut seen = HashSet::new();
    for _ in 0..3 {
        take_concurrently(&pools, &mut seen).await;
        let _: String = redis.command(&["SAVE"]);
        take_concurrently(&pools, &mut seen).await;
        redis.server.kill().unwrap();
        take_concurrently(&pools, &mut seen).await;
        redis.server.restart().unwrap();
        take_concurrently(&pools, &mut seen).await;
    }
}

/// Several tasks take from each pool at once.
async fn take_concurrently(pools: &[Pool], seen: &mut HashSet<String>) {
    let mut callers = Vec::new();
    for pool in pools.iter().cycle().take(pools.len() * 5) {
        let pool = pool.clone();
        callers.push(tokio::spawn(async move {
            let mut mine = Vec::new();
            for _ in 0..40 {
                mine.extend(pool.pop(3).await.unwrap());
            }
            mine
        }));
    }
    for caller in callers {
        assert_new(seen, caller.await.unwrap().iter().map(String::as_str));
    }
}
