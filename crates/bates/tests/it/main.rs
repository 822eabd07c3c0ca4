//! Tests of the binary: server processes, commands, and every transcript in the documentation.
#![allow(clippy::unwrap_used)]

mod abuse;
mod audit;
mod backup;
mod client;
mod clock;
mod cluster;
mod commands;
mod crash;
mod damaged;
mod deploy;
mod disk;
mod disk_full;
mod documents;
mod embed;
mod errors;
mod examples;
mod failing_store;
mod http;
mod http_safety;
mod hunts;
mod incrby;
mod leases;
mod listed;
mod load;
mod metrics;
mod moves;
mod nodes;
mod openapi;
mod openg2p;
mod pools;
mod popping;
mod process;
mod promises;
mod recalls;
mod redis_clients;
mod restored;
mod rights;
mod running;
mod secret;
mod series_changes;
mod server;
mod shared_store;
mod store_choice;
mod tls;
mod wire;

#[test]
fn transcripts_hold() {
    let cases = trycmd::TestCases::new();
    cases.case("../../README.md").case("../../docs/*.md").case("tests/cli/*.md");
    // Independent of the terminal that runs the tests.
    cases.env("COLUMNS", "100").env("CLICOLOR_FORCE", "0").env("NO_COLOR", "1");
}
