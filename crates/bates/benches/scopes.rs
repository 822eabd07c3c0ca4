//! Part of `cargo xtask bench serve`: a million scopes, created through `INCR`. Measures their memory, and how long a
//! server takes to start with them after a clean stop and after a crash.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SCOPES: u64 = 1_000_000;
const PIPELINE: u64 = 1_000;

const MEMORY_AIM_MIB: u64 = 600;
const START_AIM: Duration = Duration::from_secs(3);

struct Server {
    child: Child,
    port: u16,
    /// Time from the start of the process until it listens.
    started_in: Duration,
}

impl Server {
    fn start(data: &Path) -> Self {
        let started = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_bates"))
            .args(["serve", "--http", "off", "--resp", "127.0.0.1:0", "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port = lines.find_map(|line| line.rsplit_once(':')?.1.parse().ok()).unwrap();
        Self { child, port, started_in: started.elapsed() }
    }

    /// Resident memory, as the kernel counts it.
    fn resident_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }

    fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() {
    let data = tempfile::TempDir::new().unwrap();
    let server = Server::start(data.path());
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let began = Instant::now();
    for first in (0..SCOPES).step_by(usize::try_from(PIPELINE).unwrap()) {
        create(&mut stream, first);
    }
    let took = began.elapsed();
    let resident = server.resident_mib();
    println!("\n{SCOPES} scopes, created through INCR in {:.1} s", took.as_secs_f64());
    let missed = |is_missed: bool| if is_missed { "  missed" } else { "" };
    println!(
        "  resident memory              {resident:>6} MiB  aim < {MEMORY_AIM_MIB} MiB{}",
        missed(resident >= MEMORY_AIM_MIB)
    );
    drop(server);
    print_start("after a crash", &Server::start(data.path()), missed);
    let server = Server::start(data.path());
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    create(&mut stream, 0);
    server.stop();
    print_start("after a clean stop", &Server::start(data.path()), missed);
}

fn print_start(when: &str, server: &Server, missed: impl Fn(bool) -> &'static str) {
    let (started, aim) = (server.started_in, START_AIM);
    println!(
        "  starts {when:<21} {:>6} ms   aim < {} s{}",
        started.as_millis(),
        aim.as_secs(),
        missed(started >= aim)
    );
}

/// Takes the first numbers of many new scopes in one pipeline.
fn create(stream: &mut TcpStream, first: u64) {
    let mut request = Vec::new();
    for scope in first..first + PIPELINE {
        let key = format!("seq:conversation_{scope:07}");
        write!(request, "*2\r\n$4\r\nINCR\r\n${}\r\n{key}\r\n", key.len()).unwrap();
    }
    stream.write_all(&request).unwrap();
    let mut answers = 0;
    let mut buffer = vec![0; 64 * 1024];
    while answers < PIPELINE {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0 && !buffer[..read].contains(&b'-'), "{}", String::from_utf8_lossy(&buffer[..read]));
        answers += buffer[..read].split(|byte| *byte == b'\n').count() as u64 - 1;
    }
}
