//! `cargo xtask bench resp`: times reading a command and writing an answer, beside a common parser. Samples of all rows
//! are interleaved and medians are printed, because machines are noisy.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use bates_server::resp::{Limits, Progress, Protocol, Reader, Reply};
use bytes::Bytes;
use resp_rs::resp2;

const SAMPLES: usize = 31;
const SAMPLE_NS: f64 = 3_000_000.0;
/// The command that `redis-benchmark -t incr` sends.
const INCR: &[u8] = b"*2\r\n$4\r\nINCR\r\n$16\r\nkey:__rand_int__\r\n";

/// One measured operation: a closure that runs it `n` times, each with `depth` commands or answers.
struct Row {
    name: String,
    aim: Option<f64>,
    run: Box<dyn FnMut(u64)>,
    depth: usize,
    samples: Vec<f64>,
}

impl Row {
    fn new(name: String, depth: usize, run: impl FnMut(u64) + 'static) -> Self {
        Self { name, aim: None, run: Box::new(run), depth, samples: Vec::new() }
    }

    fn aim(mut self, at_most_ns: f64) -> Self {
        self.aim = Some(at_most_ns);
        self
    }

    fn time(&mut self, n: u64) -> f64 {
        let started = Instant::now();
        (self.run)(n);
        started.elapsed().as_nanos() as f64 / n as f64
    }

    /// Nanoseconds per command or answer.
    fn median(&mut self) -> f64 {
        self.samples.sort_by(f64::total_cmp);
        self.samples[self.samples.len() / 2] / self.depth as f64
    }
}

fn main() {
    let mut rows = rows();
    let counts: Vec<u64> =
        rows.iter_mut().map(|row| (SAMPLE_NS / row.time(2_000).max(0.5)) as u64 + 1).collect();
    for _ in 0..SAMPLES {
        for (row, count) in rows.iter_mut().zip(&counts) {
            let sample = row.time(*count);
            row.samples.push(sample);
        }
    }
    println!("{:<44} {:>9}  {:>9}", "", "ns", "aim");
    let mut ours = 0.0;
    for row in &mut rows {
        let ns = row.median();
        // A line for `cargo xtask bench`. The row of the peer follows ours.
        if row.name == "peer: resp-rs, pipeline 16" && std::env::var_os("BENCH_COMPARISONS").is_some() {
            println!("comparison\treading a command, pipeline 16\tresp-rs\t{:.2}\t\t", ns / ours);
        }
        ours = ns;
        let aim = row.aim.map_or(String::new(), |aim| format!("≤ {aim:.0}"));
        let missed = if row.aim.is_some_and(|aim| ns > aim) { "  missed" } else { "" };
        println!("{:<44} {ns:>9.1}  {aim:>9}{missed}", row.name);
    }
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for depth in [1, 16, 64] {
        rows.push(read("read INCR key", INCR, depth).aim(40.0));
        rows.push(peer_read(depth));
        rows.push(integer(depth));
        rows.push(bulk(depth));
    }
    rows.push(read("read INCR key, typed by hand", b"INCR key:__rand_int__\r\n", 16));
    rows.push(byte_by_byte());
    rows
}

fn read(name: &str, command: &[u8], depth: usize) -> Row {
    let pipeline = command.repeat(depth);
    let mut reader = Reader::new(Limits::AUTHENTICATED);
    Row::new(format!("{name}, pipeline {depth}"), depth, move |n| {
        for _ in 0..n {
            let mut rest = black_box(&pipeline[..]);
            while let Progress::Command(command) = reader.read(rest).unwrap() {
                // Like the server, look at the name and the key.
                black_box((command.name(), command.arg(1)));
                rest = &rest[command.consumed()..];
            }
        }
    })
}

fn peer_read(depth: usize) -> Row {
    let pipeline = Bytes::from(INCR.repeat(depth));
    Row::new(format!("peer: resp-rs, pipeline {depth}"), depth, move |n| {
        for _ in 0..n {
            let mut rest = black_box(&pipeline).clone();
            while let Ok((frame, remaining)) = resp2::parse_frame(rest) {
                black_box(&frame);
                rest = remaining;
            }
        }
    })
}

fn integer(depth: usize) -> Row {
    let (mut out, mut next) = (Vec::with_capacity(4096), 1_001);
    Row::new(format!("answer :1001, pipeline {depth}"), depth, move |n| {
        for _ in 0..n {
            out.clear();
            let mut reply = Reply::new(&mut out, Protocol::Resp2);
            for _ in 0..depth {
                reply.integer(black_box(next));
                next = (next + 1) % 1_000_000;
            }
            black_box(&out);
        }
    })
}

fn bulk(depth: usize) -> Row {
    let mut out = Vec::with_capacity(4096);
    Row::new(format!("answer $14 PROJ-9012-1001, pipeline {depth}"), depth, move |n| {
        for _ in 0..n {
            out.clear();
            let mut reply = Reply::new(&mut out, Protocol::Resp2);
            for _ in 0..depth {
                reply.bulk(black_box(b"PROJ-9012-1001"));
            }
            black_box(&out);
        }
    })
}

/// The worst case for the reader: one call per byte.
fn byte_by_byte() -> Row {
    let mut reader = Reader::new(Limits::AUTHENTICATED);
    let name = format!("read INCR key, arriving in {} pieces", INCR.len());
    Row::new(name, 1, move |n| {
        for _ in 0..n {
            for end in 1..=INCR.len() {
                black_box(reader.read(black_box(&INCR[..end])).unwrap());
            }
        }
    })
}
