//! `cargo xtask bench redis`: a shared pool of 5,000,000 base62 keys filled by `bates fill`, compared with redis-benchmark
//! that pushes as many bytes to a fresh Redis with pipelined RPUSH of many values. In one run, several times.
// Polls a process; counts stay far below 2^52.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::cast_precision_loss)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use bates_testkit::{PrivateRedis, programs};
use tempfile::TempDir;

const KEYS: u64 = 5_000_000;
/// Values in one command, as many as a filler sends.
const VALUES: u64 = 1_000;
const RUNS: usize = 5;

fn main() {
    println!("{KEYS} keys of 6 characters, pushed to one list of one Redis; keys a second\n");
    println!(
        "{:<10}{:>16}{:>12}{:>8}{:>18}",
        "order", "redis-benchmark", "bates fill", "ratio", "filler's memory"
    );
    for order in ["counting", "shuffled"] {
        let mut ratios = Vec::new();
        for _ in 0..RUNS {
            let peer = benchmark_rate();
            let (ours, memory) = fill_rate(order);
            let ratio = ours / peer;
            println!("{order:<10}{peer:>16.0}{ours:>12.0}{ratio:>8.2}{memory:>14} MiB");
            ratios.push(ratio);
        }
        ratios.sort_by(f64::total_cmp);
        println!("{order}: median ratio {:.2} (aim 0.70)\n", ratios[RUNS / 2]);
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
fn fill_rate(order: &str) -> (f64, u64) {
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
        bates(&file, folder.path()).args(["fill", "short"]).stdout(Stdio::null()).spawn().unwrap();
    let mut memory = 0;
    while child.try_wait().unwrap().is_none() {
        memory = memory.max(peak_memory_kib(child.id()));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let took = began.elapsed();
    assert_eq!(list_length(&redis), KEYS, "the pool is full");
    (KEYS as f64 / took.as_secs_f64(), memory / 1_024)
}

fn bates(file: &Path, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.env("BATES_CONFIG", file).env("BATES_STORE", format!("sqlite:{}", folder.join("data").display()));
    command
}

/// Creates a store by starting a server once.
fn create_store(file: &Path, folder: &Path) {
    let mut server = bates(file, folder)
        .args(["serve", "--http", "127.0.0.1:0", "--resp", "off"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(server.stdout.take().unwrap()));
    lines.find(|line| line.as_ref().unwrap().contains("HTTP")).unwrap().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
}

fn list_length(redis: &PrivateRedis) -> u64 {
    let client = redis::Client::open(redis.url()).unwrap();
    redis::cmd("LLEN").arg("keys").query(&mut client.get_connection().unwrap()).unwrap()
}

/// Peak memory of a process so far.
fn peak_memory_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|word| word.parse().ok()).unwrap_or(0)
}
