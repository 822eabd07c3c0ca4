//! `cargo xtask bench [NAME]`: runs one benchmark, or a short form of all that have a peer or an aim, and prints one table. Owns
//! the table of names. Must never measure anything itself.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, ensure};

use crate::cargo;

struct Bench {
    name: &'static str,
    package: &'static str,
    /// The target, and its first argument.
    runs: &'static [(&'static str, &'static str)],
    /// Whether it prints comparisons, also in a short form.
    compares: bool,
}

const BENCHES: [Bench; 13] = [
    Bench::comparing("serve", "bates", &[("compare", "serve"), ("compare", "http"), ("compare", "scopes")]),
    Bench::comparing("client", "bates", &[("compare", "client")]),
    Bench::comparing("redis", "bates", &[("compare", "redis")]),
    Bench::comparing("postgres", "bates", &[("compare", "postgres")]),
    Bench::comparing("documents", "bates", &[("compare", "documents")]),
    Bench::comparing("openg2p", "bates", &[("compare", "openg2p")]),
    Bench::comparing("attack", "bates", &[("compare", "attack")]),
    Bench::comparing("pattern", "bates-pattern", &[("pattern", "")]),
    Bench::comparing("resp", "bates-server", &[("resp", "")]),
    Bench::plain("instructions", "bates", &[("compare", "instructions")]),
    Bench::plain("outbox", "bates-postgres", &[("documents", "")]),
    Bench::plain("sqlite", "bates-sqlite", &[("grants", "")]),
    Bench::plain("sinks", "bates-sinks", &[("folder", "")]),
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The name of the benchmark; without it, a short form of all that have a peer or an aim
    name: Option<String>,
    /// Arguments for the benchmark itself
    #[arg(last = true, value_name = "BENCHMARK ARGUMENTS")]
    bench: Vec<String>,
}

impl Bench {
    const fn comparing(
        name: &'static str,
        package: &'static str,
        runs: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { name, package, runs, compares: true }
    }

    const fn plain(
        name: &'static str,
        package: &'static str,
        runs: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { compares: false, ..Self::comparing(name, package, runs) }
    }

    fn commands(&self) -> impl Iterator<Item = Command> {
        self.runs.iter().map(|(target, argument)| {
            let mut command = cargo::command();
            command.args(["bench", "--package", self.package, "--bench", target, "--"]);
            command.args(Some(argument).filter(|argument| !argument.is_empty()));
            command
        })
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Some(name) = &arguments.name else { return run_all() };
    for mut command in find(name)?.commands() {
        let status = command.args(&arguments.bench).status().context("cannot run cargo")?;
        if !status.success() {
            return Ok(cargo::exit_code(status));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run_all() -> Result<ExitCode> {
    for package in ["bates", "bates-pattern", "bates-server"] {
        let status = cargo::command().args(["bench", "--no-run", "--package", package]).status();
        ensure!(
            status.context("cannot run cargo")?.success(),
            "the benchmarks of `{package}` do not compile"
        );
    }
    let (began, mut rows) = (Instant::now(), Vec::new());
    for bench in BENCHES.iter().filter(|bench| bench.compares) {
        for mut command in bench.commands() {
            rows.extend(comparisons(command.arg("--short"))?);
        }
    }
    println!("\n{}", table(&rows));
    println!("{} comparisons in {} s", rows.len(), began.elapsed().as_secs());
    Ok(ExitCode::SUCCESS)
}

/// A line of the table: work, peer, result, aim, and `missed` or nothing.
type Row = [String; 5];

/// Runs a benchmark, shows what it prints, and returns its comparisons.
fn comparisons(command: &mut Command) -> Result<Vec<Row>> {
    let mut child = command
        .env("BENCH_COMPARISONS", "1")
        .env("CARGO_TERM_QUIET", "true")
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let mut rows = Vec::new();
    for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
        let line = line.context("cannot read the output of a benchmark")?;
        match line.strip_prefix("comparison\t") {
            Some(row) => rows.push(parse(row)?),
            None => println!("{line}"),
        }
    }
    ensure!(child.wait()?.success(), "a benchmark failed: {command:?}");
    Ok(rows)
}

fn parse(row: &str) -> Result<Row> {
    let cells: Vec<String> = row.split('\t').map(str::to_owned).collect();
    cells.try_into().map_err(|cells| anyhow!("not a comparison: {cells:?}"))
}

fn table(rows: &[Row]) -> String {
    let heading = ["work", "peer", "ratio", "aim", ""].map(str::to_owned);
    let all = || std::iter::once(&heading).chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    let line = |row: &Row| {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            2 => format!("{cell:>width$}"),
            _ => format!("{cell:width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all().map(line).collect::<Vec<_>>().join("\n")
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
            "unknown benchmark `patern`; expected one of serve, client, redis, postgres, documents, openg2p, attack, pattern, resp, instructions, outbox, sqlite, sinks"
        );
    }
    #[test]
    fn a_table_aligns_its_columns() {
        let rows =
            ["INCR\tRedis\t1.12\t≥ 1.00\t", "stop\t\t113 s\t≤ 15.0 s\tmissed"].map(|row| parse(row).unwrap());
        let expected =
            "work  peer   ratio  aim\nINCR  Redis   1.12  ≥ 1.00\nstop         113 s  ≤ 15.0 s  missed";
        assert_eq!(table(&rows), expected);
        assert!(parse("INCR\tRedis").is_err());
    }
}
