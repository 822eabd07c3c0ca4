//! Part of `cargo xtask bench serve`: numbers over HTTP, one by one, compared with a bare handler of the same HTTP library
//! that returns a constant. Both are separate processes and take turns; the clients run on one thread of this process.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 16;
const REQUESTS: usize = 60_000;
const SCOPES: usize = 1_000;
const ROUNDS: usize = 7;

/// The rate to reach, as a multiple of the bare handler's.
const AIM: f64 = 0.7;

/// The variable that makes this program the bare handler.
const BARE: &str = "BATES_BENCH_BARE";

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts a server. Its first line that ends with a port is its address.
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port = lines.find_map(|line| line.rsplit_once(':')?.1.parse().ok()).unwrap();
        // A server would block if its output were not read.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() {
    if std::env::var_os(BARE).is_some() {
        return serve_constant();
    }
    let data = TempDir::new().unwrap();
    let bare = Server::start(Command::new(std::env::current_exe().unwrap()).env(BARE, "1"));
    let mut bates = Command::new(env!("CARGO_BIN_EXE_bates"));
    let bates = Server::start(
        bates.args(["serve", "--http", "127.0.0.1:0", "--resp", "off", "--data"]).arg(data.path()),
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let round = || [bare.port, bates.port].map(|port| runtime.block_on(measure(port)));
    round();
    let rounds: Vec<[f64; 2]> = (0..ROUNDS).map(|_| round()).collect();
    let [bare, ours] = std::array::from_fn(|at| median(rounds.iter().map(|round| round[at]).collect()));
    let ratio = ours / bare;
    println!(
        "\nHTTP, one number a request, {CONNECTIONS} connections, {SCOPES} scopes, medians of {ROUNDS}, requests per second"
    );
    println!("  {:<28} {bare:>9.0}", "a bare handler, a constant");
    println!("  {:<28} {ours:>9.0}", "Bates");
    println!("  {:<28} {ratio:>9.2}  aim ≥ {AIM}{}", "ratio", if ratio < AIM { "  missed" } else { "" });
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
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let requests = (REQUESTS / CONNECTIONS * CONNECTIONS) as f64;
    requests / started.elapsed().as_secs_f64()
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

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
