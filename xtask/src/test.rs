//! `cargo xtask test`: takes a fresh machine to a test result in one command. Owns the order of the steps and the
//! environment of the tests. Must never end without stopping the servers that it started.

use std::{
    fmt::Display,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result, ensure};
use bates_testkit::{
    PrivatePostgres, PrivateRedis,
    shared_servers::{POSTGRES_VARIABLE, REDIS_VARIABLE},
};

use crate::{cargo, libraries, machine, step::step};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Arguments for `cargo test`; without a package, the whole workspace is tested
    #[arg(last = true, value_name = "CARGO TEST ARGUMENTS")]
    cargo: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    step("look for the programs that the tests need", machine::prepare)?;
    step("look for the client libraries that the tests need", libraries::prepare)?;
    if !names_package(&arguments.cargo) {
        step("check the library without the binary", check_library)?;
    }
    // Dropping these stops the servers, on every path out of this function.
    let postgres = step("start a private PostgreSQL", || Ok(PrivatePostgres::start()?))?;
    let redis = step("start a private Redis", || Ok(PrivateRedis::start()?))?;
    let mut command = test_command(&arguments.cargo, postgres.url(), redis.url());
    let status = step(&describe(&command), || command.status().context("cannot run cargo"))?;
    Ok(cargo::exit_code(status))
}

/// The library must compile without the dependencies of the binary.
fn check_library() -> Result<()> {
    let arguments = ["check", "--package", "bates", "--lib", "--no-default-features"];
    let status = cargo::command().args(arguments).status().context("cannot run cargo")?;
    ensure!(status.success(), "the library of `bates` does not compile without its default features");
    Ok(())
}

/// Without `--all-targets`, which would skip the documentation tests.
fn test_command(arguments: &[String], postgres: impl Display, redis: impl Display) -> Command {
    let mut command = cargo::command();
    command.arg("test");
    if !names_package(arguments) {
        command.arg("--workspace");
    }
    command.args(arguments);
    command.env(POSTGRES_VARIABLE, postgres.to_string()).env(REDIS_VARIABLE, redis.to_string());
    command
}

/// With `--workspace`, cargo ignores `--package`, so the two are never combined.
fn names_package(arguments: &[String]) -> bool {
    arguments
        .iter()
        .take_while(|argument| *argument != "--")
        .any(|argument| argument.starts_with("-p") || argument.starts_with("--package"))
}

fn describe(command: &Command) -> String {
    let words = command.get_args().map(|word| word.to_string_lossy());
    std::iter::once("cargo".into()).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(arguments: &[&str]) -> String {
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        describe(&test_command(&arguments, "postgres://", "redis://"))
    }

    #[test]
    fn the_whole_workspace_is_tested_unless_a_package_is_named() {
        assert_eq!(line(&[]), "cargo test --workspace");
        assert_eq!(line(&["--release"]), "cargo test --workspace --release");
        assert_eq!(line(&["-p", "bates-pattern"]), "cargo test -p bates-pattern");
        assert_eq!(line(&["--package=bates-pattern"]), "cargo test --package=bates-pattern");
    }

    #[test]
    fn arguments_after_two_dashes_reach_the_test_binaries() {
        assert_eq!(line(&["--", "-p"]), "cargo test --workspace -- -p");
    }

    #[test]
    fn the_environment_names_the_servers() {
        let command = test_command(&[], "postgres://here", "redis://there");
        let variables: Vec<_> =
            command.get_envs().filter_map(|(name, value)| name.to_str().zip(value?.to_str())).collect();
        assert_eq!(variables, [(POSTGRES_VARIABLE, "postgres://here"), (REDIS_VARIABLE, "redis://there")]);
    }
}
