//! `cargo xtask bench documents`: a file of documents imported over HTTP, numbered, and delivered, on both stores, end to
//! end; compared with a loop of single INSERTs of the same documents into PostgreSQL. A word selects the runs whose name
//! contains it: `cargo xtask bench documents -- PostgreSQL`.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bates_testkit::{PrivatePostgres, programs};
use tempfile::TempDir;

const DOCUMENTS: u64 = 200_000;
const BYTES: usize = 1_024;
/// Measured INSERTs; the time for all documents is extrapolated.
const INSERTS: u64 = 20_000;

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(folder: &Path, store: &str, sink: &str) -> Self {
        let file = folder.join("bates.yaml");
        let series = "pattern: \"{project}-{seq}\", promise: gapless, start: 1001";
        fs::write(&file, format!("series:\n  document: {{ {series}, sink: {sink} }}\n")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_bates"))
            .args(["serve", "--http", "127.0.0.1:0", "--resp", "off"])
            .args(store.starts_with("postgres").then_some("--new"))
            .env("BATES_CONFIG", file)
            .env("BATES_STORE", store)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let line = lines.find(|line| line.contains("HTTP")).unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port: line.rsplit_once(':').unwrap().1.parse().unwrap() }
    }

    fn delivered(&self) -> u64 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .write_all(b"GET /v1/outbox/counts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let count = answer.split("\"delivered\":").nth(1).unwrap_or("0");
        count.split(|byte: char| !byte.is_ascii_digit()).next().unwrap().parse().unwrap_or(0)
    }

    /// Peak resident memory.
    fn peak_memory_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1_024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("documents.ndjson");
    let mut out = BufWriter::new(fs::File::create(&file).unwrap());
    for at in 0..DOCUMENTS {
        let head = format!("{{\"project\":\"P{}\",\"at\":{at},\"text\":\"", at % 10);
        writeln!(out, "{head}{}\"}}", "x".repeat(BYTES - head.len() - 2)).unwrap();
    }
    out.flush().unwrap();
    drop(out);
    println!(
        "{DOCUMENTS} documents of {BYTES} bytes, imported over HTTP; seconds, and the server's peak memory"
    );
    println!("  {:<34} {:>9} {:>9} {:>10} {:>14}", "", "assigned", "delivered", "memory", "INSERTs take");
    let postgres = PrivatePostgres::start().unwrap();
    let inserts = inserts(&postgres, &folder);
    let documents = folder.path().join("delivered");
    fs::create_dir(&documents).unwrap();
    let to_folder = format!("{{ object: {{ url: \"file://{}\" }} }}", documents.display());
    let data = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    psql(
        &postgres,
        "CREATE TABLE delivered (event uuid PRIMARY KEY, series text, scope text, position bigint, number text,
         document jsonb, created_at timestamptz)",
    );
    let to_table = format!("{{ postgres: {{ url: \"{}\", table: delivered }} }}", postgres.url());
    run("embedded store, to a table", &folder, &data("table"), &to_table, inserts);
    run("embedded store, to a folder", &folder, &data("folder"), &to_folder, inserts);
    psql(&postgres, "TRUNCATE delivered");
    run("PostgreSQL, to a table", &folder, &postgres.url(), &to_table, inserts);
}

fn run(name: &str, folder: &TempDir, store: &str, sink: &str, inserts: Duration) {
    if std::env::args().nth(1).is_some_and(|word| !word.starts_with('-') && !name.contains(&word)) {
        return;
    }
    let server = Server::start(folder.path(), store, sink);
    let _ = fs::remove_file(folder.path().join("documents.numbered.ndjson"));
    let began = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_bates"))
        .args(["import", "documents.ndjson", "--series", "document"])
        .current_dir(folder.path())
        .env("BATES_URL", format!("http://127.0.0.1:{}", server.port))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let assigned = began.elapsed();
    while server.delivered() < DOCUMENTS {
        #[expect(
            clippy::disallowed_methods,
            reason = "polling without a pause would slow the measured server"
        )]
        std::thread::sleep(Duration::from_millis(100));
    }
    let delivered = began.elapsed();
    let seconds = |duration: Duration| format!("{:.1}", duration.as_secs_f64());
    println!(
        "  {name:<34} {:>9} {:>9} {:>6} MiB {:>14}",
        seconds(assigned),
        seconds(delivered),
        server.peak_memory_mib(),
        seconds(inserts)
    );
}

/// How long a loop of single INSERTs takes for all documents, extrapolated from some of them.
fn inserts(postgres: &PrivatePostgres, folder: &TempDir) -> Duration {
    psql(postgres, "CREATE TABLE inserted (id bigserial PRIMARY KEY, number text UNIQUE, document jsonb)");
    let script = folder.path().join("insert.sql");
    let document = format!("{{\"text\":\"{}\"}}", "x".repeat(BYTES - 11));
    let sql =
        format!("INSERT INTO inserted (number, document) VALUES (gen_random_uuid()::text, '{document}');\n");
    fs::write(&script, sql).unwrap();
    let program = programs::find("pgbench").expect("pgbench, which comes with the PostgreSQL server");
    let began = Instant::now();
    let output = Command::new(program)
        .args(["--no-vacuum", "--client", "1", "--transactions", &INSERTS.to_string(), "--file"])
        .arg(&script)
        .arg(postgres.url())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    began.elapsed() * u32::try_from(DOCUMENTS / INSERTS).unwrap()
}

fn psql(server: &PrivatePostgres, sql: &str) {
    let program = programs::find("psql").expect("psql; run `cargo xtask test`, which installs it");
    let status = Command::new(program).args(["--quiet", "--command", sql, &server.url()]).status();
    assert!(status.unwrap().success());
}
