//! `bates next`: numbers from a running server.

use std::io::{BufRead, BufReader, IsTerminal};

use anyhow::Context;
use bates_pattern::Date;
use clap::Args;

use super::server::{ServerArgs, escaped};
use crate::output::{self, Answer, Output, counted};
use crate::scope;

/// Take the next numbers of a scope
///
/// Prints one a line. Exit code 1 if there are fewer than were asked for.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates next short\n  \
    bates next document project=PROJ type=9012 -n 3\n  \
    bates next farmer -n 100000 > farmers.txt\n  \
    BATES_SECRET=… bates next short --url https://numbers.example.org")]
pub(crate) struct NextArgs {
    /// The series
    series: String,

    /// The parameters of the scope
    #[arg(value_name = "NAME=VALUE")]
    parameters: Vec<String>,

    /// How many, up to 1,000,000
    #[arg(short = 'n', long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    count: u64,

    /// The business date, for a series that shows one; without it, today's
    #[arg(long, value_name = "DATE", value_parser = scope::date)]
    date: Option<Date>,

    /// Print a JSON array instead of lines
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn run(args: &NextArgs) -> anyhow::Result<Answer> {
    let scope: serde_json::Map<String, serde_json::Value> = scope::pairs(&args.parameters)?
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let date = args.date.map(|date| date.to_string());
    let ask = serde_json::json!({ "scope": scope, "count": args.count, "date": date });
    let lines = args.server.lines(&format!("/v1/series/{}/next", escaped(&args.series)), &ask)?;
    let mut out = Output::new();
    let mut taken = 0;
    let mut all = Vec::new();
    for line in BufReader::new(lines).lines() {
        let number =
            line.with_context(|| format!("the answer broke off after {}", counted(taken, "number")))?;
        taken += 1;
        if args.json {
            all.push(number);
        } else {
            out.line(format_args!("{}", output::printable(&number)))?;
        }
        if taken % 10_000 == 0 && std::io::stderr().is_terminal() {
            out.flush()?;
        }
    }
    if args.json {
        out.json(&all)?;
    }
    out.flush()?;
    if taken == args.count {
        return Ok(Answer::Yes);
    }
    output::print_note(&format!("the scope ends here: {} of {}", taken, counted(args.count, "number")));
    Ok(Answer::No)
}
