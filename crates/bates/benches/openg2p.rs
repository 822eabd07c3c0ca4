//! One ID of ten digits per request, over the contract of the OpenG2P id-generator, from one node and from three on
//! PostgreSQL; beside the id-generator's way in the same database: pgbench locks a row with `FOR UPDATE SKIP LOCKED` and
//! updates it. They take turns.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use bates_testkit::PrivatePostgres;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Arguments;
use super::comparison::{Aim, Comparison, grouped, medians};
use super::pgbench::{self, psql};
use super::server::{Server, bates, migrate};

const CONNECTIONS: usize = 16;

/// The rate to reach, as a multiple of the rows' rate.
const AIM: f64 = 20.0;

/// Available rows, more than a run takes.
const ROWS: u64 = 300_000;

const REQUEST: &[u8] = b"POST /v1/idgenerator/test_perf_id/id HTTP/1.1\r\nHost: localhost\r\n\r\n";

const SKIP_LOCKED: &str = "BEGIN;
SELECT id_value FROM id_pool_bench WHERE status = 'AVAILABLE' LIMIT 1 FOR UPDATE SKIP LOCKED \\gset
UPDATE id_pool_bench SET status = 'TAKEN', issued_at = now() WHERE id_value = ':id_value';
COMMIT;
";

fn start_node(folder: &Path, store: &str) -> Server {
    migrate(store);
    Server::from(
        bates()
            .args(["serve", "--http", "127.0.0.1:0", "--resp", "off", "--openg2p-config"])
            .arg(folder.join("default.yaml"))
            .env("BATES_STORE", store),
    )
}

pub(crate) fn run(arguments: &Arguments) {
    let (rounds, seconds) = if arguments.is_short() { (3, 2) } else { (5, 4) };
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
    let nodes: Vec<Server> = (0..3).map(|_| start_node(folder.path(), &server.url())).collect();
    let ports: Vec<u16> = nodes.iter().map(|node| node.http).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure(&ports, Duration::from_secs(1)));
    let round = || {
        let during = Duration::from_secs(seconds);
        let one = runtime.block_on(measure(&ports[..1], during));
        let three = runtime.block_on(measure(&ports, during));
        let rows = pgbench::rate(&server, SKIP_LOCKED, CONNECTIONS, ["--time", &seconds.to_string()]);
        [one / rows, three / rows, one, three, rows]
    };
    let [ratio_of_one, ratio_of_three, one, three, rows] = medians(rounds, round);
    println!(
        "\nOpenG2P, one ID per request, {CONNECTIONS} connections, medians of {rounds} rounds of {seconds} s"
    );
    for (nodes, result, ours) in [("one node", ratio_of_one, one), ("three nodes", ratio_of_three, three)] {
        Comparison {
            work: &format!("OpenG2P IDs, PostgreSQL, {nodes}"),
            peer: "FOR UPDATE SKIP LOCKED",
            result,
            unit: "",
            aim: Aim::AtLeast(AIM),
            detail: format!("{} beside {} IDs/s", grouped(ours), grouped(rows)),
        }
        .print();
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
