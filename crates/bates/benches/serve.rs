//! The Redis protocol beside Redis, by `redis-benchmark` with 50 clients. The servers take turns; rates and processor time
//! per request are medians. The peer is Redis without persistence; for new keys it is Redis that syncs every write, because
//! each new scope is a durable row. `redis-benchmark` takes a core of its own and hides much of a faster server.

use std::process::{Command, Stdio};

use bates_testkit::{PrivateRedis, programs};

use super::Arguments;
use super::comparison::{Aim, Comparison, grouped, medians};
use super::server::{Server, processor_time, settle};

/// The list to pop from; the built-in series has the same key.
const LIST: &str = "short";
/// Some hundred requests for each of 100,000 keys. Their ranges then are large, as those of busy keys are.
const WARM_UP: u32 = 30_000_000;
const WARM_UP_SHORT: u32 = 10_000_000;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    WarmKeys,
    NewKeys,
    Pops,
}

struct Work {
    name: &'static str,
    kind: Kind,
    command: &'static [&'static str],
    /// How many numbers one request takes.
    count: u32,
    pipeline: u32,
    requests: u32,
    aim: f64,
    /// The processor time of a request, as a multiple of Redis'.
    aim_time: Option<f64>,
}

const INCR: &[&str] = &["INCR", "counter:__rand_int__"];

const WORKS: [Work; 10] = [
    warm("INCR, 100,000 warm keys, pipeline 1", 1, 300_000, 1.0, None),
    warm("INCR, 100,000 warm keys, pipeline 16", 16, 2_000_000, 1.0, Some(0.8)),
    warm("INCR, 100,000 warm keys, pipeline 64", 64, 3_000_000, 1.0, Some(0.8)),
    new("INCR, 100,000 new keys, pipeline 1", 1, 1.0),
    new("INCR, 100,000 new keys, pipeline 16", 16, 0.8),
    new("INCR, 100,000 new keys, pipeline 64", 64, 0.8),
    pop("LPOP of a shuffled series, pipeline 1", &["LPOP", LIST], 1, 1, 300_000),
    pop("LPOP of a shuffled series, pipeline 16", &["LPOP", LIST], 1, 16, 2_000_000),
    pop("LPOP 100 of a shuffled series, pipeline 1", &["LPOP", LIST, "100"], 100, 1, 50_000),
    pop("LPOP 100 of a shuffled series, pipeline 16", &["LPOP", LIST, "100"], 100, 16, 50_000),
];

const fn warm(name: &'static str, pipeline: u32, requests: u32, aim: f64, aim_time: Option<f64>) -> Work {
    Work { name, kind: Kind::WarmKeys, command: INCR, count: 1, pipeline, requests, aim, aim_time }
}

const fn new(name: &'static str, pipeline: u32, aim: f64) -> Work {
    Work {
        name,
        kind: Kind::NewKeys,
        command: INCR,
        count: 1,
        pipeline,
        requests: 100_000,
        aim,
        aim_time: None,
    }
}

const fn pop(
    name: &'static str,
    command: &'static [&'static str],
    count: u32,
    pipeline: u32,
    requests: u32,
) -> Work {
    Work { name, kind: Kind::Pops, command, count, pipeline, requests, aim: 1.0, aim_time: None }
}

impl Work {
    /// Random keys are drawn from this many; hardly one is drawn twice if new keys are wanted.
    fn keys(&self) -> &'static str {
        if self.kind == Kind::NewKeys { "1000000000" } else { "100000" }
    }

    fn peer_name(&self) -> &'static str {
        if self.kind == Kind::NewKeys { "Redis, appendfsync always" } else { "Redis, no persistence" }
    }
}

pub(crate) fn run(arguments: &Arguments) {
    let rounds = if arguments.is_short() { 3 } else { 7 };
    let only = arguments.value_of("--only").unwrap_or_default();
    println!("The Redis protocol, 50 clients, medians of {rounds} rounds");
    for kind in [Kind::WarmKeys, Kind::NewKeys, Kind::Pops] {
        let works: Vec<&Work> =
            WORKS.iter().filter(|work| work.kind == kind && work.name.contains(only)).collect();
        if !works.is_empty() {
            compare_all(kind, &works, rounds, arguments.is_short());
        }
    }
}

