//! `cargo xtask bench postgres`: three nodes on one PostgreSQL, compared with numbering by hand on the same server:
//! `nextval`, and `UPDATE … RETURNING` of one row, by pgbench. In one run, taking turns.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bates_testkit::{PrivatePostgres, programs};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const NODES: usize = 3;
const ROUNDS: usize = 3;
const SECONDS: u64 = 4;

struct Node {
    child: Child,
    port: u16,
}

impl Node {
    fn start(store: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bates"))
            .args(["serve", "--new", "--http", "off", "--resp", "127.0.0.1:0"])
            .env("BATES_STORE", store)
            .env("BATES_SERIES__INVOICE__PATTERN", "'{seq}'")
            .env("BATES_SERIES__INVOICE__PROMISE", "gapless")
            .env("BATES_SERIES__INVOICE__KEY", "invoice")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let line = lines.find(|line| line.contains("Redis protocol")).unwrap();
        let port = line.rsplit_once(':').unwrap().1.parse().unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A measurement of the nodes and the one it is compared with.
struct Row {
    name: &'static str,
    command: &'static [&'static str],
    /// Numbers in one answer.
    numbers: u64,
    connections: usize,
    peer: Peer,
    aim: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Peer {
    Nextval,
    Update,
}

const ROWS: [Row; 4] = [
    Row {
        name: "unique, LPOP key 100",
        command: &["LPOP", "short", "100"],
        numbers: 100,
        connections: 16,
        peer: Peer::Nextval,
        aim: 20.0,
    },
    Row {
        name: "unique, LPOP key",
        command: &["LPOP", "short"],
        numbers: 1,
        connections: 16,
        peer: Peer::Nextval,
        aim: 1.0,
    },
    Row {
        name: "ordered, one hot scope, INCR",
        command: &["INCR", "counter:hot"],
        numbers: 1,
        connections: 64,
        peer: Peer::Update,
        aim: 5.0,
    },
    Row {
        name: "gapless, one scope, INCR",
        command: &["INCR", "invoice"],
        numbers: 1,
        connections: 64,
        peer: Peer::Update,
        aim: 5.0,
    },
];

fn main() {
    let server = PrivatePostgres::start().unwrap();
    let folder = TempDir::new().unwrap();
    psql(
        &server,
        "CREATE SEQUENCE numbers; CREATE TABLE hot (id int PRIMARY KEY, next bigint); INSERT INTO hot VALUES (1, 1)",
    );
    let nodes: Vec<Node> = (0..NODES).map(|_| Node::start(&server.url())).collect();
    let ports: Vec<u16> = nodes.iter().map(|node| node.port).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!(
        "numbers per second, {NODES} nodes on one PostgreSQL, medians of {ROUNDS} rounds of {SECONDS} s, taking turns"
    );
    println!("  {:<30} {:>11} {:>11}  {:<28} {:>7} {:>7}", "", "Bates", "pgbench", "", "ratio", "aim");
    for row in ROWS {
        let measured: Vec<(f64, f64)> = (0..ROUNDS)
            .map(|_| {
                (
                    runtime.block_on(measure(&ports, &row)),
                    pgbench(&server, &folder, row.peer, row.connections),
                )
            })
            .collect();
        let ours = median(measured.iter().map(|(ours, _)| *ours).collect());
        let theirs = median(measured.iter().map(|(_, theirs)| *theirs).collect());
        let (ratio, peer) =
            (ours / theirs, if row.peer == Peer::Nextval { "nextval" } else { "UPDATE … RETURNING" });
        let comparison = format!("{peer}, {} clients", row.connections);
        let missed = if ratio < row.aim { "  missed" } else { "" };
        println!(
            "  {:<30} {ours:>11.0} {theirs:>11.0}  {comparison:<28} {ratio:>7.1} {:>7}{missed}",
            row.name,
            format!("≥ {}", row.aim)
        );
    }
}

/// Numbers per second of all connections together. Each waits for its answer before the next request.
async fn measure(ports: &[u16], row: &Row) -> f64 {
    let mut request = format!("*{}\r\n", row.command.len());
    for argument in row.command {
        request.extend([&format!("${}\r\n", argument.len()), *argument, "\r\n"]);
    }
    let (request, answers) = (Arc::<str>::from(request), Arc::new(AtomicU64::new(0)));
    // Lines of an answer: one for an integer, two for a text, and one more for the length of a list.
    let lines = match (row.command[0], row.numbers) {
        ("INCR", _) => 1,
        (_, 1) => 2,
        (_, numbers) => 1 + 2 * usize::try_from(numbers).unwrap(),
    };
    let started = Instant::now();
    let clients: Vec<_> = (0..row.connections)
        .map(|client| {
            let (port, request, answers) = (ports[client % ports.len()], request.clone(), answers.clone());
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                stream.set_nodelay(true).unwrap();
                let mut buffer = vec![0; 64 * 1024];
                while started.elapsed() < Duration::from_secs(SECONDS) {
                    stream.write_all(request.as_bytes()).await.unwrap();
                    let mut seen = 0;
                    while seen < lines {
                        let read = stream.read(&mut buffer).await.unwrap();
                        assert!(
                            read > 0 && buffer[0] != b'-',
                            "{}",
                            String::from_utf8_lossy(&buffer[..read])
                        );
                        seen += buffer[..read].split(|byte| *byte == b'\n').count() - 1;
                    }
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let numbers = (answers.load(Ordering::Relaxed) * row.numbers) as f64;
    numbers / started.elapsed().as_secs_f64()
}

fn pgbench(server: &PrivatePostgres, folder: &TempDir, peer: Peer, clients: usize) -> f64 {
    let sql = match peer {
        Peer::Nextval => "SELECT nextval('numbers');\n",
        Peer::Update => "UPDATE hot SET next = next + 1 WHERE id = 1 RETURNING next;\n",
    };
    let file = folder.path().join("script.sql");
    std::fs::write(&file, sql).unwrap();
    let program = programs::find("pgbench").expect("pgbench, which comes with the PostgreSQL server");
    let output = Command::new(program)
        .args(["--no-vacuum", "--file"])
        .arg(&file)
        .args(["--client", &clients.to_string(), "--jobs", "2", "--time", &SECONDS.to_string()])
        .arg(server.url())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let tps = stdout.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    tps.unwrap_or_else(|| panic!("{stdout}{}", String::from_utf8_lossy(&output.stderr)))
}

fn psql(server: &PrivatePostgres, sql: &str) {
    let program = programs::find("psql").expect("psql; run `cargo xtask test`, which installs it");
    assert!(
        Command::new(program).args(["--quiet", "--command", sql, &server.url()]).status().unwrap().success()
    );
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
