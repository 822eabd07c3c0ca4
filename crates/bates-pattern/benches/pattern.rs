//! `cargo xtask bench pattern`: times a render, a parse and an accepted identifier beside common alternatives.
//! Samples of all rows are interleaved and medians are printed, because machines are noisy.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::io::Write;
use std::process::Command;
use std::time::Instant;

use aes::Aes128;
use bates_pattern::{Date, Key, Options, Order, Pattern, Position, Reject, Reset, Scope};
use fpe::ff1::{FF1, FlexibleNumeralString};

const SAMPLES: usize = 31;
const SAMPLE_NS: f64 = 3_000_000.0;
const SECRET: [u8; 16] = *b"a key of 16 byte";

/// One measured operation: a closure that runs it `n` times.
struct Row {
    name: &'static str,
    aim: Option<f64>,
    run: Box<dyn FnMut(u64)>,
    samples: Vec<f64>,
}

impl Row {
    fn new(name: &'static str, run: impl FnMut(u64) + 'static) -> Self {
        Self { name, aim: None, run: Box::new(run), samples: Vec::new() }
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

    fn median(&mut self) -> f64 {
        self.samples.sort_by(f64::total_cmp);
        self.samples[self.samples.len() / 2]
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
    let medians: Vec<(&str, f64)> = rows.iter_mut().map(|row| (row.name, row.median())).collect();
    for (row, (name, ns)) in rows.iter().zip(&medians) {
        let aim = row.aim.map_or(String::new(), |aim| format!("≤ {aim:.0}"));
        let missed = if row.aim.is_some_and(|aim| *ns > aim) { "  missed" } else { "" };
        println!("{name:<44} {ns:>9.1}  {aim:>9}{missed}");
    }
    print_ratios(&medians);
    print_accepted(&medians);
}

fn median_of(medians: &[(&str, f64)], name: &str) -> f64 {
    medians.iter().find(|(known, _)| *known == name).expect("the row is measured").1
}

fn print_ratios(medians: &[(&str, f64)]) {
    println!("\n{:<44} {:>9}", "times the peer's speed, in this run", "ratio");
    let pairs = [
        ("render {seq}", "peer: itoa into a Vec"),
        ("render {project}-{type}-{seq}", "peer: write!(\"{}-{}-{}\")"),
        ("render {seq:base62:6} shuffled", "peer: fpe crate, FF1 radix 62"),
    ];
    for (ours, peer) in pairs {
        let ratio = median_of(medians, peer) / median_of(medians, ours);
        println!("{ours:<44} {ratio:>9.2}  ({peer})");
        print_comparison(ours, peer, ratio);
    }
}

/// A line for `cargo xtask bench`.
fn print_comparison(work: &str, peer: &str, ratio: f64) {
    if std::env::var_os("BENCH_COMPARISONS").is_some() {
        println!("comparison\tpattern, {work}\t{}\t{ratio:.2}\t\t", peer.trim_start_matches("peer: "));
    }
}

fn print_accepted(medians: &[(&str, f64)]) {
    println!("\n{:<44} {:>9}  {:>9}", "accepted OpenG2P identifiers, one core", "per s", "aim");
    for name in ["accepted 12 digits, openg2p, shuffled", "accepted 16 digits, openg2p, shuffled"] {
        let aim = if name.contains("12") { "≥ 50000" } else { "" };
        println!("{name:<44} {:>9.0}  {aim:>9}", 1e9 / median_of(medians, name));
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/random_and_filter.py");
    let peer = Command::new("python3").args([script, "12", "3"]).output();
    let rate: Option<f64> =
        peer.ok().and_then(|out| String::from_utf8_lossy(&out.stdout).trim().parse().ok());
    match rate {
        Some(rate) => {
            let ours = "accepted 12 digits, openg2p, shuffled";
            let (peer, ratio) = ("peer: random and filter in Python", 1e9 / median_of(medians, ours) / rate);
            println!("{peer:<44} {rate:>9.0}  ratio {ratio:.0}");
            print_comparison(ours, peer, ratio);
        }
        None => println!("peer: random and filter in Python: not run, python3 is missing"),
    }
}

fn rows() -> Vec<Row> {
    let document: [(&str, &str); 2] = [("project", "PROJ"), ("type", "9012")];
    let shuffled = || Options { order: Order::Shuffled(Key::new(&SECRET).unwrap()), ..Options::default() };
    let scope = |template: &str, options: Options, parameters: &[(&str, &str)]| {
        let pattern = Pattern::compile(template, options).unwrap();
        pattern.scope(parameters.iter().copied(), Some(Date::constant(2026, 11, 15))).unwrap()
    };
    let plain = scope("{seq}", Options::default(), &[]);
    let project = scope("{project}-{type}-{seq}", Options::default(), &document);
    let short = scope("{seq:base62:6}", Options::default(), &[]);
    let hidden = scope("{seq:base62:6}", shuffled(), &[]);
    let invoice = scope("INV-{period}-{seq:6}", Options { reset: Reset::Yearly, ..Options::default() }, &[]);
    let checked = scope("{seq:11}{check:verhoeff}", Options::default(), &[]);
    vec![
        render("render {seq}", &plain).aim(40.0),
        render("render {project}-{type}-{seq}", &project).aim(40.0),
        render("render {seq:base62:6}", &short).aim(40.0),
        render("render INV-{period}-{seq:6}", &invoice).aim(40.0),
        render("render {seq:11}{check:verhoeff}", &checked),
        render("render {seq:base62:6} shuffled", &hidden).aim(1_000.0),
        batch("render {seq:base62:6} shuffled, in a walk", hidden.clone()),
        parse("parse {seq}", &plain),
        parse("parse {project}-{type}-{seq}", &project),
        parse("parse {seq:base62:6}", &short),
        parse("parse {seq:base62:6} shuffled", &hidden),
        parse("parse INV-{period}-{seq:6}", &invoice),
        parse("parse {seq:11}{check:verhoeff}", &checked),
        batch(
            "accepted 12 digits, openg2p, shuffled",
            scope("{seq:11}{check:verhoeff}", openg2p(shuffled()), &[]),
        ),
        batch(
            "accepted 16 digits, openg2p, shuffled",
            scope("{seq:15}{check:verhoeff}", openg2p(shuffled()), &[]),
        ),
        itoa_peer(),
        write_peer(),
        fpe_peer(),
    ]
}

fn openg2p(options: Options) -> Options {
    Options { reject: Reject::default().with_digits("openg2p".parse().unwrap()), ..options }
}

fn render(name: &'static str, scope: &Scope) -> Row {
    let scope = scope.clone();
    let mut out = Vec::with_capacity(64);
    let mut next = 1_001;
    Row::new(name, move |n| {
        for _ in 0..n {
            out.clear();
            scope.render(Position::new(black_box(next)).unwrap(), &mut out).unwrap();
            black_box(&out);
            next = (next + 1) % 1_000_000;
        }
    })
}

/// Renders one accepted number after the other, as a granted range is issued.
fn batch(name: &'static str, scope: Scope) -> Row {
    let mut next = Position::MIN;
    let mut out = Vec::with_capacity(64);
    Row::new(name, move |n| {
        let mut walk = scope.accepted(next, Position::MAX);
        for _ in 0..n {
            out.clear();
            next = walk.next_into(&mut out).unwrap();
            black_box(&out);
        }
    })
}

fn parse(name: &'static str, scope: &Scope) -> Row {
    let pattern = scope.pattern().clone();
    let texts: Vec<String> = (1..1_000).map(|n| scope.number(Position::new(n).unwrap()).unwrap()).collect();
    let mut next = 0;
    Row::new(name, move |n| {
        for _ in 0..n {
            black_box(pattern.parse(black_box(&texts[next])).unwrap().position());
            next = (next + 1) % texts.len();
        }
    })
}

fn itoa_peer() -> Row {
    let mut out = Vec::with_capacity(64);
    let mut next = 1_001_u64;
    Row::new("peer: itoa into a Vec", move |n| {
        for _ in 0..n {
            out.clear();
            out.extend_from_slice(itoa::Buffer::new().format(black_box(next)).as_bytes());
            black_box(&out);
            next = (next + 1) % 1_000_000;
        }
    })
}

fn write_peer() -> Row {
    let mut out = Vec::with_capacity(64);
    let mut next = 1_001_u64;
    Row::new("peer: write!(\"{}-{}-{}\")", move |n| {
        for _ in 0..n {
            out.clear();
            write!(out, "{}-{}-{}", black_box("PROJ"), black_box("9012"), black_box(next)).unwrap();
            black_box(&out);
            next = (next + 1) % 1_000_000;
        }
    })
}

fn fpe_peer() -> Row {
    let ff1 = FF1::<Aes128>::new(&SECRET, 62).unwrap();
    let mut next = 1_001_u64;
    Row::new("peer: fpe crate, FF1 radix 62", move |n| {
        for _ in 0..n {
            let mut value = black_box(next);
            let mut numerals = vec![0_u16; 6];
            for numeral in numerals.iter_mut().rev() {
                *numeral = (value % 62) as u16;
                value /= 62;
            }
            black_box(Vec::from(ff1.encrypt(&[], &FlexibleNumeralString::from(numerals)).unwrap()));
            next = (next + 1) % 1_000_000;
        }
    })
}
