//! The peer on PostgreSQL: statements of one's own, run by pgbench.

use std::process::Command;

use bates_testkit::{PrivatePostgres, programs};
use tempfile::TempDir;

/// Runs a script until the `limit`, such as `["--time", "4"]`. Returns its transactions per second.
pub(crate) fn rate(server: &PrivatePostgres, script: &str, clients: usize, limit: [&str; 2]) -> f64 {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("script.sql");
    std::fs::write(&file, script).unwrap();
    let program = programs::find("pgbench").expect("pgbench, which comes with the PostgreSQL server");
    let output = Command::new(program)
        .args(["--no-vacuum", "--file"])
        .arg(&file)
        .args(["--client", &clients.to_string(), "--jobs", &clients.min(2).to_string()])
        .args(limit)
        .arg(server.url())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let tps = stdout.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    tps.unwrap_or_else(|| panic!("{stdout}{}", String::from_utf8_lossy(&output.stderr)))
}

pub(crate) fn psql(server: &PrivatePostgres, sql: &str) {
    let program = programs::find("psql").expect("psql; run `cargo xtask test`, which installs it");
    let status = Command::new(program).args(["--quiet", "--command", sql, &server.url()]).status();
    assert!(status.unwrap().success());
}
