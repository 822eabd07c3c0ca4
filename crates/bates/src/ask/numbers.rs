//! `bates next`, `bates pop` and `bates peek`: numbers from a running server or a shared pool, and what comes next.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bates_client::{Pool, PopError, Settings};
use bates_pattern::Date;
use clap::Args;

use super::server::{Refused, ServerArgs, explain, secret};
use crate::output::{self, Answer, Output, counted};
use crate::scope;

/// Numbers are printed while the next chunk is taken.
const CHUNK: u64 = 10_000;
const POPPED_CHUNK: u64 = 1_000;

/// A person at a terminal waits longer than a program.
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

/// Look at a scope without taking a number
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bates peek short\n  bates peek document project=PROJ type=9012 --json")]
pub(crate) struct PeekArgs {
    /// The series
    series: String,

    /// The parameters of the scope
    #[arg(value_name = "NAME=VALUE")]
    parameters: Vec<String>,

    /// The business date, for a series that starts again by date; without it, today's
    #[arg(long, value_name = "DATE", value_parser = scope::date)]
    date: Option<Date>,

    /// Print JSON
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

/// Why no more numbers follow.
struct End {
    error: anyhow::Error,
    /// Numbers that were taken before the failure.
    rest: Vec<String>,
    /// The scope has no more numbers, which is no error after some were printed.
    is_exhausted: bool,
}

impl NextArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<Answer> {
        let NumbersArgs { series, parameters, count } = &self.wanted;
        let series = scope::series(&self.server.client()?, series, parameters, self.date)?;
        let next = async |wanted| {
            series.take(wanted).await.map_err(|error| {
                let is_exhausted = matches!(error.code(), Some("exhausted" | "held_elsewhere"));
                End { error: explain(error.into()), rest: vec![], is_exhausted }
            })
        };
        print(out, *count, self.json, CHUNK, next).await
    }
}

impl PopArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<Answer> {
        let redis = self.redis.clone().or_else(|| std::env::var("BATES_REDIS").ok());
        let redis = redis.context("which Redis server has the pool? Say --redis URL, or set BATES_REDIS")?;
        // Report a bad address first.
        self.server.client()?;
        let scope = scope::pairs(&self.wanted.parameters)?.into_iter();
        let settings = Settings {
            secret: secret(),
            scope: scope.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            // Pop only what is printed, so that nothing is lost at the end.
            batch: 1,
            deadline: DEADLINE,
            ..Settings::new(self.server.url(), redis, &*self.wanted.series)
        };
        let pool = Pool::open(&settings)?;
        pool.attach().await;
        let pop = async |wanted| {
            pool.pop(wanted).await.map_err(|error| {
                let is_exhausted = matches!(error, PopError::Exhausted { .. });
                End { error: explain_pool(error), rest: pool.rest(), is_exhausted }
            })
        };
        let answer = print(out, self.wanted.count, self.json, POPPED_CHUNK, pop).await?;
        if let Some(trouble) = pool.trouble() {
            let trouble = output::printable(&trouble);
            output::print_note(&format!("some numbers came from Bates: Redis: {trouble}"));
        }
        Ok(answer)
    }
}

impl PeekArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<Answer> {
        let series = scope::series(&self.server.client()?, &self.series, &self.parameters, self.date)?;
        let peek = series.peek().await?;
        if self.json {
            out.json(&peek)?;
        } else {
            let position = |position: Option<u64>, none: &str| {
                position.map_or(none.to_owned(), |at| format!("position {at}"))
            };
            let about = if peek.left_is_estimate { "about " } else { "" };
            writeln!(out, "last  {}", position(peek.last, "none yet"))?;
            writeln!(out, "next  {}", position(peek.next, "none: the scope is exhausted"))?;
            writeln!(out, "left  {about}{}", counted(peek.left, "number"))?;
        }
        Ok(if peek.next.is_some() { Answer::Yes } else { Answer::No })
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

/// Numbers that were taken are printed, also when a later call fails.
async fn print(
    out: &mut Output,
    count: u64,
    json: bool,
    chunk_max: u64,
    mut take: impl AsyncFnMut(usize) -> Result<Vec<String>, End>,
) -> Result<Answer> {
    let (mut all, mut taken, mut end) = (Vec::new(), 0, None);
    while taken < count && end.is_none() {
        let wanted = (count - taken).min(chunk_max);
        let numbers = take(usize::try_from(wanted)?).await.unwrap_or_else(|mut failed| {
            let rest = std::mem::take(&mut failed.rest);
            end = Some(failed);
            rest
        });
        taken += numbers.len() as u64;
        if json {
            all.extend(numbers);
            continue;
        }
        for number in &numbers {
            writeln!(out, "{}", output::printable(number))?;
        }
    }
    if json && taken > 0 {
        out.json(&all)?;
    }
    out.flush()?;
    match end {
        Some(End { error, .. }) if taken == 0 => Err(error),
        Some(End { error, is_exhausted: false, .. }) => {
            Err(error.context(format!("after {}", counted(taken, "number"))))
        }
        _ if taken == count => Ok(Answer::Yes),
        _ => {
            output::print_note(&format!("the scope ends here: {taken} of {}", counted(count, "number")));
            Ok(Answer::No)
        }
    }
}
