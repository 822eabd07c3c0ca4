//! Installs the programs that the tests need. Owns the only table of system packages. Must never edit the
//! configuration of the machine, or use services that a package may start: the tests run their own servers on their
//! own ports.

use std::{fmt::Write as _, process::Command};

use anyhow::{Context as _, Result, bail, ensure};
use bates_testkit::programs;

struct Program {
    binary: &'static str,
    /// Its package on Debian and Ubuntu.
    package: &'static str,
    /// Its name for other systems.
    product: &'static str,
}

const PROGRAMS: [Program; 16] = [
    Program { binary: "initdb", package: "postgresql", product: "the PostgreSQL server" },
    Program { binary: "postgres", package: "postgresql", product: "the PostgreSQL server" },
    Program { binary: "psql", package: "postgresql-client", product: "the PostgreSQL client" },
    Program { binary: "pgbouncer", package: "pgbouncer", product: "PgBouncer" },
    Program { binary: "redis-server", package: "redis-server", product: "the Redis server" },
    Program { binary: "redis-cli", package: "redis-tools", product: "the Redis client" },
    Program { binary: "redis-benchmark", package: "redis-tools", product: "the Redis client" },
    Program { binary: "strace", package: "strace", product: "strace, which injects faults" },
    Program { binary: "faketime", package: "faketime", product: "libfaketime, which makes clocks jump" },
    Program {
        binary: "unshare",
        package: "util-linux",
        product: "util-linux, which gives a test its own disk",
    },
    Program { binary: "openssl", package: "openssl", product: "OpenSSL, which makes certificates" },
    Program { binary: "curl", package: "curl", product: "curl, for the examples" },
    Program { binary: "pip3", package: "python3-pip", product: "pip, for the Redis client of Python" },
    Program { binary: "npm", package: "npm", product: "npm, for the Redis client of Node" },
    Program { binary: "promtool", package: "prometheus", product: "Prometheus, which tests alerts" },
    Program { binary: "systemd-analyze", package: "systemd", product: "systemd, which checks its units" },
];

/// Installs missing programs; needs root only if one is missing.
pub(crate) fn prepare() -> Result<()> {
    let is_missing = |binary: &str| programs::find(binary).is_none();
    let missing = missing(is_missing);
    if missing.is_empty() {
        return Ok(());
    }
    ensure!(programs::find("apt-get").is_some(), "{}", how_to_install(&missing));
    install(&missing)?;
    let still_missing = self::missing(is_missing);
    ensure!(still_missing.is_empty(), "after installing: {}", how_to_install(&still_missing));
    Ok(())
}

fn missing(is_missing: impl Fn(&str) -> bool) -> Vec<&'static Program> {
    PROGRAMS.iter().filter(|program| is_missing(program.binary)).collect()
}

fn packages(missing: &[&'static Program]) -> Vec<&'static str> {
    let mut packages: Vec<_> = missing.iter().map(|program| program.package).collect();
    packages.dedup();
    packages
}

fn how_to_install(missing: &[&'static Program]) -> String {
    let mut message =
        String::from("the tests need programs that are missing; install them and run the command again:");
    for Program { binary, product, .. } in missing {
        let _ = write!(message, "\n  {binary}, of {product}");
    }
    message
}

fn install(missing: &[&'static Program]) -> Result<()> {
    let packages = packages(missing);
    let as_root = as_root(is_root()?, programs::find("sudo").is_some())
        .with_context(|| format!("cannot install {}", packages.join(", ")))?;
    eprintln!("    installing {}", packages.join(", "));
    apt_get(as_root, &["update", "-qq"])?;
    apt_get(as_root, &[&["install", "-y", "-qq", "--no-install-recommends"], packages.as_slice()].concat())
}

/// The prefix of a command that only root may run.
fn as_root(is_root: bool, has_sudo: bool) -> Result<&'static [&'static str]> {
    match (is_root, has_sudo) {
        (true, _) => Ok(&[]),
        (false, true) => Ok(&["sudo"]),
        (false, false) => bail!("installing packages needs root or sudo"),
    }
}

/// `env` stands between because `sudo` drops the environment.
fn apt_get(as_root: &[&str], arguments: &[&str]) -> Result<()> {
    let command = [as_root, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], arguments].concat();
    let line = command.join(" ");
    let status = Command::new(command[0]).args(&command[1..]).status();
    let status = status.with_context(|| format!("cannot run `{line}`"))?;
    ensure!(status.success(), "`{line}` failed: {status}");
    Ok(())
}

fn is_root() -> Result<bool> {
    let output = Command::new("id").arg("-u").output().context("cannot run id -u")?;
    Ok(output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_machine_needs_no_program() {
        assert!(missing(|_| false).is_empty());
    }

    #[test]
    fn each_package_is_installed_once() {
        let all = missing(|_| true);
        assert_eq!(
            packages(&all),
            [
                "postgresql",
                "postgresql-client",
                "pgbouncer",
                "redis-server",
                "redis-tools",
                "strace",
                "faketime",
                "util-linux",
                "openssl",
                "curl",
                "python3-pip",
                "npm",
                "prometheus",
                "systemd"
            ]
        );
    }

    #[test]
    fn only_root_needs_no_sudo() {
        assert!(as_root(true, false).unwrap().is_empty());
        assert_eq!(as_root(false, true).unwrap(), ["sudo"]);
        assert!(as_root(false, false).is_err());
    }

    #[test]
    fn the_message_without_apt_names_the_missing_programs() {
        let message = how_to_install(&missing(|binary| binary == "redis-server"));
        assert!(message.contains("redis-server, of the Redis server"));
        assert!(!message.contains("initdb"));
    }
}
