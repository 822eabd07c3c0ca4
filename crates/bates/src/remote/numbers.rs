//! `bates next`, `bates pop` and `bates peek`: take numbers from a running server or a shared pool, or look at the
//! next one.
#![allow(clippy::doc_markdown, reason = "clap prints these comments as they are")]

use std::time::Duration;

use anyhow::{Context as _, Result};
use bates_client::{Pool, PopError, Settings};
use bates_pattern::Date;
use clap::Args;

use super::server::{Refusal, ServerArgs, explain, secret};
use crate::output::{self, Answer, Output, count_of};
use crate::scope;

/// Numbers taken and printed at a time.
const CHUNK: u64 = 10_000;
const POPPED_CHUNK: u64 = 1_000;

/// How long to wait for Redis: longer than in a program, because a person waits at a terminal.
const DEADLINE: Duration = Duration::from_millis(250);

/// Take the next numbers of a scope
///
/// Prints one number per line. Exit code 1 if the scope has fewer numbers than requested.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates next short\n  \
    bates next document project=PROJ type=9012 -n 3\n  \
    bates next farmer -n 100000 > farmers.txt\n  \
    BATES_SECRET=… bates next short --url https://numbers.example.org")]
pub(crate) struct NextArgs {
    #[command(flatten)]
    numbers: NumbersArgs,

    /// The business date, for a series that shows one [default: today]
    #[arg(long, value_name = "DATE", value_parser = scope::date)]
    date: Option<Date>,
}

/// Take numbers from a shared pool
///
/// Takes from the list in Redis while it is the list that Bates filled. Takes from Bates itself if Redis is
/// unreachable, slow, empty, or restored to an earlier state. Prints one number per line. Exit code 1 if the scope
/// has fewer numbers than requested.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates pop document project=PROJ type=9012 --redis redis://127.0.0.1:6379\n  \
    bates pop document project=PROJ type=9012 -n 100000 --redis redis://cache:6379 \\\n    \
    --url http://bates:8080 > numbers.txt")]
pub(crate) struct PopArgs {
    #[command(flatten)]
    numbers: NumbersArgs,

    /// The Redis server with the pool; set an address with a password in the variable [env: BATES_REDIS]
    #[arg(long, value_name = "URL")]
    redis: Option<String>,
}

/// Look at the next position of a scope without taking it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bates peek short\n  bates peek document project=PROJ type=9012 --json")]
pub(crate) struct PeekArgs {
    /// The series
    series: String,

    /// The parameters of the scope
    #[arg(value_name = "NAME=VALUE")]
    parameters: Vec<String>,

    /// The business date, for a series that restarts by date [default: today]
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

    /// How many numbers, up to 1,000,000
    #[arg(short = 'n', long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    count: u64,

    /// Print a JSON array instead of lines
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// Why no more numbers follow.
struct TakeFailure {
    error: anyhow::Error,
    /// Numbers that were taken before the failure.
    rest: Vec<String>,
    /// The scope has no more numbers. That is not an error if some were printed.
    is_exhausted: bool,
}

impl NextArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<Answer> {
        let NumbersArgs { series, parameters, count, json, server } = &self.numbers;
        let series = scope::series(&server.client()?, series, parameters, self.date)?;
        let next = async |count| {
            let taken = series.take(count).await;
            taken.map(|numbers| numbers.into_iter().map(String::from).collect()).map_err(|error| {
                let is_exhausted = matches!(error.code(), Some("exhausted" | "held_elsewhere"));
                TakeFailure { error: explain(error.into()), rest: vec![], is_exhausted }
            })
        };
        print(out, *count, *json, CHUNK, next).await
    }
}

