//! `cargo xtask bench openg2p`: one ID of ten digits per request, over the contract of the OpenG2P id-generator, from one
//! node and from three on PostgreSQL; compared with the id-generator's way in the same database: pgbench locks a row with
//! `FOR UPDATE SKIP LOCKED` and updates it. In one run, taking turns.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bates_testkit::{PrivatePostgres, programs};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 16;
const ROUNDS: usize = 5;
const SECONDS: u64 = 4;

/// The rate to reach, as a multiple of the rows' rate.
const AIM: f64 = 20.0;

/// Available rows, more than a run takes.
const ROWS: u64 = 300_000;

const REQUEST: &[u8] = b"POST /v1/idgenerator/test_perf_id/id HTTP/1.1\r\nHost: localhost\r\n\r\n";

struct Node {
    child: Child,
    port: u16,
}

impl Node {
    fn start(folder: &Path, store: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bates"))
            .args(["serve", "--new", "--http", "127.0.0.1:0", "--resp", "off", "--openg2p-config"])
            .arg(folder.join("default.yaml"))
            .env("BATES_STORE", store)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let line = lines.find(|line| line.contains("HTTP")).unwrap();
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

fn main() {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("default.yaml"),
        "id_generator:\n  id_types: { test_perf_id: {id_length: 10} }\n",
    )
    .unwrap();
    let server = PrivatePostgres::start().unwrap();
    psql(&server, &format!(
        "CREATE TABLE id_pool_bench (id_value VARCHAR(32) PRIMARY KEY, status VARCHAR(16) NOT NULL DEFAULT 'AVAILABLE',
             created_at TIMESTAMPTZ NOT NULL DEFAULT now(), issued_at TIMESTAMPTZ NULL);
         INSERT INTO id_pool_bench (id_value) SELECT (1000000000 + each::bigint * 7919)::text FROM generate_series(1, {ROWS}) AS each;
         CREATE INDEX ON id_pool_bench (status) WHERE status = 'AVAILABLE'"
    ));
    psql(&server, "VACUUM ANALYZE id_pool_bench");
    let nodes: Vec<Node> = (0..3).map(|_| Node::start(folder.path(), &server.url())).collect();
    let ports: Vec<u16> = nodes.iter().map(|node| node.port).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure(&ports, Duration::from_secs(1)));
    let round = || {
        let during = Duration::from_secs(SECONDS);
        let one = runtime.block_on(measure(&ports[..1], during));
        let three = runtime.block_on(measure(&ports, during));
        [one, three, skip_locked(&server, &folder)]
    };
    let rounds: Vec<[f64; 3]> = (0..ROUNDS).map(|_| round()).collect();
    let [one, three, rows] = std::array::from_fn(|at| median(rounds.iter().map(|round| round[at]).collect()));
    println!(
        "one ID of ten digits a request, {CONNECTIONS} connections, PostgreSQL, medians of {ROUNDS} rounds of {SECONDS} s, IDs per second"
    );
    println!("  {:<42} {rows:>9.0}", "FOR UPDATE SKIP LOCKED and UPDATE, pgbench");
    for (name, ours) in [("Bates, one node", one), ("Bates, three nodes", three)] {
        let ratio = ours / rows;
        let missed = if ratio < AIM { "  missed" } else { "" };
        println!("  {name:<42} {ours:>9.0}  {ratio:>6.1} times, aim ≥ {AIM}{missed}");
    }
}

/// IDs per second of all connections together. Each waits for its answer before the next request.
async fn measure(ports: &[u16], during: Duration) -> f64 {
    let started = Instant::now();
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|client| {
            let port = ports[client % ports.len()];
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                stream.set_nodelay(true).unwrap();
                let (mut answer, mut ids) = (vec![0; 4 * 1024], 0_u32);
                while started.elapsed() < during {
                    stream.write_all(REQUEST).await.unwrap();
                    let mut read = 0;
                    while !answer[..read].ends_with(b"\"errors\":[]}") {
                        let more = stream.read(&mut answer[read..]).await.unwrap();
                        read += more;
                        let is_refused = read >= 12 && !answer.starts_with(b"HTTP/1.1 200");
                        assert!(more > 0 && !is_refused, "{}", String::from_utf8_lossy(&answer[..read]));
                    }
                    ids += 1;
                }
                ids
            })
        })
        .collect();
    let mut ids = 0;
    for client in clients {
        ids += client.await.unwrap();
    }
    f64::from(ids) / started.elapsed().as_secs_f64()
}

/// IDs per second by the statements that the id-generator runs for each ID.
fn skip_locked(server: &PrivatePostgres, folder: &TempDir) -> f64 {
    let sql = "BEGIN;\n\
        SELECT id_value FROM id_pool_bench WHERE status = 'AVAILABLE' LIMIT 1 FOR UPDATE SKIP LOCKED \\gset\n\
        UPDATE id_pool_bench SET status = 'TAKEN', issued_at = now() WHERE id_value = ':id_value';\n\
        COMMIT;\n";
    let file = folder.path().join("take.sql");
    fs::write(&file, sql).unwrap();
    let program = programs::find("pgbench").expect("pgbench, which comes with the PostgreSQL server");
    let output = Command::new(program)
        .args(["--no-vacuum", "--file"])
        .arg(&file)
        .args(["--client", &CONNECTIONS.to_string(), "--jobs", "2", "--time", &SECONDS.to_string()])
        .arg(server.url())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let tps = stdout.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    tps.unwrap_or_else(|| panic!("{stdout}{}", String::from_utf8_lossy(&output.stderr)))
}

fn psql(server: &PrivatePostgres, sql: &str) {
    let program = programs::find("psql").expect("psql; run `cargo xtask test`, which installs it");
    let status = Command::new(program).args(["--quiet", "--command", sql, &server.url()]).status();
    assert!(status.unwrap().success());
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
