//! A file of documents imported over HTTP, numbered, and delivered, on both stores, end to end; beside a loop of single
//! INSERTs of the same documents into PostgreSQL. `--only` selects the runs whose name contains a word.

use std::fs;
use std::io::{BufWriter, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bates_testkit::PrivatePostgres;
use tempfile::TempDir;

use super::Arguments;
use super::comparison::{Aim, Comparison};
use super::pgbench::{self, psql};
use super::server::{Server, bates, memory_kib};

const DOCUMENTS: u64 = 200_000;
const BYTES: usize = 1_024;
/// Measured INSERTs; the time for all documents is extrapolated.
const INSERTS: u64 = 20_000;

/// Seconds until all are assigned, and until all are delivered, on two cores.
const AIMS: (f64, f64) = (5.0, 12.0);
const MEMORY_AIM_MIB: f64 = 300.0;

fn start(folder: &Path, store: &str, sink: &str) -> Server {
    let file = folder.join("bates.yaml");
    let series = "pattern: \"{project}-{seq}\", promise: gapless, start: 1001";
    fs::write(&file, format!("series:\n  document: {{ {series}, sink: {sink} }}\n")).unwrap();
    Server::from(
        bates()
            .args(["serve", "--http", "127.0.0.1:0", "--resp", "off"])
            .arg("--new")
            .env("BATES_CONFIG", file)
            .env("BATES_STORE", store),
    )
}

fn delivered(port: u16) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = b"GET /v1/outbox/counts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let count = answer.split("\"delivered\":").nth(1).unwrap_or("0");
    count.split(|byte: char| !byte.is_ascii_digit()).next().unwrap().parse().unwrap_or(0)
}

pub(crate) fn run(arguments: &Arguments) {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("documents.ndjson");
    let mut out = BufWriter::new(fs::File::create(&file).unwrap());
    for at in 0..DOCUMENTS {
        let head = format!("{{\"project\":\"P{}\",\"at\":{at},\"text\":\"", at % 10);
        writeln!(out, "{head}{}\"}}", "x".repeat(BYTES - head.len() - 2)).unwrap();
    }
    out.flush().unwrap();
    drop(out);
    let postgres = PrivatePostgres::start().unwrap();
    let inserts = inserts(&postgres).as_secs_f64();
    println!(
        "\n{DOCUMENTS} documents of {BYTES} bytes, imported over HTTP; single INSERTs would take {inserts:.1} s"
    );
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
    // A folder is as fast as its disk creates files, so a short form leaves it out.
    let runs = [
        ("embedded store, to a table", data("table"), &to_table, true),
        ("embedded store, to a folder", data("folder"), &to_folder, !arguments.is_short()),
        ("PostgreSQL, to a table", postgres.url(), &to_table, true),
    ];
    let only = arguments.value_of("--only").unwrap_or_default();
    for (name, store, sink, is_wanted) in runs {
        if is_wanted && name.contains(only) {
            psql(&postgres, "TRUNCATE delivered");
            import(name, &folder, &start(folder.path(), &store, sink), inserts);
        }
    }
}

fn import(name: &str, folder: &TempDir, server: &Server, inserts: f64) {
    let _ = fs::remove_file(folder.path().join("documents.numbered.ndjson"));
    let began = Instant::now();
    let status = bates()
        .args(["import", "documents.ndjson", "--series", "document"])
        .current_dir(folder.path())
        .env("BATES_URL", format!("http://127.0.0.1:{}", server.http))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let assigned = began.elapsed().as_secs_f64();
    while delivered(server.http) < DOCUMENTS {
        // Without a pause, polling would slow the measured server.
        std::thread::sleep(Duration::from_millis(100));
    }
    let delivered = began.elapsed().as_secs_f64();
    let memory = (memory_kib(server.pid(), "VmHWM:") / 1_024) as f64;
    let print = |work: &str, result, unit, aim, peer, detail| {
        let work = format!("200,000 documents, {name}: {work}");
        Comparison { work: &work, peer, result, unit, aim: Aim::AtMost(aim), detail }.print();
    };
    let detail = format!("{:.1} times the INSERTs", inserts / assigned);
    print("assigned", assigned, "s", AIMS.0, "single INSERTs", detail);
    print("delivered", delivered, "s", AIMS.1, "", String::new());
    print("peak memory", memory, "MiB", MEMORY_AIM_MIB, "", String::new());
}

/// How long a loop of single INSERTs takes for all documents, extrapolated from some of them.
fn inserts(postgres: &PrivatePostgres) -> Duration {
    psql(postgres, "CREATE TABLE inserted (id bigserial PRIMARY KEY, number text UNIQUE, document jsonb)");
    let document = format!("{{\"text\":\"{}\"}}", "x".repeat(BYTES - 11));
    let sql =
        format!("INSERT INTO inserted (number, document) VALUES (gen_random_uuid()::text, '{document}');\n");
    let rate = pgbench::rate(postgres, &sql, 1, ["--transactions", &INSERTS.to_string()]);
    Duration::from_secs_f64(DOCUMENTS as f64 / rate)
}
