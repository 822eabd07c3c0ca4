//! The command line as a user sees it: every transcript of the documentation is run and compared.
#![allow(clippy::unwrap_used)]

mod asking;
mod audit;
mod changing;
mod client;
mod clients;
mod clock;
mod cluster;
mod crash;
mod damaged;
mod deploy;
mod disk;
mod disk_full;
mod documents;
mod embed;
mod errors;
mod examples;
mod failing;
mod http;
mod hunts;
mod leases;
mod load;
mod metrics;
mod moves;
mod nodes;
mod openg2p;
mod pools;
mod process;
mod promises;
mod recalls;
mod restored;
mod running;
mod runs;
mod secret;
mod server;
mod shared_store;
mod wire;

#[test]
fn transcripts_hold() {
    let cases = trycmd::TestCases::new();
    cases.case("../../README.md").case("../../docs/*.md").case("tests/cli/*.md");
    // Whatever the terminal of who runs this is like.
    cases.env("COLUMNS", "100").env("CLICOLOR_FORCE", "0").env("NO_COLOR", "1");
}
