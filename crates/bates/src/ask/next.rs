//! `bates next`: numbers from a running server.

use bates_pattern::Date;
use clap::Args;

use super::numbers::{self, Chunk, End};
use super::server::{ServerArgs, explain};
use crate::output::Answer;
use crate::scope;

/// Numbers in one call: they are printed while the next ones are taken.
const CHUNK: u64 = 10_000;

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
    args.server.ask(async |client| {
        let series = scope::series(&client, &args.series, &args.parameters, args.date)?;
        numbers::print(args.count, args.json, CHUNK, async |wanted| match series.take(wanted).await {
            Ok(numbers) => Chunk { numbers, end: None },
            Err(error) => {
                let is_exhausted = matches!(error.code(), Some("exhausted" | "held_elsewhere"));
                let end = Some(End { error: explain(error), is_exhausted });
                Chunk { numbers: Vec::new(), end }
            }
        })
        .await
    })
}