/// With servers of their own, so that no kind of work meets the scopes of another.
fn compare_all(kind: Kind, works: &[&Work], rounds: usize, is_short: bool) {
    let settings: &[&str] =
        if kind == Kind::NewKeys { &["--appendonly", "yes", "--appendfsync", "always"] } else { &[] };
    let (redis, bates) = (PrivateRedis::start_with(settings).unwrap(), Server::start());
    if kind == Kind::WarmKeys {
        let requests = if is_short { WARM_UP_SHORT } else { WARM_UP };
        benchmark(redis.port(), "100000", 64, requests / 10, INCR);
        benchmark(bates.resp, "100000", 64, requests, INCR);
    }
    for work in works {
        compare(work, &redis, &bates, rounds);
    }
}

fn compare(work: &Work, redis: &PrivateRedis, bates: &Server, rounds: usize) {
    let round = || {
        if work.kind == Kind::Pops {
            fill(redis.port(), work.requests * work.count);
        }
        let [theirs, their_time] = measure(work, redis.port(), redis.pid());
        let [ours, our_time] = measure(work, bates.resp, bates.pid());
        [ours / theirs, our_time / their_time, ours, theirs, our_time, their_time]
    };
    round();
    let [ratio, ratio_of_time, ours, theirs, our_time, their_time] = medians(rounds, round);
    let [ours, theirs, our_time, their_time] = [ours, theirs, our_time, their_time].map(grouped);
    let rates = format!("{ours} beside {theirs} requests/s");
    let times = format!("{our_time} beside {their_time} ns");
    let (name, peer) = (work.name, work.peer_name());
    let detail = if work.aim_time.is_some() { rates } else { format!("{rates}, {times}") };
    Comparison { work: name, peer, result: ratio, unit: "", aim: Aim::AtLeast(work.aim), detail }.print();
    if let Some(aim) = work.aim_time {
        let name = format!("{name}, processor time");
        Comparison {
            work: &name,
            peer,
            result: ratio_of_time,
            unit: "",
            aim: Aim::AtMost(aim),
            detail: times,
        }
        .print();
    }
}

/// Requests per second, and nanoseconds of processor time per request.
fn measure(work: &Work, port: u16, pid: u32) -> [f64; 2] {
    let before = processor_time(pid);
    let rate = benchmark(port, work.keys(), work.pipeline, work.requests, work.command);
    // What a server does later belongs to its own turn.
    settle(pid);
    let used = processor_time(pid).saturating_sub(before);
    [rate, used.as_nanos() as f64 / f64::from(work.requests)]
}

/// Requests per second of one run of `redis-benchmark`.
fn benchmark(port: u16, keys: &str, pipeline: u32, requests: u32, command: &[&str]) -> f64 {
    let output = redis_benchmark(port, pipeline, requests)
        .args(["-r", keys, "-c", "50", "--csv"])
        .args(command)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let row = text.lines().rfind(|line| line.starts_with('"')).unwrap_or_else(|| panic!("{text}"));
    // The command comes first, and may hold commas itself.
    row.split("\",\"").nth(1).unwrap().parse().unwrap()
}

fn redis_benchmark(port: u16, pipeline: u32, requests: u32) -> Command {
    let mut command = Command::new(programs::find("redis-benchmark").expect("redis-benchmark"));
    command.args(["-p", &port.to_string(), "-P", &pipeline.to_string(), "-n", &requests.to_string()]);
    command
}

/// Makes a list of values as long as the numbers of the series.
fn fill(port: u16, count: u32) {
    let values = (0..1_000).map(|at| format!("{at:06}"));
    let status = redis_benchmark(port, 16, count.div_ceil(1_000))
        .args(["-q", "RPUSH", LIST])
        .args(values)
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
}
