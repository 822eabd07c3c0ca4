//! `cargo xtask`: tasks that take more than one plain cargo command, for contributors and CI. Owns the command line;
//! each command is a module. Must never be needed to build or use Bates.

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use clap::{CommandFactory as _, Parser, Subcommand};

mod bench;
mod cargo;
mod deny;
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
  cargo xtask test                       install missing programs, then run all tests
  cargo xtask test -- -p bates-pattern   the tests of one crate
  cargo xtask tidy                       check the style rules
  cargo xtask tidy --bless               lower the recorded limits to the current values
  cargo xtask deny                       check the licences and sources of dependencies
  cargo xtask bench                      a short form of all benchmarks, and one table
  cargo xtask bench pattern              run one benchmark
  cargo xtask hunt --seconds 600         run each random test for ten minutes"
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Install missing programs, start a private PostgreSQL and Redis, and run the tests
    Test(test::Arguments),
    /// Check the style rules that a program can check
    Tidy(tidy::Arguments),
    /// Check licences, sources and bans of all dependencies, and advisories where their database is reachable
    Deny(deny::Arguments),
    /// Run a benchmark by its name, or a short form of all
    Bench(bench::Arguments),
    /// Run long random tests: cancelled calls, runtimes that end, lost answers, a Redis that loses data
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
        Some(Command::Deny(arguments)) => deny::run(&arguments),
        Some(Command::Bench(arguments)) => bench::run(&arguments),
        Some(Command::Hunt(arguments)) => hunt::run(&arguments),
        None => {
            Arguments::command().print_help()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The root of the repository, the parent of this package.
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
