//! `bates pop`: numbers of a shared pool, from Redis or from Bates itself, and none twice.

use std::time::Duration;

use anyhow::Context as _;
use bates_client::{Pool, PopError, Settings};
use clap::Args;

use super::server::{Refused, ServerArgs};
use crate::output::{self, Answer, Output, counted};
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
    let mut settings = Settings::new(args.server.base()?, redis, &*args.series);
    settings.secret = std::env::var("BATES_SECRET").ok();
    settings.scope = scope::pairs(&args.parameters)?
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    // Each call pops what it hands out, so that nothing is lost at the end.
    settings.batch = 1;
    settings.deadline = DEADLINE;
    let pool = Pool::open(&settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut out = Output::new();
    let taken = runtime.block_on(take(args, &pool, &mut out));
    // What was taken is shown, whatever came then.
    out.flush()?;
    let taken = taken?;
    if let Some(trouble) = pool.trouble() {
        output::print_note(&format!("some numbers came from Bates: Redis: {}", output::printable(&trouble)));
    }
    if taken == args.count {
        return Ok(Answer::Yes);
    }
    output::print_note(&format!("the scope ends here: {} of {}", taken, counted(args.count, "number")));
    Ok(Answer::No)
}

/// Takes and prints; how many there were.
async fn take(args: &PopArgs, pool: &Pool, out: &mut Output) -> anyhow::Result<u64> {
    pool.attach().await;
    let (mut all, mut taken, mut failed) = (Vec::new(), 0, None);
    while taken < args.count && failed.is_none() {
        let wanted = (args.count - taken).min(CHUNK);
        let numbers = match pool.pop(usize::try_from(wanted)?).await {
            Ok(numbers) => numbers,
            Err(PopError::Exhausted { .. }) if taken > 0 => break,
            Err(error) => {
                failed = Some(error);
                // What was popped for this call is nobody else's.
                pool.rest()
            }
        };
        taken += numbers.len() as u64;
        if args.json {
            all.extend(numbers);
            continue;
        }
        for number in &numbers {
            out.line(format_args!("{}", output::printable(number)))?;
        }
    }
    if args.json && (taken > 0 || failed.is_none()) {
        out.json(&all)?;
    }
    match failed {
        Some(error) if taken == 0 => Err(refused(error)),
        Some(error) => Err(refused(error).context(format!("after {}", counted(taken, "number")))),
        None => Ok(taken),
    }
}

/// What an error of the pool means for a command.
fn refused(error: PopError) -> anyhow::Error {
    match error {
        PopError::Exhausted { detail, .. } => Refused::new("exhausted", &detail).into(),
        PopError::Refused { code, detail, .. } => Refused::new(&code, &detail).into(),
        error @ (PopError::Away { .. } | PopError::Forked) => {
            std::io::Error::other(output::printable(&error.to_string()).into_owned()).into()
        }
    }
}
