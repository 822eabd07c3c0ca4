//! The API of the OpenG2P id-generator as its clients see it, with the id-generator's own configuration file.

mod adoption;
mod contract;
mod exhaustion;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use bates_testkit::{PrivatePostgres, programs};
use serde_json::Value;
use tempfile::TempDir;

use super::http::exchange;
use super::running::{Client, Server, new_folder};

const BASE: &str = "/v1/idgenerator";

/// A folder with the configuration file of an id-generator.
struct Setting {
    folder: TempDir,
}

impl Setting {
    /// The shipped configuration with these ID types.
    fn with(types: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let text = format!(
            "id_generator:\n  sequence_limit: 3\n  repeating_limit: 2\n  repeating_block_limit: 2\n  \
             conjugative_even_digits_limit: 3\n  digits_group_limit: 5\n  reverse_digits_group_limit: 5\n  \
             not_start_with: [\"0\", \"1\"]\n  restricted_numbers: []\n  pool_min_threshold: 1000\n  \
             pool_generation_batch_size: 5000\n  pool_check_interval_seconds: 30\n  \
             exhaustion_max_attempts: 1000\n  sub_batch_size: 10000\n  id_types: {types}\n"
        );
        fs::write(folder.path().join("default.yaml"), text).unwrap();
        Self { folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("default.yaml")
    }

    /// Starts a server with the embedded store.
    fn serve(&self, environment: &[(&str, &str)]) -> Server {
        let mut command = self.command();
        command.envs(environment.iter().copied());
        command.args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]).args(self.flags());
        let data = self.folder.path().join("data");
        command.arg("--data").arg(&data).args(new_folder(&data));
        Server::run(command).unwrap_or_else(|error| panic!("no server: {error}"))
    }

    /// Starts a node on the database in the variables of the id-generator, or returns the error output of the node.
    fn node(&self, postgres: &PrivatePostgres) -> Result<Server, String> {
        let mut command = self.command();
        command.envs(database(postgres));
        command.args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]).args(self.flags());
        assert!(self.run(postgres, &["migrate"]).status.success());
        Server::run(command)
    }

    /// Runs a command with the database and the configuration file of the id-generator.
    fn run(&self, postgres: &PrivatePostgres, words: &[&str]) -> Output {
        self.command().envs(database(postgres)).args(words).args(self.flags()).output().unwrap()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
        command.current_dir(self.folder.path());
        command
    }

    fn flags(&self) -> [String; 2] {
        ["--openg2p-config".to_owned(), self.file().display().to_string()]
    }
}

/// The variables that tell the id-generator its database.
fn database(postgres: &PrivatePostgres) -> [(&'static str, String); 5] {
    let url = postgres.url();
    let (_, rest) = url.split_once("://").unwrap();
    let (user, rest) = rest.split_once('@').unwrap();
    let (host, name) = rest.split_once('/').unwrap();
    let (host, port) = host.split_once(':').unwrap();
    let user = user.split(':').next().unwrap();
    [
        ("DB_HOST", host.to_owned()),
        ("DB_PORT", port.to_owned()),
        ("DB_NAME", name.to_owned()),
        ("DB_USER", user.to_owned()),
        ("DB_PASSWORD", "not asked for".to_owned()),
    ]
}

/// Runs SQL from a file, and returns the bare output of psql.
fn query(postgres: &PrivatePostgres, sql: &str) -> String {
    let psql = programs::find("psql").expect("psql; run `cargo xtask test`, which installs it");
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), sql).unwrap();
    let output = Command::new(psql)
        .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1", "--file"])
        .arg(file.path())
        .arg(postgres.url())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Sends a request, and returns the status and the raw body.
fn ask(server: &Server, method: &str, path: &str) -> (u16, String) {
    ask_with(server, method, path, "")
}

fn ask_with(server: &Server, method: &str, path: &str, headers: &str) -> (u16, String) {
    let request =
        format!("{method} {BASE}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{headers}\r\n");
    let (status, head, body) = exchange(server.http, request.as_bytes());
    assert!(
        head.contains("content-type: application/json\r\n") || matches!(status, 401 | 403),
        "{method} {path}: {head}"
    );
    (status, String::from_utf8(body).unwrap())
}

/// Takes one ID over an open connection, or returns the error code.
fn issue(client: &mut Client, id_type: &str) -> Result<String, String> {
    let body = client.post(&format!("{BASE}/{id_type}/id")).expect("a server that answers");
    let answer: Value = serde_json::from_str(&body).unwrap();
    match &answer["response"]["id"] {
        Value::String(id) => Ok(id.clone()),
        _ => Err(answer["errors"][0]["errorCode"].as_str().unwrap().to_owned()),
    }
}

/// Takes up to `count` IDs in one request.
fn batch(server: &Server, id_type: &str, count: u64) -> Vec<String> {
    let (status, body) = ask(server, "POST", &format!("/{id_type}/ids?count={count}"));
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    let ids = answer["response"]["ids"].as_array().unwrap();
    ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}
