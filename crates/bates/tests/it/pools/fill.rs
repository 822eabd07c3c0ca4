//! Filling lists: when they are filled, for which scopes, and which configurations are refused.

use std::collections::{HashMap, HashSet};

use super::{Home, Redis, bates, gaps, series};
use crate::http::ask;
use crate::metrics::samples;

#[test]
fn lists_are_refilled_at_their_watermark_and_give_numbers_in_order() {
    for home in [Home::folder(), Home::postgres()] {
        let redis = Redis::start();
        let server = home.start(&series(&redis.url(), "size: 100, refill_at: 30%", "{ p: A }"));
        redis.wait_for_level("pool:A", 100);
        let first: Vec<String> = redis.command(&["LPOP", "pool:A", "69"]);
        assert_eq!(first, (1..70).map(|at| format!("A-{at}")).collect::<Vec<_>>());
        let own = server.redis_cli(&["LPOP", "own:A"]);
        let next: Vec<String> = redis.command(&["LPOP", "pool:A", "1"]);
        assert_eq!(next, ["A-70"]);
        redis.wait_for_level("pool:A", 100);
        let rest: Vec<String> = redis.command(&["LPOP", "pool:A", "100"]);
        let mut seen: HashSet<&String> = first.iter().chain(&next).chain(&rest).collect();
        assert!(seen.insert(&own), "{own} came from Bates and from the list");
        assert_eq!(seen.len(), 171);
        redis.wait_for_level("pool:A", 100);
        assert_eq!(gaps(&server), HashMap::default(), "neither taken nor waiting numbers are gaps");
    }
}

#[test]
fn a_requested_pool_stays_filled_and_continues_at_the_cursor_after_a_restart() {
    for home in [Home::folder(), Home::postgres()] {
        let redis = Redis::start();
        let series = series(&redis.url(), "low: 5, batch: 20", "{ p: \"*\" }");
        let server = home.start(&series);
        let (status, answer) = ask(server.http, "POST", "/v1/series/ticket/pool", r#"{"scope":{"p":"B"}}"#);
        assert_eq!((status, answer["key"].as_str()), (202, Some("pool:B")));
        redis.wait_for_level("pool:B", 20);
        assert_eq!(
            server.redis_cli(&["LPOP", "own:C"]),
            "C-1",
            "a scope that matches the configuration gets a pool when it is used"
        );
        redis.wait_for_level("pool:C", 20);
        server.stop();
        let before: Vec<String> = redis.command(&["LPOP", "pool:B", "20"]);
        let server = home.start(&series);
        redis.wait_for_level("pool:B", 20);
        let after: Vec<String> = redis.command(&["LPOP", "pool:B", "20"]);
        assert_eq!((before[19].as_str(), after[0].as_str()), ("B-20", "B-21"));
        assert_eq!(redis.epoch("pool:B"), 1, "a restart of Bates does not start the list over");
        let (_, pools) = ask(server.http, "GET", "/v1/pools?series=ticket", "");
        let keys: Vec<&str> =
            pools["pools"].as_array().unwrap().iter().map(|pool| pool["key"].as_str().unwrap()).collect();
        assert_eq!(keys, ["pool:B", "pool:C"]);
    }
}

#[test]
fn bates_fill_fills_a_pool_once_or_as_a_watching_process() {
    let (home, redis) = (Home::postgres(), Redis::start());
    let server = home.start(&series("redis://127.0.0.1:1", "size: 30000", ""));
    drop(server);
    std::fs::write(home.path("bates.yaml"), format!("series:\n{}", series(&redis.url(), "size: 30000", "")))
        .unwrap();
    let filled = bates(&home, &["fill", "ticket", "p=A"]);
    let stdout = String::from_utf8_lossy(&filled.stdout);
    assert!(stdout.contains("30,000 numbers pushed to pool:A"), "{filled:?}");
    let again = bates(&home, &["fill", "ticket", "p=A"]);
    assert!(String::from_utf8_lossy(&again.stdout).contains("pool:A is not low"), "{again:?}");
    let all: Vec<String> = redis.command(&["LPOP", "pool:A", "30000"]);
    assert_eq!(all, (1..30_001).map(|at| format!("A-{at}")).collect::<Vec<_>>());
    let mut watcher = super::command(&home, &["fill", "--watch"]).spawn().unwrap();
    redis.wait_for_level("pool:A", 30_000);
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    let bad = bates(&home, &["fill", "ticket"]);
    assert!(String::from_utf8_lossy(&bad.stderr).contains("it needs exactly"), "{bad:?}");
}

#[test]
fn an_existing_list_is_left_alone_and_reported() {
    let (home, redis) = (Home::folder(), Redis::start());
    let _: u64 = redis.command(&["RPUSH", "pool:A", "mine", "too"]);
    let server = home.start(&series(&redis.url(), "size: 10", "{ p: A }, { p: B }"));
    redis.wait_for_level("pool:B", 10);
    let body = r#"{"scope":{"p":"A"},"run_id":"x","replication_id":"y"}"#;
    let (status, answer) = loop {
        // The filler may be looking at the list at the moment.
        let (status, answer) = ask(server.http, "POST", "/v1/series/ticket/pool/attach", body);
        if answer["code"] != "pool_elsewhere" {
            break (status, answer);
        }
    };
    assert_eq!((status, answer["code"].as_str()), (503, Some("pool_unavailable")));
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains("that Bates did not write"), "{detail}");
    let list: Vec<String> = redis.command(&["LRANGE", "pool:A", "0", "-1"]);
    assert_eq!(list, ["mine", "too"]);
    let log = server.stop();
    assert!(log.contains("the pool pool:A cannot be filled"), "{log}");
}

