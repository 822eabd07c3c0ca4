//! `cargo xtask bench serve`: INCR on 100,000 keys with 50 clients, by `redis-benchmark`, against Redis without
//! persistence, Redis that syncs every write, and Bates with its durable default, alternating in one run. A server that
//! only answers a constant shows the limit of `redis-benchmark` on this machine.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use bates_testkit::{PrivateRedis, programs};
use tempfile::TempDir;
use tokio::net::TcpStream;

const KEYS: &str = "100000";
const CLIENTS: &str = "50";
const ROUNDS: usize = 5;

/// Pipeline depth, requests of each run, and requests for the slow server.
const PIPELINES: [(u32, u32, u32); 3] =
    [(1, 300_000, 60_000), (16, 2_000_000, 400_000), (64, 3_000_000, 600_000)];

/// Some hundred requests per key. Its range then has thousands of numbers, as that of a busy key does.
const WARM_UP: u32 = 30_000_000;

/// The rate to reach, as a multiple of Redis without persistence; and of Redis that syncs, at pipeline 1.
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
            .args(["serve", "--http", "off", "--resp", "127.0.0.1:0", "--data"])
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

/// Starts a server that answers a constant, on one thread of this process. No server can be measured to be faster, so it
/// shows the limit of `redis-benchmark` on this machine.
fn start_constant() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer_constant(stream));
            }
        });
    });
    port
}

async fn answer_constant(stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut input = vec![0; 16 * 1024];
    let answers = b":1\r\n".repeat(1024);
    while stream.readable().await.is_ok() {
        match stream.try_read(&mut input) {
            Ok(0) => return,
            Ok(read) => {
                // A command has one asterisk, at its beginning.
                let commands = input[..read].split(|byte| *byte == b'*').count() - 1;
                let written = stream.try_write(&answers[..4 * commands]);
                assert!(written.is_err() || written.unwrap() == 4 * commands, "the answers are short");
            }
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
}

fn main() {
    let plain = PrivateRedis::start().unwrap();
    let synced = PrivateRedis::start_with(&["--appendonly", "yes", "--appendfsync", "always"]).unwrap();
    let bates = Bates::start();
    let ports = [start_constant(), plain.port(), synced.port(), bates.port];
    println!("first touch of {KEYS} new keys, pipeline 16, requests per second");
    for (name, port) in
        ["a constant", "Redis, no persistence", "Redis, appendfsync always", "Bates"].into_iter().zip(ports)
    {
        println!("  {name:<28} {:>9.0}", measure(port, 16, 400_000));
    }
    println!(
        "\nwarming up with {WARM_UP} requests at pipeline 64, in which the ranges of Bates grow, requests per second"
    );
    for (name, port) in [("Redis, no persistence", plain.port()), ("Bates", bates.port)] {
        println!("  {name:<28} {:>9.0}", measure(port, 64, WARM_UP));
    }
    println!("\nINCR, {CLIENTS} clients, {KEYS} random keys, medians of {ROUNDS}, requests per second");
    println!(
        "  {:<9} {:>10} {:>10} {:>10} {:>10} {:>12} {:>9} {:>7} {:>9} {:>10}",
        "pipeline",
        "constant",
        "Redis",
        "always",
        "Bates",
        "(warming up)",
        "to Redis",
        "aim",
        "to always",
        "possible"
    );
    for (pipeline, aim) in PIPELINES.into_iter().zip(AIMS) {
        compare(ports, pipeline, aim);
    }
}

/// Prints one row: a round to warm up, then rounds in which the servers take turns.
fn compare(ports: [u16; 4], (pipeline, requests, few): (u32, u32, u32), aim: f64) {
    let requests = [requests, requests, few, requests];
    let round = || std::array::from_fn::<f64, 4, _>(|at| measure(ports[at], pipeline, requests[at]));
    let [.., warming_up] = round();
    let rounds: Vec<[f64; 4]> = (0..ROUNDS).map(|_| round()).collect();
    let [constant, redis, always, ours] =
        std::array::from_fn(|at| median(rounds.iter().map(|round| round[at]).collect()));
    let (to_redis, to_always, possible) = (ours / redis, ours / always, constant / redis);
    let is_missed = to_redis < aim || pipeline == 1 && to_always < AIM_SYNCED;
    println!(
        "  {pipeline:<9} {constant:>10.0} {redis:>10.0} {always:>10.0} {ours:>10.0} {warming_up:>12.0} \
         {to_redis:>9.2} {:>7} {to_always:>9.2} {possible:>10.2}{}",
        format!("≥ {aim:.1}"),
        if is_missed { "  missed" } else { "" }
    );
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
