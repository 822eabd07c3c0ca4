//! What strangers and greedy callers cost a server, and a caller beside them. `--server PATH` names the binary of another
//! build. Each attack takes some seconds.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::Arguments;
use super::comparison::{Aim, Comparison};
use super::server::{Server, memory_kib};

const SECRET: &str = "open sesame, open sesame";
const MEMORY_MB: u64 = 256;
const HEADS: usize = 9_900;
/// As long as heads could be before, and a little less than they can be now.
const HEAD_BYTES: [usize; 2] = [60 * 1024, 15 * 1024];
const READERS: usize = 300;
const GUESSERS: usize = 8;
const GUESS_SECONDS: usize = 5;
/// How long an attack stays after it began.
const HOLD: Duration = Duration::from_secs(5);
/// A caller asks this often.
const PAUSE: Duration = Duration::from_micros(500);

fn start(binary: &Path, data: &TempDir) -> Server {
    Server::from(
        Command::new(binary)
            .args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--data"])
            .arg(data.path())
            .arg("--new")
            .env("BATES_SECRET", SECRET)
            .env("BATES_MEMORY_MAX_MB", MEMORY_MB.to_string()),
    )
}

pub(crate) fn run(arguments: &Arguments) {
    let binary = arguments.value_of("--server").unwrap_or(env!("CARGO_BIN_EXE_bates")).as_ref();
    println!("\nUnder attack, memory_max_mb {MEMORY_MB}; a caller beside it takes a number every {PAUSE:?}");
    measure(binary, "nothing", |_| {
        thread::sleep(HOLD);
        String::new()
    });
    for bytes in HEAD_BYTES {
        measure(binary, &format!("9,900 unfinished heads of {} KiB", bytes / 1024), |server| {
            let head = format!("GET /v1/series HTTP/1.1\r\nX-Long: {}", "x".repeat(bytes));
            let _attackers = open(server.http, HEADS, head.as_bytes());
            thread::sleep(HOLD);
            String::new()
        });
    }
    let request = format!(
        "POST /v1/series/short/next?count=100000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {SECRET}\r\nContent-Length: 0\r\n\r\n"
    );
    let commands = format!("AUTH \"{SECRET}\"\r\n{}", "LPOP short 100000\r\n".repeat(20));
    measure(binary, "300 callers that read no answers, HTTP", |server| {
        let _attackers = open(server.http, READERS, request.repeat(20).as_bytes());
        thread::sleep(HOLD);
        String::new()
    });
    measure(binary, "300 callers that read no answers, Redis", |server| {
        let _attackers = open(server.resp, READERS, commands.as_bytes());
        thread::sleep(HOLD);
        String::new()
    });
    measure(binary, "8 connections that guess secrets over HTTP", |server| {
        guess(server.http, HTTP_GUESS, 100)
    });
    // The server closes a connection after ten.
    measure(binary, "8 connections that guess secrets over Redis", |server| {
        guess(server.resp, "AUTH wrong\r\n", 10)
    });
}

const HTTP_GUESS: &str =
    "GET /v1/series HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a wrong secret\r\n\r\n";

/// Connections that send something and read nothing. The server may close some.
fn open(port: u16, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
    let connect = |_| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let _ = stream.write_all(bytes);
        Some(stream)
    };
    (0..count).filter_map(connect).collect()
}

/// Sends guesses in pipelines, on a new connection when one is closed. Returns how many were answered.
fn guess(port: u16, guess: &str, depth: usize) -> String {
    let (end, pipeline) = (Instant::now() + Duration::from_secs(GUESS_SECONDS as u64), guess.repeat(depth));
    let guessers: Vec<_> = (0..GUESSERS)
        .map(|_| {
            let pipeline = pipeline.clone();
            thread::spawn(move || {
                let (mut checked, mut refused) = (0, 0);
                while Instant::now() < end {
                    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
                    while Instant::now() < end && stream.write_all(pipeline.as_bytes()).is_ok() {
                        let (one, other, is_open) = read_answers(&mut stream, depth);
                        checked += one;
                        refused += other;
                        if !is_open {
                            break;
                        }
                    }
                }
                (checked, refused)
            })
        })
        .collect();
    let answers = guessers.into_iter().map(|thread| thread.join().unwrap());
    let (checked, refused) = answers.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    format!("{} guesses a second checked, {} refused", checked / GUESS_SECONDS, refused / GUESS_SECONDS)
}

/// The answers to one pipeline: how many were checked, how many refused, and whether the connection is open.
fn read_answers(stream: &mut TcpStream, depth: usize) -> (usize, usize, bool) {
    let (mut text, mut chunk) = (Vec::new(), vec![0; 64 * 1024]);
    let count = |text: &[u8], word: &[u8]| text.windows(word.len()).filter(|found| *found == word).count();
    loop {
        let read = stream.read(&mut chunk).unwrap_or(0);
        text.extend_from_slice(&chunk[..read]);
        let checked = count(&text, b"HTTP/1.1 401") + count(&text, b"-WRONGPASS");
        let refused = count(&text, b"HTTP/1.1 429") + count(&text, b"-BUSY");
        if read == 0 || checked + refused >= depth {
            return (checked, refused, read > 0);
        }
    }
}

/// Runs an attack on a new server, with a caller beside it that was there before.
fn measure(binary: &Path, name: &str, attack: impl FnOnce(&Server) -> String) {
    let data = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = start(binary, &data);
    let mut caller = Caller::connect(server.resp);
    let is_over = AtomicBool::new(false);
    let (note, mut samples) = thread::scope(|scope| {
        let samples = scope.spawn(|| caller.sample(&is_over));
        let note = attack(&server);
        is_over.store(true, Ordering::Relaxed);
        (note, samples.join().unwrap())
    });
    samples.sort_unstable();
    let at = |share: usize| samples[(samples.len() - 1) * share / 100].as_micros();
    let [resident, peak] = ["VmRSS:", "VmHWM:"].map(|figure| memory_kib(server.pid(), figure) / 1_024);
    Comparison {
        work: &format!("{name}: peak memory"),
        peer: "",
        result: peak as f64,
        unit: "MiB",
        aim: Aim::AtMost(MEMORY_MB as f64),
        detail: format!("{resident} MiB at the end; {} µs, p99 {}, max {}; {note}", at(50), at(99), at(100)),
    }
    .print();
}

/// Takes numbers over one connection.
struct Caller {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Caller {
    fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut caller = Self { answers: BufReader::new(stream.try_clone().unwrap()), stream };
        caller.ask(&format!("AUTH \"{SECRET}\"\r\n"));
        caller
    }

    /// Returns how long the answer took.
    fn ask(&mut self, request: &str) -> Duration {
        let (started, mut answer) = (Instant::now(), String::new());
        self.stream.write_all(request.as_bytes()).unwrap();
        self.answers.read_line(&mut answer).unwrap();
        assert!(answer.starts_with(['+', ':']), "{answer:?}");
        started.elapsed()
    }

    fn sample(&mut self, is_over: &AtomicBool) -> Vec<Duration> {
        let mut samples = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            samples.push(self.ask("INCR counter:a\r\n"));
            thread::sleep(PAUSE);
        }
        samples
    }
}