#[test]
fn a_key_of_another_type_is_not_replaced_and_costs_no_numbers() {
    let (home, redis) = (Home::folder(), Redis::start());
    let _: String = redis.command(&["SET", "pool:A", "mine"]);
    let server = home.start(&series(&redis.url(), "size: 10", "{ p: A }, { p: B }"));
    redis.wait_for_level("pool:B", 10);
    let _: u64 = redis.command(&["DEL", "pool:B"]);
    let _: u64 = redis.command(&["HSET", "pool:B", "a", "b"]);
    let metric = "bates_pool_fill_errors_total{series=\"ticket\"} ";
    let count = || {
        let request = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
        let (_, _, body) = crate::http::exchange(server.http, request.as_bytes());
        let text = String::from_utf8(body).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(metric)).unwrap_or("0").to_owned();
        line.parse::<u64>().unwrap()
    };
    // One failure for each of the two keys, and one retry.
    while count() < 3 {
        std::thread::yield_now();
    }
    assert_eq!(redis.command::<String>(&["GET", "pool:A"]), "mine");
    assert_eq!(redis.command::<String>(&["HGET", "pool:B", "a"]), "b");
    assert_eq!(gaps(&server), HashMap::default(), "no number was granted for these keys");
}

#[test]
fn a_floor_and_an_adoption_empty_the_list_and_continue_past_its_numbers() {
    for home in [Home::folder(), Home::postgres()] {
        let redis = Redis::start();
        let series = series(&redis.url(), "size: 100", "{ p: A }");
        let mut server = Some(home.start(&series));
        redis.wait_for_level("pool:A", 100);
        if home.postgres.is_none() {
            server.take().unwrap().stop();
        }
        let raised = bates(&home, &["floor", "ticket", "p=A", "50"]);
        let stderr = String::from_utf8_lossy(&raised.stderr);
        assert!(raised.status.success() && stderr.contains("the floor is raised to 101"), "{raised:?}");
        let running = server.unwrap_or_else(|| home.start(&series));
        let first = loop {
            let popped: Option<Vec<String>> = redis.command(&["LPOP", "pool:A", "1"]);
            if let Some(popped) = popped {
                break popped[0].strip_prefix("A-").unwrap().parse::<u64>().unwrap();
            }
        };
        assert!(first > 100, "{first} was in the list before");
        if home.postgres.is_none() {
            running.stop();
        }
        std::fs::write(home.path("old.txt"), "A-5000\n").unwrap();
        let old = home.path("old.txt").display().to_string();
        redis.wait_for_level("pool:A", 99);
        let adopted = bates(&home, &["adopt", "--series", "ticket", &old]);
        assert!(adopted.status.success(), "{adopted:?}");
        let after: Option<Vec<String>> = redis.command(&["LRANGE", "pool:A", "0", "-1"]);
        let numbers = after.unwrap_or_default();
        let low = numbers.iter().any(|n| n[2..].parse::<u64>().unwrap() <= 5_000);
        assert!(!low, "{numbers:?}");
    }
}

