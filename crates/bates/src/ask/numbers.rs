//! `bates next` and `bates pop`: numbers from a running server, or from a shared pool; one a line, or a JSON array.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bates_client::{Pool, PopError, Settings};
use bates_pattern::Date;
use clap::Args;

use super::server::{Refused, ServerArgs, explain, secret};
use crate::output::{self, Answer, Output, counted};
use crate::scope;

/// Numbers in one call, to a server or a pool: they are printed while the next ones are taken.
const CHUNK: u64 = 10_000;
const POPPED_CHUNK: u64 = 1_000;

/// Who types a command does not notice it; a program that pops has less patience.
const DEADLINE: Duration = Duration::from_millis(250);

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
    #[command(flatten)]
    wanted: NumbersArgs,

    /// The business date, for a series that shows one; without it, today's
    #[arg(long, value_name = "DATE", value_parser = scope::date)]
    date: Option<Date>,

    /// Print a JSON array instead of lines
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// Take numbers from a shared pool, safely
///
/// Takes from the list in Redis as long as it is the one that Bates filled, and from Bates itself where Redis is away,
/// slow, empty, or came back with what it gave away before. Prints one a line. Exit code 1 if there are fewer than were
/// asked for.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates pop document project=PROJ type=9012 --redis redis://127.0.0.1:6379\n  \
    bates pop document project=PROJ type=9012 -n 100000 --redis redis://cache:6379 \\\n    \
    --url http://bates:8080 > numbers.txt")]
pub(crate) struct PopArgs {
    #[command(flatten)]
    wanted: NumbersArgs,

    #[arg(
        long,
        value_name = "URL",
        help = "The Redis server that has the pool; an address with a password is better kept in the variable \
                [env: BATES_REDIS]"
    )]
    redis: Option<String>,

    /// Print a JSON array instead of lines
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
struct NumbersArgs {
    /// The series
    series: String,

    /// The parameters of the scope
    #[arg(value_name = "NAME=VALUE")]
    parameters: Vec<String>,

    /// How many, up to 1,000,000
    #[arg(short = 'n', long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    count: u64,
}

/// What one call brought: numbers, and why no more follow.
struct Chunk {
    numbers: Vec<String>,
    end: Option<End>,
}

struct End {
    error: anyhow::Error,
    /// Whether the scope has no more, which is no failure behind numbers that it gave.
    is_exhausted: bool,
}

impl NextArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<Answer> {
        let NumbersArgs { series, parameters, count } = &self.wanted;
        let series = scope::series(&self.server.client()?, series, parameters, self.date)?;
        print(out, *count, self.json, CHUNK, async |wanted| match series.take(wanted).await {
            Ok(numbers) => Chunk { numbers, end: None },
            Err(error) => {
                let is_exhausted = matches!(error.code(), Some("exhausted" | "held_elsewhere"));
                Chunk { numbers: vec![], end: Some(End { error: explain(error.into()), is_exhausted }) }
            }
        })
        .await
    }
}

impl PopArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<Answer> {
        let redis = self.redis.clone().or_else(|| std::env::var("BATES_REDIS").ok());
        let redis = redis.context("which Redis server has the pool? Say --redis URL, or set BATES_REDIS")?;
        // An address that cannot be asked is told first.
        self.server.client()?;
        let scope = scope::pairs(&self.wanted.parameters)?.into_iter();
        let settings = Settings {
            secret: secret(),
            scope: scope.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            // Each call pops what it hands out, so that nothing is lost at the end.
            batch: 1,
            deadline: DEADLINE,
            ..Settings::new(self.server.url(), redis, &*self.wanted.series)
        };
        let pool = Pool::open(&settings)?;
        pool.attach().await;
        let pop = async |wanted| match pool.pop(wanted).await {
            Ok(numbers) => Chunk { numbers, end: None },
            Err(error) => {
                let is_exhausted = matches!(error, PopError::Exhausted { .. });
                // No other call gets what was popped for this one.
                Chunk { numbers: pool.rest(), end: Some(End { error: explain_pool(error), is_exhausted }) }
            }
        };
        let answer = print(out, self.wanted.count, self.json, POPPED_CHUNK, pop).await?;
        if let Some(trouble) = pool.trouble() {
            let trouble = output::printable(&trouble);
            output::print_note(&format!("some numbers came from Bates: Redis: {trouble}"));
        }
        Ok(answer)
    }
}

fn explain_pool(error: PopError) -> anyhow::Error {
    match error {
        PopError::Exhausted { detail, .. } => Refused::new("exhausted", &detail).into(),
        PopError::Refused { code, detail, .. } => Refused::new(&code, &detail).into(),
        error @ (PopError::Away { .. } | PopError::Forked) => {
            std::io::Error::other(output::printable(&error.to_string()).into_owned()).into()
        }
    }
}

/// Takes and prints that many numbers. Those that were taken are shown, whatever came then.
async fn print(
    out: &mut Output,
    count: u64,
    json: bool,
    chunk_max: u64,
    mut take: impl AsyncFnMut(usize) -> Chunk,
) -> Result<Answer> {
    let (mut all, mut taken, mut end) = (Vec::new(), 0, None);
    while taken < count && end.is_none() {
        let wanted = (count - taken).min(chunk_max);
        let chunk = take(usize::try_from(wanted)?).await;
        taken += chunk.numbers.len() as u64;
        end = chunk.end;
        if json {
            all.extend(chunk.numbers);
            continue;
        }
        for number in &chunk.numbers {
            writeln!(out, "{}", output::printable(number))?;
        }
    }
    if json && taken > 0 {
        out.json(&all)?;
    }
    out.flush()?;
    match end {
        Some(End { error, .. }) if taken == 0 => Err(error),
        Some(End { error, is_exhausted: false }) => {
            Err(error.context(format!("after {}", counted(taken, "number"))))
        }
        _ if taken == count => Ok(Answer::Yes),
        _ => {
            output::print_note(&format!("the scope ends here: {taken} of {}", counted(count, "number")));
            Ok(Answer::No)
        }
    }
}
