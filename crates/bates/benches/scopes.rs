//! Many scopes, created through `INCR`: how fast the first and the last of them are, their memory, a clean stop, and starts
//! after a stop and after a crash.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Instant;

use super::Arguments;
use super::comparison::{Aim, Comparison, grouped};
use super::server::{Server, bates, memory_kib};

const PIPELINE: u64 = 1_000;

pub(crate) fn run(arguments: &Arguments) {
    let millions = if arguments.is_short() { 1 } else { 5 };
    let data = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    println!("\n{millions},000,000 scopes in memory, one connection, pipeline {PIPELINE}");
    let server = start(data.path());
    let mut stream = TcpStream::connect(("127.0.0.1", server.resp)).unwrap();
    let empty = memory_kib(server.pid(), "VmRSS:");
    let rates: Vec<f64> = (0..millions).map(|million| create_million(&mut stream, million)).collect();
    let bytes = (memory_kib(server.pid(), "VmRSS:") - empty) as f64 * 1_024.0 / (millions * 1_000_000) as f64;
    let print = |work: &str, result, unit, aim, detail| {
        Comparison {
            work: &format!("{millions},000,000 scopes: {work}"),
            peer: "",
            result,
            unit,
            aim,
            detail,
        }
        .print();
    };
    print("resident memory of each", bytes, "bytes", Aim::AtMost(120.0), String::new());
    let detail = rates.iter().map(|rate| grouped(*rate)).collect::<Vec<_>>().join(", ") + " new scopes/s";
    print(
        "rate of the last million beside the first",
        rates[rates.len() - 1] / rates[0],
        "",
        Aim::AtLeast(0.9),
        detail,
    );
    let stop = server.stop().as_secs_f64();
    print("clean stop", stop, "s", Aim::AtMost(3.0 * millions as f64), String::new());
    let server = start(data.path());
    print("start after it", server.started_in.as_secs_f64(), "s", Aim::AtMost(3.0), String::new());
    create(&mut TcpStream::connect(("127.0.0.1", server.resp)).unwrap(), 0);
    drop(server);
    let server = start(data.path());
    print("start after a crash", server.started_in.as_secs_f64(), "s", Aim::AtMost(3.0), String::new());
}

fn start(data: &Path) -> Server {
    let mut command = bates();
    command.args(["serve", "--http", "off", "--resp", "127.0.0.1:0", "--data"]).arg(data);
    command.args((!data.join("bates.db").exists()).then_some("--new"));
    // Shards fill unevenly, so the limit of all is above their sum.
    Server::from(command.env("BATES_SCOPES_IN_MEMORY_MAX", "6000000"))
}

/// Returns new scopes per second.
fn create_million(stream: &mut TcpStream, million: u64) -> f64 {
    let began = Instant::now();
    let first = million * 1_000_000;
    for first in (first..first + 1_000_000).step_by(usize::try_from(PIPELINE).unwrap()) {
        create(stream, first);
    }
    1e6 / began.elapsed().as_secs_f64()
}

/// Takes the first numbers of many new scopes in one pipeline. Their keys are in no order.
fn create(stream: &mut TcpStream, first: u64) {
    let mut request = Vec::new();
    for scope in first..first + PIPELINE {
        // A multiplication by an odd number repeats none of 2^32.
        let key = format!("seq:conversation_{:010}", (scope * 2_654_435_761) % (1 << 32));
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