#[test]
fn a_restored_folder_pushes_nothing_until_its_cursor_is_past_the_list() {
    let (home, redis) = (Home::folder(), Redis::start());
    home.start(&series(&redis.url(), "size: 100", "")).stop();
    let series = series(&redis.url(), "size: 100", "{ p: A }");
    let copied =
        std::process::Command::new("cp").arg("-a").arg(home.path("data")).arg(home.path("copy")).status();
    assert!(copied.unwrap().success());
    let server = home.start(&series);
    redis.wait_for_level("pool:A", 100);
    server.stop();
    std::fs::remove_dir_all(home.path("data")).unwrap();
    std::fs::rename(home.path("copy"), home.path("data")).unwrap();
    let server = home.start(&series);
    let body = r#"{"scope":{"p":"A"},"run_id":"x","replication_id":"y"}"#;
    let detail = loop {
        // The filler may be looking at the list at the moment.
        let (_, answer) = ask(server.http, "POST", "/v1/series/ticket/pool/attach", body);
        if answer["code"] == "pool_unavailable" {
            break answer["detail"].as_str().unwrap().to_owned();
        }
    };
    assert!(detail.contains("which this store never began"), "{detail}");
    let _: Vec<String> = redis.command(&["LPOP", "pool:A", "100"]);
    server.stop();
    assert_eq!(redis.level("pool:A"), 0);
    assert!(bates(&home, &["floor", "ticket", "p=A", "1"]).status.success());
    let _server = home.start(&series);
    redis.wait_for_level("pool:A", 100);
    let next: Vec<String> = redis.command(&["LPOP", "pool:A", "1"]);
    assert_eq!(next, ["A-101"]);
}

#[test]
fn a_list_starts_over_once_for_each_loss_of_data_even_without_a_restart() {
    let (home, redis) = (Home::folder(), Redis::start());
    let _server = home.start(&series(&redis.url(), "size: 100", "{ p: A }"));
    let taken = |epoch: u64| {
        redis.wait_for_level("pool:A", 100);
        let numbers: Vec<String> = redis.command(&["LPOP", "pool:A", "90"]);
        redis.wait_for_level("pool:A", 100);
        assert_eq!(redis.epoch("pool:A"), epoch);
        numbers
    };
    let mut seen: HashSet<String> = taken(1).into_iter().collect();
    let _: String = redis.command(&["FLUSHALL"]);
    seen.extend(taken(2));
    // As if Redis had returned to an earlier state without a restart.
    let _: u64 = redis.command(&["HSET", "{pool:A}:bates", "to", "5"]);
    while redis.epoch("pool:A") < 3 {
        std::thread::yield_now();
    }
    seen.extend(taken(3));
    assert_eq!(seen.len(), 270, "each number came once");
}

