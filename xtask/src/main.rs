//! `cargo xtask`: everything a contributor or CI runs that is more than one plain cargo command. Owns the
//! command line; each command is a module. Must never be needed to build or use Bates.

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use clap::{CommandFactory as _, Parser, Subcommand};

mod bench;
mod cargo;
mod hunt;
mod libraries;
mod machine;
mod step;
mod test;
mod tidy;

#[derive(Parser)]
#[command(
    bin_name = "cargo xtask",
    about = "Tests, checks and measures Bates",
    disable_help_subcommand = true,
    after_help = "Examples:
  cargo xtask test                       install what the tests need, then run all of them
  cargo xtask test -- -p bates-pattern   the tests of one crate
  cargo xtask tidy                       check the style rules
  cargo xtask tidy --bless               lower the recorded sizes to what they have shrunk to
  cargo xtask bench pattern              run one benchmark
  cargo xtask hunt --seconds 600         look for broken promises at random, for as long as is said"
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Install what is missing, start a private PostgreSQL and Redis, run the tests
    Test(test::Arguments),
    /// Check the style rules that a program can check
    Tidy(tidy::Arguments),
    /// Run a benchmark by its name
    Bench(bench::Arguments),
    /// Look for broken promises at random: calls given up, runtimes that end, lost answers, a Redis that forgets
    Hunt(hunt::Arguments),
}

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode> {
    match Arguments::parse().command {
        Some(Command::Test(arguments)) => test::run(&arguments),
        Some(Command::Tidy(arguments)) => tidy::run(&arguments),
        Some(Command::Bench(arguments)) => bench::run(&arguments),
        Some(Command::Hunt(arguments)) => hunt::run(&arguments),
        None => {
            Arguments::command().print_help()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The root of the repository: this package lies directly under it.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a package folder has a parent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.toml").is_file());
        assert!(root().join("xtask").is_dir());
    }
}
