//! The benchmarks that start a server: `cargo xtask bench NAME`. Each file measures one kind of work beside a peer in the same
//! run, and prints a [`comparison::Comparison`] for each. `--short` takes fewer samples.
// They poll processes and pause; counts stay far below 2^52.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::cast_precision_loss)]

mod attack;
mod client;
mod comparison;
mod documents;
mod http;
mod instructions;
mod openg2p;
mod pgbench;
mod postgres;
mod redis;
mod scopes;
mod serve;
mod server;

/// Arguments after the name of the benchmark.
struct Arguments(Vec<String>);

impl Arguments {
    fn is_short(&self) -> bool {
        self.0.iter().any(|argument| argument == "--short")
    }

    fn value_of(&self, option: &str) -> Option<&str> {
        self.0.iter().skip_while(|argument| *argument != option).nth(1).map(String::as_str)
    }
}

fn main() {
    // Cargo adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let name = arguments.next().unwrap_or_default();
    let run = match &*name {
        "attack" => attack::run,
        "client" => client::run,
        "documents" => documents::run,
        "http" => http::run,
        "instructions" => instructions::run,
        "openg2p" => openg2p::run,
        "postgres" => postgres::run,
        "redis" => redis::run,
        "scopes" => scopes::run,
        "serve" => serve::run,
        _ => panic!("no benchmark is named `{name}`"),
    };
    run(&Arguments(arguments.collect()));
}