impl PopArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<Answer> {
        let redis = self.redis.clone().or_else(|| std::env::var("BATES_REDIS").ok());
        let redis = redis.context("missing address of Redis: give --redis URL, or set BATES_REDIS")?;
        let NumbersArgs { series, parameters, count, json, server } = &self.numbers;
        // Report an invalid server address first.
        server.client()?;
        let scope = scope::pairs(parameters)?.into_iter();
        let settings = Settings {
            secret: secret(),
            scope: scope.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            // Pop only as many as are printed, so that none is lost at the end.
            batch: 1,
            deadline: DEADLINE,
            ..Settings::new(server.url(), redis, &**series)
        };
        let pool = Pool::open(&settings)?;
        pool.attach().await;
        let pop = async |count| {
            pool.pop(count).await.map_err(|error| {
                let is_exhausted = matches!(error, PopError::Exhausted { .. });
                TakeFailure { error: explain_pool(error), rest: pool.rest(), is_exhausted }
            })
        };
        let answer = print(out, *count, *json, POPPED_CHUNK, pop).await?;
        if let Some(trouble) = pool.trouble() {
            let trouble = output::sanitize(&trouble);
            output::print_note(&format!("some numbers came from Bates instead of Redis: {trouble}"));
        }
        Ok(answer)
    }
}

impl PeekArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<Answer> {
        let series = scope::series(&self.server.client()?, &self.series, &self.parameters, self.date)?;
        let peek = series.peek().await?;
        if self.json {
            out.print_json(&peek)?;
        } else {
            let position =
                |at: Option<u64>, none: &str| at.map_or(none.into(), |at| format!("position {at}"));
            let about = if peek.left_is_estimate { "about " } else { "" };
            writeln!(out, "last  {}", position(peek.last, "none yet"))?;
            writeln!(out, "next  {}", position(peek.next, "none: the scope is exhausted"))?;
            writeln!(out, "left  {about}{}", count_of(peek.left, "number"))?;
        }
        Ok(if peek.next.is_some() { Answer::Yes } else { Answer::No })
    }
}

fn explain_pool(error: PopError) -> anyhow::Error {
    match error {
        PopError::Exhausted { detail, .. } => Refusal::new("exhausted", &detail).into(),
        PopError::Refused { code, detail, .. } => Refusal::new(&code, &detail).into(),
        error @ (PopError::Away { .. } | PopError::Forked) => {
            std::io::Error::other(output::sanitize(&error.to_string()).into_owned()).into()
        }
    }
}

/// Takes and prints numbers. Prints those that were taken even if a later call fails.
async fn print(
    out: &mut Output,
    count: u64,
    json: bool,
    chunk_max: u64,
    mut take: impl AsyncFnMut(usize) -> Result<Vec<String>, TakeFailure>,
) -> Result<Answer> {
    let (mut all, mut taken, mut failure) = (Vec::new(), 0, None);
    while taken < count && failure.is_none() {
        let chunk = (count - taken).min(chunk_max);
        let numbers = take(usize::try_from(chunk)?).await.unwrap_or_else(|mut failed| {
            let rest = std::mem::take(&mut failed.rest);
            failure = Some(failed);
            rest
        });
        taken += numbers.len() as u64;
        if json {
            all.extend(numbers);
        } else {
            numbers.iter().try_for_each(|number| writeln!(out, "{}", output::sanitize(number)))?;
        }
    }
    if json && taken > 0 {
        out.print_json(&all)?;
    }
    out.flush()?;
    answer(failure, taken, count)
}

fn answer(failure: Option<TakeFailure>, taken: u64, count: u64) -> Result<Answer> {
    match failure {
        Some(TakeFailure { error, .. }) if taken == 0 => Err(error),
        Some(TakeFailure { error, is_exhausted: false, .. }) => {
            Err(error.context(format!("failed after {}", count_of(taken, "number"))))
        }
        _ if taken == count => Ok(Answer::Yes),
        _ => {
            let numbers = count_of(count, "number");
            output::print_note(&format!("the scope is exhausted: printed {taken} of {numbers}"));
            Ok(Answer::No)
        }
    }
}
