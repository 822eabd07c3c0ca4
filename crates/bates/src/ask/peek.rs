//! `bates peek`: what comes next in a scope, without taking it.

use bates_pattern::Date;
use clap::Args;

use super::server::ServerArgs;
use crate::output::{Answer, Output, counted};
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

impl PeekArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> anyhow::Result<Answer> {
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
