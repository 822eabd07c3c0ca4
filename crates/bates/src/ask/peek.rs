//! `bates peek`: what comes next in a scope, without taking it.

use bates_pattern::Date;
use clap::Args;

use super::server::ServerArgs;
use crate::output::{Answer, Output, counted, grouped};
use crate::scope;

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

pub(crate) fn run(args: &PeekArgs) -> anyhow::Result<Answer> {
    let peek = args.server.ask(async |client| {
        Ok(scope::series(&client, &args.series, &args.parameters, args.date)?.peek().await?)
    })?;
    let mut out = Output::new();
    if args.json {
        out.json(&peek)?;
    } else {
        let position = |position: Option<u64>, none: &str| {
            position.map_or(none.to_owned(), |at| format!("position {at}"))
        };
        let about = if peek.left_is_estimate { "about " } else { "" };
        out.line(format_args!("last  {}", position(peek.last, "none yet")))?;
        out.line(format_args!("next  {}", position(peek.next, "none: the scope is exhausted")))?;
        out.line(format_args!(
            "left  {about}{}",
            if peek.left == 1 { counted(1, "number") } else { format!("{} numbers", grouped(peek.left)) }
        ))?;
    }
    out.flush()?;
    Ok(if peek.next.is_some() { Answer::Yes } else { Answer::No })
}
