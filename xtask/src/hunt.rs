//! `cargo xtask hunt`: runs the long random tests in `crates/bates/tests/it/hunts`, one after the other.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::cargo;

/// The modules in `crates/bates/tests/it/hunts`.
const HUNTS: [&str; 4] = ["answers", "calls", "redis", "runtimes"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long each hunt lasts
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,
    /// The seed of the random choices; a run repeats as far as threads allow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only this hunt: answers, calls, redis or runtimes
    name: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let name = match &arguments.name {
        Some(name) if HUNTS.contains(&name.as_str()) => format!("hunts::{name}::"),
        Some(name) => bail!("unknown hunt {name:?}; expected one of {}", HUNTS.join(", ")),
        None => "hunts::".to_owned(),
    };
    let test_arguments =
        ["test", "-p", "bates", "--test", "it", "--", "--nocapture", "--test-threads=1", &name];
    let mut command = cargo::command();
    command.args(test_arguments);
    command.env("BATES_HUNT_SECONDS", arguments.seconds.to_string());
    command.env("BATES_HUNT_SEED", arguments.seed.to_string());
    Ok(cargo::exit_code(command.status()?))
}
