//! Numbers from the caller's memory beside a bare atomic counter; and keys of a server beside as many keys popped from a list
//! in Redis. Server and Redis are separate processes.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bates_client::{Client, Prefetch, Prefetched};
use bates_testkit::PrivateRedis;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::Arguments;
use super::comparison::{Aim, Comparison, grouped, medians};
use super::server::{Server, bates};

/// Positions to hold in memory.
const HELD: u64 = 1_000_000;
/// Positions taken in one round.
const TAKEN: u64 = 400_000;
/// Threads, and the ratio to reach: one thread with a counter of its own, two threads with a shared counter.
const AIMS: [(u64, f64); 2] = [(1, 0.9), (2, 1.0)];

/// Numbers taken while calls are counted.
const COUNTED: u64 = 1_000_000;
/// Keys taken in each way.
const KEYS: u64 = 200_000;

fn start(folder: &TempDir) -> (Server, Client) {
    let file = folder.path().join("bates.yaml");
    let series = "series:\n  ticket: { pattern: \"T-{seq}\" }\n  short: { pattern: \"{seq:base62:6}\", order: shuffled }\n";
    std::fs::write(&file, series).unwrap();
    let mut command = bates();
    command.args(["serve", "--http", "127.0.0.1:0", "--resp", "off", "--config"]).arg(&file);
    let server = Server::from(command.arg("--data").arg(folder.path().join("data")).arg("--new"));
    let client = Client::connect(format!("http://127.0.0.1:{}", server.http)).unwrap();
    (server, client)
}

pub(crate) fn run(arguments: &Arguments) {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (_server, client) = start(&folder);
    let runtime = Runtime::new().unwrap();
    let _runtime_guard = runtime.enter();
    positions(&client, if arguments.is_short() { 31 } else { 101 });
    if !arguments.is_short() {
        calls(&client, &runtime);
    }
    keys(&client, &runtime, if arguments.is_short() { 5 } else { 11 });
}

/// Positions in memory, one call each.
fn positions(client: &Client, rounds: usize) {
    let held = client.series("ticket").prefetch(HELD);
    println!("\nPositions from the caller's memory, medians of {rounds} rounds of {TAKEN}");
    for (threads, aim) in AIMS {
        let round = || {
            let counter = AtomicU64::new(0);
            let bare = call_rate(threads, || {
                black_box(counter.fetch_add(1, Ordering::Relaxed));
            });
            refill(&held);
            let ours = call_rate(threads, || {
                black_box(held.try_next_unrendered().unwrap().position());
            });
            [ours / bare, ours, bare]
        };
        let [result, ours, bare] = medians(rounds, round);
        Comparison {
            work: &format!("positions prefetched by the Rust client, threads: {threads}"),
            peer: "AtomicU64::fetch_add",
            result,
            unit: "",
            aim: Aim::AtLeast(aim),
            detail: format!("{ours:.0} beside {bare:.0} millions a second"),
        }
        .print();
    }
}

/// Millions of calls a second, by all threads together.
fn call_rate(threads: u64, call: impl Fn() + Sync) -> f64 {
    let (ready, each) = (AtomicU64::new(0), TAKEN / threads);
    let run = || {
        // Spins, because a thread that slept here could wake after the other has finished.
        ready.fetch_add(1, Ordering::AcqRel);
        while ready.load(Ordering::Acquire) < threads {
            std::hint::spin_loop();
        }
        let began = Instant::now();
        for _ in 0..each {
            call();
        }
        (began, Instant::now())
    };
    let times: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let began = times.iter().map(|(began, _)| *began).min().unwrap();
    let ended = times.iter().map(|(_, ended)| *ended).max().unwrap();
    TAKEN as f64 / (ended - began).as_secs_f64() / 1e6
}

/// Refills the memory, so that nothing is fetched during a round. A thread checks for a refill when its chunk ends, so
/// some positions have to be taken for that.
fn refill(held: &Prefetched) {
    while held.cached() < HELD / 2 + TAKEN {
        for _ in 0..10_000 {
            let _ = held.try_next_unrendered();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Calls to the server for a million numbers, taken as fast as they come.
fn calls(client: &Client, runtime: &Runtime) {
    println!("\nCalls to the server for {COUNTED} numbers, taken as fast as they come\n");
    println!("{:<34}{:>8}{:>18}", "held", "calls", "numbers a second");
    for (name, prefetch) in [
        ("100 at first, up to 10,000", Prefetch::new(100)),
        ("100 at first, up to 100,000", Prefetch::new(100).at_most(100_000)),
        ("100 at first, up to 1,000,000", Prefetch::new(100).at_most(1_000_000)),
    ] {
        let held = client.series("ticket").prefetch(prefetch);
        let began = Instant::now();
        runtime.block_on(async {
            for _ in 0..COUNTED {
                black_box(held.next().await.unwrap().position());
            }
        });
        let rate = COUNTED as f64 / began.elapsed().as_secs_f64();
        println!("{name:<34}{:>8}{rate:>18.0}", held.leases());
        runtime.block_on(held.close()).unwrap();
    }
}

/// Keys of six characters, as texts, taken one after the other by one caller.
fn keys(client: &Client, runtime: &Runtime, rounds: usize) {
    println!("\n{KEYS} keys by one caller, each as a text, medians of {rounds} rounds");
    let redis = PrivateRedis::start().unwrap();
    let connection = redis::Client::open(redis.url()).unwrap();
    let mut connection = connection.get_connection_with_timeout(Duration::from_secs(5)).unwrap();
    let mut pop = |batch: u64| {
        fill(&mut connection);
        let began = Instant::now();
        for _ in 0..KEYS / batch {
            let keys: Vec<String> = redis::cmd("LPOP").arg("keys").arg(batch).query(&mut connection).unwrap();
            assert_eq!(black_box(keys).len() as u64, batch);
        }
        KEYS as f64 / began.elapsed().as_secs_f64()
    };
    let take = |series: &str| {
        let held = client.series(series).prefetch(100);
        let began = Instant::now();
        runtime.block_on(async {
            for _ in 0..KEYS {
                black_box(held.next().await.unwrap().to_string());
            }
        });
        let rate = KEYS as f64 / began.elapsed().as_secs_f64();
        runtime.block_on(held.close()).unwrap();
        rate
    };
    let mut round = || {
        let (peer, shuffled, counting) = (pop(100), take("short"), take("ticket"));
        [shuffled / peer, counting / peer, shuffled, counting, peer]
    };
    round();
    let [of_shuffled, of_counting, shuffled, counting, peer] = medians(rounds, round);
    for (order, result, ours) in [("shuffled", of_shuffled, shuffled), ("counting", of_counting, counting)] {
        Comparison {
            work: &format!("prefetch(100) of the Rust client, {order}"),
            peer: "LPOP 100 of Redis",
            result,
            unit: "",
            aim: Aim::AtLeast(1.0),
            detail: format!("{} beside {} keys/s", grouped(ours), grouped(peer)),
        }
        .print();
    }
}

fn fill(connection: &mut redis::Connection) {
    for chunk in 0..KEYS / 1_000 {
        let keys: Vec<String> = (chunk * 1_000..(chunk + 1) * 1_000).map(|key| format!("{key:06}")).collect();
        let _: u64 = redis::cmd("RPUSH").arg("keys").arg(keys).query(connection).unwrap();
    }
}
