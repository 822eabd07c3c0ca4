//! `bates series`: the series of a running server. What a series promises is changed in the store: see `promise`.

use clap::{Args, Subcommand};
use serde::Deserialize;

use super::server::{ServerArgs, escaped};
use crate::output::{self, Answer, Output};
use crate::promise::{self, PromiseArgs};

/// List the series of a running server, or change what one promises
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  bates series\n  bates series document --json\n  bates series promise invoice gapless"
)]
pub(crate) struct SeriesArgs {
    #[command(subcommand)]
    change: Option<SeriesCommand>,

    /// Only this one
    series: Option<String>,

    /// Print JSON, one series a line, with all that is known of it
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
enum SeriesCommand {
    Promise(PromiseArgs),
}

#[derive(Deserialize)]
struct AllSeries {
    series: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Series {
    name: String,
    pattern: String,
    promise: String,
    order: String,
    #[serde(default)]
    key: String,
    origin: String,
}

pub(crate) fn run(args: &SeriesArgs) -> anyhow::Result<Answer> {
    if let Some(SeriesCommand::Promise(args)) = &args.change {
        return promise::run(args);
    }
    let series = match &args.series {
        Some(name) => vec![args.server.get(&format!("/v1/series/{}", escaped(name)))?],
        None => args.server.get::<AllSeries>("/v1/series")?.series,
    };
    let mut out = Output::new();
    if args.json {
        series.iter().try_for_each(|one| out.json(one))?;
    } else {
        print(&mut out, series)?;
    }
    out.flush()?;
    Ok(Answer::Yes)
}

fn print(out: &mut Output, series: Vec<serde_json::Value>) -> anyhow::Result<()> {
    let mut rows = vec![["SERIES", "PATTERN", "PROMISE", "ORDER", "KEY", "FROM"].map(str::to_owned)];
    for one in series {
        let Series { name, pattern, promise, order, key, origin } = serde_json::from_value(one)?;
        rows.push([name, pattern, promise, order, key, origin]);
    }
    output::table(out, &rows)
}