#[test]
fn the_list_of_an_exhausted_series_has_its_last_numbers() {
    let (home, redis) = (Home::folder(), Redis::start());
    let pool = format!("{{ redis: \"{}\", key: last, size: 64 }}", redis.url());
    let server =
        home.start(&format!("  tiny: {{ pattern: \"{{seq:2}}\", order: shuffled, pool: {pool} }}\n"));
    let mut seen = HashSet::new();
    while seen.len() < 100 {
        let popped: Option<Vec<String>> = redis.command(&["LPOP", "last", "7"]);
        for number in popped.unwrap_or_default() {
            assert!(seen.insert(number.clone()), "{number} came twice");
        }
    }
    let (status, answer) = ask(server.http, "POST", "/v1/series/tiny/next", "");
    assert_eq!((status, answer["code"].as_str()), (410, Some("exhausted")), "all numbers were in the list");
}

#[test]
fn configurations_that_could_repeat_or_confuse_numbers_are_refused() {
    let home = Home::folder();
    for (series, problem) in [
        (
            "pattern: \"{p}-{seq}\", promise: ordered, pool: { redis: \"redis://x\", key: \"k:{p}\", size: 5 }",
            "unique",
        ),
        (
            "pattern: \"{p}-{seq}\", pool: { redis: \"redis://x\", key: k, size: 5 }",
            "must contain each parameter",
        ),
        (
            "pattern: \"{date:%Y}-{seq}\", reset: yearly, pool: { redis: \"redis://x\", key: k, size: 5 }",
            "shows a date",
        ),
        ("pattern: \"{seq}\", pool: { redis: \"redis://x\", key: k }", "expected size"),
        (
            "pattern: \"{seq}\", pool: { redis: \"redis://x\", key: k, size: 5, low: 1, batch: 2 }",
            "expected size",
        ),
        ("pattern: \"{seq}\", pool: { redis: \"redis://x\", key: k, size: 100000001 }", "1 to 100,000,000"),
        (
            "pattern: \"{seq}\", pool: { redis: \"redis://x\", key: k, size: 9, refill_at: 100% }",
            "invalid share",
        ),
        ("pattern: \"{seq}\", pool: { redis: \"http://x\", key: k, size: 9 }", "redis:"),
        (
            "pattern: \"{p}-{seq}\", pool: { redis: \"redis://x\", key: \"k:{p}\", size: 5, scopes: [{ q: \"1\" }] }",
            "expected exactly p",
        ),
    ] {
        std::fs::write(home.path("bates.yaml"), format!("series:\n  x: {{ {series} }}\n")).unwrap();
        let refused = bates(&home, &["check"]);
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && stderr.contains(problem), "{series}: {stderr}");
    }
    let one = "pattern: \"{seq}\", pool: { redis: \"redis://x\", key: k, size: 5 }";
    std::fs::write(home.path("bates.yaml"), format!("series:\n  x: {{ {one} }}\n  y: {{ {one} }}\n"))
        .unwrap();
    let refused = bates(&home, &["check"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("on the same Redis"), "{refused:?}");
}

#[test]
fn bates_remaining_counts_what_pools_took_also_before_this_node_fills_one() {
    for home in [Home::folder(), Home::postgres()] {
        let redis = Redis::start();
        let pool = format!("{{ redis: \"{}\", key: \"pool\", size: 20000 }}", redis.url());
        let series = format!("  code: {{ pattern: \"{{seq:4}}\", pool: {pool} }}\n");
        let server = home.start(&series);
        redis.wait_for_level("pool", 9_999);
        server.stop();
        // The list is above its watermark, so this server is granted nothing.
        let server = home.start(&series);
        let sample = |name: &str| samples(&server).remove(&format!("{name}{{series=\"code\"}}"));
        while sample("bates_pool_level").as_deref() != Some("9999") {}
        assert_eq!(sample("bates_remaining").as_deref(), Some("0"), "an alert must fire");
        assert_eq!(sample("bates_pool_pushed_total").as_deref(), Some("0"));
    }
}
