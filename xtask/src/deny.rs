//! `cargo xtask deny`: licences, sources and bans of all dependencies by the rules in `deny.toml`, with a pinned
//! cargo-deny that it builds into `target/`. Must never skip a check without saying so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::{cargo, step::step};

const VERSION: &str = "0.20.2";

/// The workspace, and the package outside it.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

const ADVISORIES: &str = "https://github.com/RustSec/advisory-db";

#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments) -> Result<ExitCode> {
    let program = program();
    if !program.is_file() {
        step(&format!("build cargo-deny {VERSION}"), install)?;
    }
    for manifest in MANIFESTS {
        step(&format!("check bans, licences and sources of {manifest}"), || {
            check(&program, manifest, &["bans", "licenses", "sources"])
        })?;
    }
    if !are_advisories_reachable() {
        eprintln!("==> SKIPPED: advisories were not checked, because {ADVISORIES} is not reachable");
        return Ok(ExitCode::SUCCESS);
    }
    for manifest in MANIFESTS {
        step(&format!("check advisories about {manifest}"), || check(&program, manifest, &["advisories"]))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Each version has its own folder.
fn folder() -> PathBuf {
    crate::root().join(format!("target/tools/cargo-deny-{VERSION}"))
}

fn program() -> PathBuf {
    folder().join("bin/cargo-deny")
}

/// Installs into a temporary folder and renames it when complete, so that an interrupted build does not count. Without
/// optimization: the checks take seconds all the same.
fn install() -> Result<()> {
    let unfinished = folder().with_added_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    let mut command = cargo::command();
    command.args(["install", "cargo-deny", "--version", VERSION, "--locked", "--debug", "--quiet", "--root"]);
    command.arg(&unfinished).env("CARGO_PROFILE_DEV_DEBUG", "0");
    let status = command.status().context("cannot run cargo")?;
    ensure!(status.success(), "cargo-deny {VERSION} cannot be built");
    Ok(fs::rename(unfinished, folder())?)
}

fn check(program: &Path, manifest: &str, checks: &[&str]) -> Result<()> {
    let status = check_command(program, manifest, checks).status();
    let status = status.with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(status.success(), "cargo-deny refuses a dependency of {manifest}; deny.toml has the rules");
    Ok(())
}

/// Duplicate versions are allowed, so they are not printed each time.
fn check_command(program: &Path, manifest: &str, checks: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.current_dir(crate::root()).args(["--manifest-path", manifest, "--config", "deny.toml"]);
    command.args([
        "--log-level",
        "error",
        "check",
        "--allow",
        "duplicate",
        "--allow",
        "license-not-encountered",
    ]);
    command
        .args(["--allow", "license-exception-not-encountered", "--allow", "unnecessary-skip"])
        .args(checks);
    command
}

fn are_advisories_reachable() -> bool {
    let mut git = Command::new("git");
    git.args(["ls-remote", ADVISORIES, "HEAD"]).env("GIT_TERMINAL_PROMPT", "0");
    git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    git.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_outside_the_workspace_is_checked_too() {
        let workspace = fs::read_to_string(crate::root().join("Cargo.toml")).expect("the manifest");
        let excluded = workspace.lines().find_map(|line| line.strip_prefix("exclude = [")).expect("a list");
        let excluded = excluded.trim_end_matches(']').split(',').map(|name| name.trim().trim_matches('"'));
        let expected: Vec<String> = excluded.map(|folder| format!("{folder}/Cargo.toml")).collect();
        assert_eq!(MANIFESTS[1..], expected);
    }
}
