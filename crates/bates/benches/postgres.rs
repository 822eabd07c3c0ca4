//! Three nodes on one PostgreSQL beside numbering by hand on the same server: `nextval`, and `UPDATE … RETURNING` of rows, by
//! pgbench. They take turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bates_testkit::PrivatePostgres;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Arguments;
use super::comparison::{Aim, Comparison, grouped, medians};
use super::pgbench;
use super::server::{Server, bates, migrate};

const NODES: usize = 3;
const NEXTVAL: (&str, &str) = ("nextval", "SELECT nextval('numbers');\n");
const UPDATE: (&str, &str) =
    ("UPDATE … RETURNING of a row", "UPDATE rows SET next = next + 1 WHERE id = 1 RETURNING next;\n");
const UPDATE_MANY: (&str, &str) = (
    "UPDATE … RETURNING of 1,000 rows",
    "\\set row random(1, 1000)\nUPDATE rows SET next = next + 1 WHERE id = :row RETURNING next;\n",
);

struct Work {
    name: &'static str,
    /// `SCOPE` stands for the number of a scope.
    command: &'static [&'static str],
    scopes: usize,
    /// Numbers in one answer.
    numbers: u64,
    connections: usize,
    /// A name and a script.
    peer: (&'static str, &'static str),
    aim: f64,
}

const WORKS: [Work; 5] = [
    Work {
        name: "PostgreSQL, unique, LPOP key 100, 16 connections",
        command: &["LPOP", "short", "100"],
        scopes: 1,
        numbers: 100,
        connections: 16,
        peer: NEXTVAL,
        aim: 20.0,
    },
    Work {
        name: "PostgreSQL, unique, LPOP key, 16 connections",
        command: &["LPOP", "short"],
        scopes: 1,
        numbers: 1,
        connections: 16,
        peer: NEXTVAL,
        aim: 1.0,
    },
    Work {
        name: "PostgreSQL, ordered, one scope, 64 connections",
        command: &["INCR", "counter:SCOPE"],
        scopes: 1,
        numbers: 1,
        connections: 64,
        peer: UPDATE,
        aim: 5.0,
    },
    Work {
        name: "PostgreSQL, ordered, 1,000 scopes, 64 connections",
        command: &["INCR", "counter:SCOPE"],
        scopes: 1_000,
        numbers: 1,
        connections: 64,
        peer: UPDATE_MANY,
        aim: 5.0,
    },
    Work {
        name: "PostgreSQL, gapless, one scope, 64 connections",
        command: &["INCR", "invoice"],
        scopes: 1,
        numbers: 1,
        connections: 64,
        peer: UPDATE,
        aim: 5.0,
    },
];

fn start_node(store: &str) -> Server {
    migrate(store);
    Server::from(
        bates()
            .args(["serve", "--http", "off", "--resp", "127.0.0.1:0"])
            .env("BATES_STORE", store)
            .env("BATES_SERIES__INVOICE__PATTERN", "'{seq}'")
            .env("BATES_SERIES__INVOICE__PROMISE", "gapless")
            .env("BATES_SERIES__INVOICE__KEY", "invoice"),
    )
}

pub(crate) fn run(arguments: &Arguments) {
    let (rounds, seconds) = if arguments.is_short() { (3, 2) } else { (5, 4) };
    let only = arguments.value_of("--only").unwrap_or_default();
    let server = PrivatePostgres::start().unwrap();
    pgbench::psql(
        &server,
        "CREATE SEQUENCE numbers; CREATE TABLE rows (id int PRIMARY KEY, next bigint);
         INSERT INTO rows SELECT id, 1 FROM generate_series(1, 1000) AS id",
    );
    let nodes: Vec<Server> = (0..NODES).map(|_| start_node(&server.url())).collect();
    let ports: Vec<u16> = nodes.iter().map(|node| node.resp).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("\n{NODES} nodes on one PostgreSQL, medians of {rounds} rounds of {seconds} s");
    for work in WORKS.iter().filter(|work| work.name.contains(only)) {
        let round = || {
            let ours = runtime.block_on(measure(&ports, work, Duration::from_secs(seconds)));
            let limit = ["--time", &seconds.to_string()];
            let theirs = pgbench::rate(&server, work.peer.1, work.connections, limit);
            [ours / theirs, ours, theirs]
        };
        let [ratio, ours, theirs] = medians(rounds, round);
        Comparison {
            work: work.name,
            peer: work.peer.0,
            result: ratio,
            unit: "",
            aim: Aim::AtLeast(work.aim),
            detail: format!("{} beside {} numbers/s", grouped(ours), grouped(theirs)),
        }
        .print();
    }
}

impl Work {
    fn request(&self, scope: usize) -> String {
        let arguments = self.command.iter().map(|argument| argument.replace("SCOPE", &scope.to_string()));
        let encoded = arguments.map(|argument| format!("${}\r\n{argument}\r\n", argument.len()));
        format!("*{}\r\n{}", self.command.len(), encoded.collect::<String>())
    }

    /// Lines of an answer: one for an integer, two for a text, and one more for the length of a list.
    fn lines(&self) -> usize {
        match (self.command[0], self.numbers) {
            ("INCR", _) => 1,
            (_, 1) => 2,
            (_, numbers) => 1 + 2 * usize::try_from(numbers).unwrap(),
        }
    }
}

/// Numbers per second of all connections together. Each waits for its answer before the next request.
async fn measure(ports: &[u16], work: &Work, during: Duration) -> f64 {
    let requests: Arc<[String]> = (0..work.scopes).map(|scope| work.request(scope)).collect();
    let (answers, lines) = (Arc::new(AtomicU64::new(0)), work.lines());
    let started = Instant::now();
    let clients: Vec<_> = (0..work.connections)
        .map(|client| {
            let (port, requests, answers) = (ports[client % ports.len()], requests.clone(), answers.clone());
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                stream.set_nodelay(true).unwrap();
                let (mut buffer, mut turn) = (vec![0; 64 * 1024], client);
                while started.elapsed() < during {
                    // A step that no number of scopes divides visits all of them in no order.
                    turn += 7_919;
                    stream.write_all(requests[turn % requests.len()].as_bytes()).await.unwrap();
                    let mut seen = 0;
                    while seen < lines {
                        let read = stream.read(&mut buffer).await.unwrap();
                        let text = &buffer[..read];
                        assert!(read > 0 && buffer[0] != b'-', "{}", String::from_utf8_lossy(text));
                        seen += text.split(|byte| *byte == b'\n').count() - 1;
                    }
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    (answers.load(Ordering::Relaxed) * work.numbers) as f64 / started.elapsed().as_secs_f64()
}
