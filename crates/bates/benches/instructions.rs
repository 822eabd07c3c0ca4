//! Processor instructions of the server per request, counted by Valgrind's callgrind. Counts hardly depend on the load of the
//! machine, so they compare two builds where rates are too noisy: `--against PATH` names the binary of the other build,
//! `--repeat N` the rounds, `--only NAME` the work.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use bates_testkit::{PrivatePostgres, programs};
use tempfile::TempDir;

use super::Arguments;
use super::comparison::median;
use super::server::Server;

/// The store of the server.
#[derive(Clone, Copy, PartialEq)]
enum Store {
    Sqlite,
    Postgres,
}

struct Workload {
    name: &'static str,
    store: Store,
    /// Uses HTTP instead of the Redis protocol.
    is_http: bool,
    /// The n-th request.
    request: fn(u32) -> String,
    /// Requests sent before their answers are read.
    pipeline: u32,
    /// Rounds of a short run; a long one has three times as many. The difference excludes start and stop.
    rounds: u32,
}

const WORKLOADS: [Workload; 9] = [
    Workload {
        name: "INCR, 1,000 keys, pipeline 64",
        store: Store::Sqlite,
        is_http: false,
        request: |n| format!("INCR seq:{}\r\n", n % 1_000),
        pipeline: 64,
        rounds: 2_000,
    },
    Workload {
        name: "INCR, 1,000 keys, pipeline 1",
        store: Store::Sqlite,
        is_http: false,
        request: |n| format!("INCR seq:{}\r\n", n % 1_000),
        pipeline: 1,
        rounds: 10_000,
    },
    Workload {
        name: "INCR, new keys, pipeline 64",
        store: Store::Sqlite,
        is_http: false,
        request: |n| format!("INCR seq:{n}\r\n"),
        pipeline: 64,
        rounds: 50,
    },
    Workload {
        name: "LPOP of 100 shuffled keys",
        store: Store::Sqlite,
        is_http: false,
        request: |_| "LPOP short 100\r\n".to_owned(),
        pipeline: 1,
        rounds: 500,
    },
    Workload {
        name: "HTTP, one number",
        store: Store::Sqlite,
        is_http: true,
        request: |n| post(&format!("/v1/series/conversation/next?conversation={}", n % 1_000), ""),
        pipeline: 1,
        rounds: 4_000,
    },
    Workload {
        name: "HTTP, a document",
        store: Store::Sqlite,
        is_http: true,
        request: document,
        pipeline: 1,
        rounds: 300,
    },
    Workload {
        name: "PostgreSQL, LPOP of a shuffled key",
        store: Store::Postgres,
        is_http: false,
        request: |_| "LPOP short\r\n".to_owned(),
        pipeline: 1,
        rounds: 4_000,
    },
    Workload {
        name: "PostgreSQL, INCR of new keys, pipeline 64",
        store: Store::Postgres,
        is_http: false,
        request: |n| format!("INCR seq:{n}\r\n"),
        pipeline: 64,
        rounds: 20,
    },
    Workload {
        name: "PostgreSQL, a document",
        store: Store::Postgres,
        is_http: true,
        request: document,
        pipeline: 1,
        rounds: 200,
    },
];

