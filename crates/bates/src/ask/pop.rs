//! `bates pop`: numbers of a shared pool, from Redis or from Bates itself, and none twice.

use std::time::Duration;

use anyhow::Context as _;
use bates_client::{Pool, PopError, Settings};
use clap::Args;

use super::numbers::{self, Chunk, End};
use super::server::{Refused, ServerArgs};
use crate::output::{self, Answer};
use crate::scope;

/// Numbers that are popped at a time.
const CHUNK: u64 = 1_000;

/// Who types a command does not notice it; a program that pops has less patience.
const DEADLINE: Duration = Duration::from_millis(250);

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
    /// The series
    series: String,

    /// The parameters of the scope
    #[arg(value_name = "NAME=VALUE")]
    parameters: Vec<String>,

    /// How many, up to 1,000,000
    #[arg(short = 'n', long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    count: u64,

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

pub(crate) fn run(args: &PopArgs) -> anyhow::Result<Answer> {
    let redis = args.redis.clone().or_else(|| std::env::var("BATES_REDIS").ok());
    let redis = redis.context("which Redis server has the pool? Say --redis URL, or set BATES_REDIS")?;
    let (url, secret) = args.server.address()?;
    let scope = scope::pairs(&args.parameters)?.into_iter();
    let settings = Settings {
        secret,
        scope: scope.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        // Each call pops what it hands out, so that nothing is lost at the end.
        batch: 1,
        deadline: DEADLINE,
        ..Settings::new(url, redis, &*args.series)
    };
    let pool = Pool::open(&settings)?;
    args.server.ask(async |_| {
        pool.attach().await;
        let answer =
            numbers::print(args.count, args.json, CHUNK, async |wanted| match pool.pop(wanted).await {
                Ok(numbers) => Chunk { numbers, end: None },
                Err(error) => {
                    let is_exhausted = matches!(error, PopError::Exhausted { .. });
                    // No other call gets what was popped for this one.
                    Chunk { numbers: pool.rest(), end: Some(End { error: explain(error), is_exhausted }) }
                }
            })
            .await?;
        if let Some(trouble) = pool.trouble() {
            let trouble = output::printable(&trouble);
            output::print_note(&format!("some numbers came from Bates: Redis: {trouble}"));
        }
        Ok(answer)
    })
}

/// What an error of the pool means for a command.
fn explain(error: PopError) -> anyhow::Error {
    match error {
        PopError::Exhausted { detail, .. } => Refused::new("exhausted", &detail).into(),
        PopError::Refused { code, detail, .. } => Refused::new(&code, &detail).into(),
        error @ (PopError::Away { .. } | PopError::Forked) => {
            std::io::Error::other(output::printable(&error.to_string()).into_owned()).into()
        }
    }
}
