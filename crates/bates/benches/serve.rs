//! `cargo xtask bench serve`: INCR on 100,000 keys with 50 clients, by `redis-benchmark`, against Redis without
//! persistence, Redis that syncs every write, and Bates with its durable default, alternating in one run.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use bates_testkit::{PrivateRedis, programs};
use tempfile::TempDir;

const KEYS: &str = "100000";
const CLIENTS: &str = "50";
const ROUNDS: usize = 5;

/// The pipelines, how many requests each run makes, and how many the slow server gets.
const PIPELINES: [(u32, u32, u32); 3] =
    [(1, 300_000, 60_000), (16, 2_000_000, 400_000), (64, 3_000_000, 600_000)];

/// What Bates should reach, as a multiple of Redis without persistence; and of Redis that syncs, at pipeline 1.
const AIMS: [f64; 3] = [1.0, 1.3, 1.3];
const AIM_SYNCED: f64 = 3.0;

struct Bates {
    child: Child,
    port: u16,
    _data: TempDir,
}

impl Bates {
    fn start() -> Self {
        let data = TempDir::new().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_bates"))
            .args(["serve", "--resp", "127.0.0.1:0", "--data"])
            .arg(data.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port = lines.find_map(|line| line.split_once("127.0.0.1:")?.1.parse().ok()).unwrap();
        Self { child, port, _data: data }
    }
}

impl Drop for Bates {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() {
    let plain = PrivateRedis::start().unwrap();
    let synced = PrivateRedis::start_with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    let bates = Bates::start();
    println!("first touch of {KEYS} new keys, pipeline 16, requests per second");
    for (name, port) in [
        ("Redis, no persistence", plain.port()),
        ("Redis, appendfsync always", synced.port()),
        ("Bates", bates.port),
    ] {
        println!("  {name:<28} {:>9.0}", measure(port, 16, 400_000));
    }
    println!("\nINCR, {CLIENTS} clients, {KEYS} random keys, medians of {ROUNDS}, requests per second");
    println!(
        "  {:<10} {:>12} {:>12} {:>12} {:>9} {:>7} {:>9}",
        "pipeline", "Redis", "always", "Bates", "ratio", "aim", "to always"
    );
    for ((pipeline, requests, few), aim) in PIPELINES.into_iter().zip(AIMS) {
        let mut samples = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            samples[0].push(measure(plain.port(), pipeline, requests));
            samples[1].push(measure(synced.port(), pipeline, few));
            samples[2].push(measure(bates.port, pipeline, requests));
        }
        let [redis, always, ours] = samples.map(median);
        let (ratio, to_always) = (ours / redis, ours / always);
        let missed = ratio < aim || pipeline == 1 && to_always < AIM_SYNCED;
        let missed = if missed { "  missed" } else { "" };
        println!(
            "  {pipeline:<10} {redis:>12.0} {always:>12.0} {ours:>12.0} {ratio:>9.2} {:>7} {to_always:>9.2}{missed}",
            format!("≥ {aim:.1}")
        );
    }
}

/// Requests per second of one run of `redis-benchmark`.
fn measure(port: u16, pipeline: u32, requests: u32) -> f64 {
    let program = programs::find("redis-benchmark").expect("redis-benchmark; run `cargo xtask test`");
    let output = Command::new(program)
        .args(["-p", &port.to_string(), "-t", "incr", "-r", KEYS, "-c", CLIENTS, "--csv"])
        .args(["-P", &pipeline.to_string(), "-n", &requests.to_string()])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let row = text.lines().find(|line| line.starts_with("\"INCR\"")).unwrap_or_else(|| panic!("{text}"));
    row.split(',').nth(1).unwrap().trim_matches('"').parse().unwrap()
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
