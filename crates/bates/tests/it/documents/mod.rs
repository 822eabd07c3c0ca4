//! Documents, on a server process and both stores: numbered, delivered to real sinks, and never lost.

mod assignment;
mod delivery;
mod imports;
mod kills;
mod offered_sinks;
mod receiver;
mod store_moves;
mod unfinished_delivery;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use bates_testkit::{PrivatePostgres, programs};
use serde_json::Value;
use tempfile::TempDir;

use super::http::exchange;
use super::running::Server;

/// The store and the configuration of a server.
pub(crate) struct Home {
    folder: TempDir,
    pub(crate) postgres: Option<PrivatePostgres>,
}

impl Home {
    /// With the embedded store.
    pub(crate) fn folder() -> Self {
        Self { folder: TempDir::new().unwrap(), postgres: None }
    }

    /// With the shared store.
    pub(crate) fn postgres() -> Self {
        Self { folder: TempDir::new().unwrap(), postgres: Some(PrivatePostgres::start().unwrap()) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a server with these series.
    pub(crate) fn start(&self, series: &str) -> Server {
        self.start_with(series, &[])
    }

    pub(crate) fn start_with(&self, series: &str, environment: &[(&str, &str)]) -> Server {
        self.try_start_with(series, environment).unwrap_or_else(|error| panic!("no server: {error}"))
    }

    /// Starts a server, or returns its error output if it refuses to start.
    pub(crate) fn try_start_with(
        &self,
        series: &str,
        environment: &[(&str, &str)],
    ) -> Result<Server, String> {
        self.try_start(&format!("series:\n{series}"), environment)
    }

    /// Starts a server without series, with other settings.
    pub(crate) fn start_beside(&self, settings: &str, environment: &[(&str, &str)]) -> Server {
        let configuration = format!("{settings}series: {{}}\n");
        self.try_start(&configuration, environment).unwrap_or_else(|error| panic!("no server: {error}"))
    }

    fn try_start(&self, configuration: &str, environment: &[(&str, &str)]) -> Result<Server, String> {
        let file = self.path("bates.yaml");
        fs::write(&file, configuration).unwrap();
        let store = match &self.postgres {
            Some(postgres) => postgres.url(),
            None => format!("sqlite:{}", self.path("data").display()),
        };
        let mut variables = vec![("BATES_CONFIG", file.to_str().unwrap())];
        variables.extend(environment);
        let flags: &[&str] = if self.postgres.is_some() { &["--new"] } else { &[] };
        Server::try_node(&store, flags, &variables)
    }

    /// A sink in the same place as the store: a folder, or a table in the same database.
    pub(crate) fn sink(&self) -> String {
        match &self.postgres {
            None => {
                fs::create_dir_all(self.path("delivered")).unwrap();
                format!("{{ object: {{ url: \"file://{}\" }} }}", self.path("delivered").display())
            }
            Some(postgres) => {
                self.query(
                    "CREATE TABLE IF NOT EXISTS delivered (event uuid PRIMARY KEY, series text, scope text,
                     position bigint, number text, document jsonb, created_at timestamptz)",
                );
                format!("{{ postgres: {{ url: \"{}\", table: delivered }} }}", postgres.url())
            }
        }
    }

    /// The delivered numbers, sorted.
    pub(crate) fn delivered(&self) -> Vec<String> {
        let mut numbers: Vec<String> = match &self.postgres {
            Some(_) => self.query("SELECT number FROM delivered").lines().map(str::to_owned).collect(),
            None => files(&self.path("delivered")).iter().map(|file| number_in(file)).collect(),
        };
        numbers.sort();
        numbers
    }

    pub(crate) fn query(&self, sql: &str) -> String {
        let psql = programs::find("psql").expect("psql; run `cargo xtask test`, which installs it");
        let url = self.postgres.as_ref().unwrap().url();
        let output = Command::new(psql)
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", sql, &url])
            .output()
            .unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

fn files(folder: &std::path::Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let inner = entries.map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with(".staging"));
    inner.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn number_in(file: &std::path::Path) -> String {
    let content: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    content["number"].as_str().unwrap().to_owned()
}

/// Sends a POST request, with an idempotency key if one is given. The status is 0 if there was no answer.
pub(crate) fn send(port: u16, path: &str, kind: &str, key: Option<&str>, body: &str) -> (u16, String) {
    let key = key.map(|key| format!("Idempotency-Key: {key}\r\n")).unwrap_or_default();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: {kind}\r\n{key}Content-Length: \
         {}\r\n\r\n{body}",
        body.len()
    );
    let (status, head, body) = exchange(port, request.as_bytes());
    let body = if head.contains("chunked") { dechunked(&body) } else { String::from_utf8(body).unwrap() };
    (status, body)
}

pub(crate) fn post(port: u16, path: &str, body: &str) -> (u16, Value) {
    let (status, body) = send(port, path, "application/json", None, body);
    (status, serde_json::from_str(&body).unwrap())
}

fn dechunked(mut body: &[u8]) -> String {
    let mut text = Vec::new();
    while let Some(end) = body.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        text.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 4 + size..];
    }
    String::from_utf8(text).unwrap()
}
