//! Numbers over HTTP, one by one, beside a bare handler of the same HTTP library that returns a constant. Both are separate
//! processes and take turns; the clients run on one thread of this process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Arguments;
use super::comparison::{Aim, Comparison, grouped, medians};
use super::server::{Server, processor_time};

const CONNECTIONS: usize = 16;
const REQUESTS: usize = 60_000;
const SCOPES: usize = 1_000;

/// The variable that makes this program the bare handler.
const BARE: &str = "BATES_BENCH_BARE";

struct Bare {
    child: Child,
    port: u16,
}

impl Bare {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command.arg("http").env(BARE, "1").stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port = lines.find_map(|line| line.rsplit_once(':')?.1.parse().ok()).unwrap();
        Self { child, port }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn run(arguments: &Arguments) {
    if std::env::var_os(BARE).is_some() {
        return serve_constant();
    }
    let (bare, bates) = (Bare::start(), Server::start());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let round = || {
        let measured = [(bare.child.id(), bare.port), (bates.pid(), bates.http)].map(|(pid, port)| {
            let before = processor_time(pid);
            let rate = runtime.block_on(measure(port));
            [rate, processor_time(pid).saturating_sub(before).as_nanos() as f64 / REQUESTS as f64]
        });
        let [[theirs, their_time], [ours, our_time]] = measured;
        [ours / theirs, ours, theirs, our_time, their_time]
    };
    round();
    let rounds = if arguments.is_short() { 5 } else { 11 };
    let [ratio, ours, theirs, our_time, their_time] = medians(rounds, round);
    println!("\nHTTP, {CONNECTIONS} connections, {SCOPES} scopes, medians of {rounds} rounds");
    let [ours, theirs, our_time, their_time] = [ours, theirs, our_time, their_time].map(grouped);
    Comparison {
        work: "HTTP, one number per request",
        peer: "a bare axum handler",
        result: ratio,
        unit: "",
        aim: Aim::AtLeast(0.95),
        detail: format!("{ours} beside {theirs} requests/s, {our_time} beside {their_time} ns"),
    }
    .print();
}

/// The same library and the same path, without any work.
fn serve_constant() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        std::io::stdout().flush().unwrap();
        let constant = async || ([("content-type", "application/json")], "{\"ids\":[\"1001\"]}");
        let router = axum::Router::new().route("/v1/series/{series}/next", axum::routing::post(constant));
        axum::serve(listener, router).await.unwrap();
    });
}

/// Requests per second of all connections together. Each waits for its answer before the next request.
async fn measure(port: u16) -> f64 {
    let started = Instant::now();
    let clients: Vec<_> =
        (0..CONNECTIONS).map(|client| tokio::task::spawn(run_client(port, client))).collect();
    for client in clients {
        client.await.unwrap();
    }
    (REQUESTS / CONNECTIONS * CONNECTIONS) as f64 / started.elapsed().as_secs_f64()
}

async fn run_client(port: u16, client: usize) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut answer = vec![0; 4 * 1024];
    for request in 0..REQUESTS / CONNECTIONS {
        let body = format!("{{\"scope\":{{\"name\":\"s{}\"}}}}", (request * 31 + client) % SCOPES);
        let head =
            "POST /v1/series/counter/next HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
        let text = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut read = 0;
        while !answer[..read].ends_with(b"]}") {
            let more = stream.read(&mut answer[read..]).await.unwrap();
            assert!(more > 0, "{}", String::from_utf8_lossy(&answer[..read]));
            read += more;
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..read]));
    }
}
