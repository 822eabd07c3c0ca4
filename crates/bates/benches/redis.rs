//! A shared pool of 5,000,000 base62 keys filled by `bates fill`, beside redis-benchmark that pushes as many bytes to a fresh
//! Redis with pipelined RPUSH of many values. They take turns.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use bates_testkit::{PrivateRedis, programs};
use tempfile::TempDir;

use super::Arguments;
use super::comparison::{Aim, Comparison, grouped, medians};
use super::server::{Server, bates, memory_kib};

const KEYS: u64 = 5_000_000;
/// Values in one command, as many as a filler sends.
const VALUES: u64 = 1_000;

pub(crate) fn run(arguments: &Arguments) {
    let rounds = if arguments.is_short() { 3 } else { 7 };
    println!("\n{KEYS} keys of 6 characters, pushed to one list of one Redis, medians of {rounds} rounds");
    for (order, aim) in [("counting", 0.85), ("shuffled", 0.6)] {
        let round = || {
            let (peer, (ours, memory)) = (benchmark_rate(), fill_rate(order));
            [ours / peer, ours, peer, memory]
        };
        let [result, ours, peer, memory] = medians(rounds, round);
        Comparison {
            work: &format!("filling a pool in Redis, {order}"),
            peer: "redis-benchmark, RPUSH of 1,000",
            result,
            unit: "",
            aim: Aim::AtLeast(aim),
            detail: format!("{} beside {} keys/s, {memory:.0} MiB", grouped(ours), grouped(peer)),
        }
        .print();
    }
}

/// Keys a second, by redis-benchmark.
fn benchmark_rate() -> f64 {
    let redis = PrivateRedis::start().unwrap();
    let values = (0..VALUES).map(|at| format!("{at:06}"));
    let program = programs::find("redis-benchmark").expect("redis-benchmark comes with redis-server");
    let began = Instant::now();
    let status = Command::new(program)
        .args(["-p", &redis.port().to_string(), "-P", "16", "-n", &(KEYS / VALUES).to_string(), "-q"])
        .args(["RPUSH", "keys"])
        .args(values)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    let took = began.elapsed();
    assert!(status.success());
    // Each client finishes its pipeline, so the list may be longer than requested.
    list_length(&redis) as f64 / took.as_secs_f64()
}

/// Keys a second, by `bates fill`, and its peak memory in MiB.
fn fill_rate(order: &str) -> (f64, f64) {
    let (redis, folder) =
        (PrivateRedis::start().unwrap(), TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    let file = folder.path().join("bates.yaml");
    let series = format!("pattern: \"{{seq:base62:6}}\", order: {order}");
    fs::write(&file, format!("series:\n  short: {{ {series} }}\n")).unwrap();
    create_store(&file, folder.path());
    let pool = format!("{{ redis: \"{}\", key: keys, size: {KEYS} }}", redis.url());
    fs::write(&file, format!("series:\n  short: {{ {series}, pool: {pool} }}\n")).unwrap();
    let began = Instant::now();
    let mut child =
        configured(&file, folder.path()).args(["fill", "short"]).stdout(Stdio::null()).spawn().unwrap();
    let mut memory = 0;
    while child.try_wait().unwrap().is_none() {
        memory = memory.max(memory_kib(child.id(), "VmHWM:"));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let took = began.elapsed();
    assert_eq!(list_length(&redis), KEYS, "the pool is full");
    (KEYS as f64 / took.as_secs_f64(), (memory / 1_024) as f64)
}

fn configured(file: &Path, folder: &Path) -> Command {
    let mut command = bates();
    command.env("BATES_CONFIG", file).env("BATES_STORE", format!("sqlite:{}", folder.join("data").display()));
    command
}

/// Creates a store by starting a server once.
fn create_store(file: &Path, folder: &Path) {
    Server::from(configured(file, folder).args(["serve", "--http", "127.0.0.1:0", "--resp", "off"])).stop();
}

fn list_length(redis: &PrivateRedis) -> u64 {
    let client = redis::Client::open(redis.url()).unwrap();
    redis::cmd("LLEN").arg("keys").query(&mut client.get_connection().unwrap()).unwrap()
}
