//! Many pools and several nodes, with programs that take from Redis directly.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Home, Redis, gaps, series};
use crate::running::Server;

const POOLS: usize = 300;
const SIZE: u64 = 200;
const CLIENTS: usize = 20;
const NUMBERS: u64 = 120_000;

/// Resident memory, in KiB.
fn memory(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Takes numbers until stopped; returns them and the length of the longest list seen.
fn take(url: &str, client: usize, taken: &AtomicU64, stop: &AtomicBool) -> (Vec<String>, u64) {
    let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
    let (mut numbers, mut longest) = (Vec::new(), 0);
    for turn in client.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let key = format!("pool:{}", turn * 7 % POOLS);
        let (level, popped): (u64, Vec<String>) = redis::pipe()
            .cmd("LLEN")
            .arg(&key)
            .cmd("LPOP")
            .arg(&key)
            .arg(3)
            .query(&mut connection)
            .unwrap_or((0, Vec::new()));
        longest = longest.max(level);
        let popped = if popped.is_empty() { wait_for_one(&mut connection, &key) } else { popped };
        taken.fetch_add(popped.len() as u64, Ordering::Relaxed);
        numbers.extend(popped);
    }
    (numbers, longest)
}

/// Waits a short time for a number when the list is empty.
fn wait_for_one(connection: &mut redis::Connection, key: &str) -> Vec<String> {
    let popped: Option<(String, String)> =
        redis::cmd("BLPOP").arg(key).arg(0.2).query(connection).unwrap_or_default();
    popped.into_iter().map(|(_, number)| number).collect()
}

#[test]
fn three_nodes_and_twenty_programs_repeat_no_number_and_each_pool_has_one_filler_at_a_time() {
    let (home, redis) = (Home::postgres(), Redis::start());
    let scopes: Vec<String> = (0..POOLS).map(|at| format!("{{ p: \"{at}\" }}")).collect();
    let series = series(&redis.url(), &format!("size: {SIZE}"), &scopes.join(", "));
    let nodes: Vec<Server> = (0..3).map(|_| home.start(&series)).collect();
    let (taken, stop, url) = (AtomicU64::new(0), AtomicBool::new(false), redis.url());
    let (all, grown) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn({
                    let (url, taken, stop) = (&url, &taken, &stop);
                    move || take(url, client, taken, stop)
                })
            })
            .collect();
        let until = |count: u64| {
            while taken.load(Ordering::Relaxed) < count {
                std::thread::yield_now();
            }
        };
        until(NUMBERS / 3);
        let before: Vec<u64> = nodes.iter().map(memory).collect();
        until(NUMBERS);
        let grown: Vec<u64> =
            nodes.iter().zip(&before).map(|(node, before)| memory(node).saturating_sub(*before)).collect();
        stop.store(true, Ordering::Relaxed);
        (clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>(), grown)
    });
    let mut seen = HashSet::new();
    for number in all.iter().flat_map(|(numbers, _)| numbers) {
        assert!(seen.insert(number), "{number} came twice");
    }
    let longest = all.iter().map(|(_, longest)| *longest).max().unwrap();
    assert!(longest <= SIZE, "a list of {longest}: two fillers were at work on one pool");
    // Concurrent fillers would leave ranges that were granted and never pushed.
    assert_eq!(gaps(&nodes[0]), HashMap::default());
    assert!(grown.iter().all(|kib| *kib < 32 * 1024), "memory grew by {grown:?} KiB");
}
