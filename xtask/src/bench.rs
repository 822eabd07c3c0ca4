//! `cargo xtask bench NAME`: runs a benchmark by a short name. Owns the table of names. Must never measure anything
//! itself.

use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};

use crate::cargo;

struct Bench {
    name: &'static str,
    package: &'static str,
    /// Run one after the other.
    targets: &'static [&'static str],
}

const BENCHES: [Bench; 13] = [
    Bench { name: "pattern", package: "bates-pattern", targets: &["pattern"] },
    Bench { name: "resp", package: "bates-server", targets: &["resp"] },
    Bench { name: "serve", package: "bates", targets: &["serve", "http", "scopes"] },
    Bench { name: "attack", package: "bates", targets: &["attack"] },
    Bench { name: "postgres", package: "bates", targets: &["postgres"] },
    Bench { name: "documents", package: "bates", targets: &["documents"] },
    Bench { name: "outbox", package: "bates-postgres", targets: &["documents"] },
    Bench { name: "openg2p", package: "bates", targets: &["openg2p"] },
    Bench { name: "redis", package: "bates", targets: &["redis"] },
    Bench { name: "client", package: "bates", targets: &["client"] },
    Bench { name: "instructions", package: "bates", targets: &["instructions"] },
    Bench { name: "sqlite", package: "bates-sqlite", targets: &["grants"] },
    Bench { name: "sinks", package: "bates-sinks", targets: &["folder"] },
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The name of the benchmark
    name: String,
    /// Arguments for the benchmark itself
    #[arg(last = true, value_name = "BENCHMARK ARGUMENTS")]
    bench: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Bench { package, targets, .. } = find(&arguments.name)?;
    for target in *targets {
        let status = cargo::command()
            .args(["bench", "--package", package, "--bench", target, "--"])
            .args(&arguments.bench)
            .status()
            .context("cannot run cargo")?;
        if !status.success() {
            return Ok(cargo::exit_code(status));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn find(name: &str) -> Result<&'static Bench> {
    BENCHES.iter().find(|bench| bench.name == name).ok_or_else(|| {
        let known: Vec<_> = BENCHES.iter().map(|bench| bench.name).collect();
        anyhow!("unknown benchmark `{name}`; expected one of {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_benchmark_is_found() {
        assert_eq!(find("pattern").unwrap().package, "bates-pattern");
    }

    #[test]
    fn the_error_for_an_unknown_benchmark_lists_the_names() {
        let message = find("patern").map(|_| ()).unwrap_err().to_string();
        assert_eq!(
            message,
            "unknown benchmark `patern`; expected one of pattern, resp, serve, attack, postgres, documents, outbox, openg2p, redis, client, instructions, sqlite, sinks"
        );
    }
}