fn document(n: u32) -> String {
    post(
        "/v1/series/document/documents",
        &format!(r#"{{"scope":{{"project":"PROJ","type":"9012"}},"document":{{"title":"Plan {n}"}}}}"#),
    )
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

pub(crate) fn run(arguments: &Arguments) {
    let ours = Path::new(env!("CARGO_BIN_EXE_bates"));
    let other = arguments.value_of("--against").map(Path::new);
    let repeat = arguments.value_of("--repeat").map_or(3, |count| count.parse().expect("a number of rounds"));
    let only = arguments.value_of("--only").unwrap_or_default();
    println!("instructions of the server per request, medians of {repeat}");
    println!("  {:<42} {:>12} {:>12} {:>7}", "", "this build", "the other", "ratio");
    for workload in WORKLOADS.iter().filter(|workload| workload.name.contains(only)) {
        let (mut this, mut that) = (Vec::new(), Vec::new());
        for _ in 0..repeat {
            this.push(per_request(ours, workload));
            that.extend(other.map(|other| per_request(other, workload)));
        }
        let this = median(this);
        print!("  {:<42} {this:>12.0}", workload.name);
        if !that.is_empty() {
            let that = median(that);
            print!(" {that:>12.0} {:>7.3}", this / that);
        }
        println!();
    }
}

fn per_request(binary: &Path, workload: &Workload) -> f64 {
    let [short, long] = [1, 3].map(|times| instructions(binary, workload, workload.rounds * times));
    (long - short) / f64::from(2 * workload.rounds * workload.pipeline)
}

/// All instructions of a server that answers `rounds` rounds of requests.
fn instructions(binary: &Path, workload: &Workload, rounds: u32) -> f64 {
    let folder = TempDir::new().unwrap();
    let database = (workload.store == Store::Postgres).then(|| PrivatePostgres::start().unwrap());
    let counts = folder.path().join("counts");
    let mut command = Command::new(programs::find("valgrind").expect("valgrind, to count instructions"));
    command
        .args(["--tool=callgrind", "--quiet", "--fair-sched=yes"])
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(binary)
        .args(["serve", "--new", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"])
        .arg("--config")
        .arg(configuration(folder.path()))
        .current_dir(folder.path());
    match &database {
        Some(database) => command.env("BATES_STORE", database.url()),
        None => command.arg("--data").arg(folder.path().join("data")),
    };
    let server = Server::from(&mut command);
    let port = if workload.is_http { server.http } else { server.resp };
    send_rounds(port, workload, rounds);
    server.stop();
    let counts = std::fs::read_to_string(&counts).unwrap();
    let total = counts.lines().find_map(|line| line.strip_prefix("totals: ")).unwrap();
    total.trim().parse().unwrap()
}

fn configuration(folder: &Path) -> PathBuf {
    let (file, documents) = (folder.join("bates.yaml"), folder.join("documents"));
    std::fs::create_dir(&documents).unwrap();
    let sink = format!("{{ object: {{ url: \"file://{}\" }} }}", documents.display());
    let series = format!(
        r#"series:
  document: {{ pattern: "{{project}}-{{type}}-{{seq}}", start: 1001, sink: {sink} }}
  short: {{ pattern: "{{seq:base62:6}}", order: shuffled, key: short }}
  conversation: {{ pattern: "{{seq}}", promise: ordered, key: "seq:{{conversation}}" }}
"#
    );
    std::fs::write(&file, series).unwrap();
    file
}

fn send_rounds(port: u16, workload: &Workload, rounds: u32) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    for round in 0..rounds {
        let first = round * workload.pipeline;
        let requests: String = (first..first + workload.pipeline).map(workload.request).collect();
        stream.write_all(requests.as_bytes()).unwrap();
        for _ in 0..workload.pipeline {
            if workload.is_http { read_http(&mut answers) } else { read_resp(&mut answers) }
        }
    }
}

fn read_line(answers: &mut impl BufRead) -> String {
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn read_resp(answers: &mut impl BufRead) {
    let line = read_line(answers);
    let (kind, rest) = line.split_at(1);
    match kind {
        ":" => {}
        "$" => drop(read_line(answers)),
        "*" => (0..rest.parse::<u32>().unwrap()).for_each(|_| read_resp(answers)),
        _ => panic!("unexpected answer: {line}"),
    }
}

fn read_http(answers: &mut impl BufRead) {
    let status = read_line(answers);
    assert!(status.starts_with("HTTP/1.1 2"), "unexpected answer: {status}");
    let mut length = 0;
    loop {
        let line = read_line(answers).to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        length = line.strip_prefix("content-length: ").map_or(length, |value| value.parse().unwrap());
    }
    std::io::copy(&mut answers.take(length), &mut std::io::sink()).unwrap();
}
