//! `cargo xtask bench client`: numbers from the caller's memory, compared with a bare atomic counter; and keys of a
//! server, compared with as many keys popped from a list in Redis. Server and Redis are separate processes.
// Sleeps between rounds; counts stay far below 2^52.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::cast_precision_loss)]

use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bates_client::{Client, Prefetch, Prefetched};
use bates_testkit::PrivateRedis;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Positions to hold in memory.
const HELD: u64 = 1_000_000;
/// Positions taken in one round.
const TAKEN: u64 = 400_000;
const ROUNDS: usize = 101;
/// Threads, and the ratio to reach: one thread with a counter of its own, two threads with a shared counter.
const AIMS: [(u64, f64); 2] = [(1, 0.9), (2, 1.0)];

/// Numbers taken while calls are counted.
const COUNTED: u64 = 1_000_000;
/// Keys taken in each way.
const KEYS: u64 = 200_000;
const KEY_ROUNDS: usize = 5;

struct Server {
    child: Child,
    client: Client,
    _data: TempDir,
}

impl Server {
    fn start() -> Self {
        let data = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let file = data.path().join("bates.yaml");
        let series = "series:\n  ticket: { pattern: \"T-{seq}\" }\n  short: { pattern: \"{seq:base62:6}\", order: shuffled }\n";
        std::fs::write(&file, series).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_bates"))
            .args(["serve", "--http", "127.0.0.1:0", "--resp", "off", "--config"])
            .arg(&file)
            .arg("--data")
            .arg(data.path().join("data"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port: u16 = lines.find_map(|line| line.rsplit_once(':')?.1.parse().ok()).unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        let client = Client::connect(format!("http://127.0.0.1:{port}")).unwrap();
        Self { child, client, _data: data }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() {
    let server = Server::start();
    let runtime = Runtime::new().unwrap();
    let _runtime_guard = runtime.enter();
    positions(&server.client);
    calls(&server.client, &runtime);
    keys(&server.client, &runtime);
}

/// Positions in memory, one call each.
fn positions(client: &Client) {
    let held = client.series("ticket").prefetch(HELD);
    println!(
        "positions from memory, medians of {ROUNDS} rounds of {TAKEN}, taking turns, millions a second\n"
    );
    println!("{:<10}{:>22}{:>12}{:>8}", "threads", "AtomicU64::fetch_add", "unrendered", "ratio");
    for (threads, aim) in AIMS {
        let mut rounds: Vec<[f64; 2]> = Vec::new();
        for _ in 0..ROUNDS {
            let counter = AtomicU64::new(0);
            let bare = call_rate(threads, || {
                black_box(counter.fetch_add(1, Ordering::Relaxed));
            });
            refill(&held);
            let ours = call_rate(threads, || {
                black_box(held.try_next_unrendered().unwrap().position());
            });
            rounds.push([bare, ours]);
        }
        let [bare, ours] = std::array::from_fn(|at| median(rounds.iter().map(|round| round[at]).collect()));
        let ratio = median(rounds.iter().map(|[bare, ours]| ours / bare).collect());
        let missed = if ratio < aim { "  missed" } else { "" };
        println!("{threads:<10}{bare:>22.0}{ours:>12.0}{ratio:>8.2}  aim ≥ {aim:.1}{missed}");
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
    println!("\ncalls to the server for {COUNTED} numbers, taken as fast as they come\n");
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
fn keys(client: &Client, runtime: &Runtime) {
    println!("\n{KEYS} keys by one caller, each as a text, medians of {KEY_ROUNDS}\n");
    println!("{:<34}{:>14}{:>12}", "", "keys a second", "calls");
    let redis = PrivateRedis::start().unwrap();
    let mut connection = redis::Client::open(redis.url())
        .unwrap()
        .get_connection_with_timeout(Duration::from_secs(5))
        .unwrap();
    let mut pop = |batch: u64| {
        fill(&mut connection);
        let began = Instant::now();
        for _ in 0..KEYS / batch {
            let keys: Vec<String> = redis::cmd("LPOP").arg("keys").arg(batch).query(&mut connection).unwrap();
            assert_eq!(black_box(keys).len() as u64, batch);
        }
        (began.elapsed(), KEYS / batch)
    };
    let take = |series: &str| {
        let held = client.series(series).prefetch(100);
        let began = Instant::now();
        runtime.block_on(async {
            for _ in 0..KEYS {
                black_box(held.next().await.unwrap().to_string());
            }
        });
        let took = (began.elapsed(), held.leases());
        runtime.block_on(held.close()).unwrap();
        took
    };
    let mut rounds: Vec<[(Duration, u64); 4]> = Vec::new();
    for _ in 0..KEY_ROUNDS {
        rounds.push([pop(1), pop(100), take("short"), take("ticket")]);
    }
    let names = ["Redis, LPOP", "Redis, LPOP 100", "prefetch(100), shuffled", "prefetch(100), counting"];
    for (at, name) in names.into_iter().enumerate() {
        let rate = median(rounds.iter().map(|round| KEYS as f64 / round[at].0.as_secs_f64()).collect());
        let calls = median(rounds.iter().map(|round| round[at].1 as f64).collect());
        println!("{name:<34}{rate:>14.0}{calls:>12.0}");
    }
}

fn fill(connection: &mut redis::Connection) {
    for chunk in 0..KEYS / 1_000 {
        let keys: Vec<String> = (chunk * 1_000..(chunk + 1) * 1_000).map(|key| format!("{key:06}")).collect();
        let _: u64 = redis::cmd("RPUSH").arg("keys").arg(keys).query(connection).unwrap();
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
