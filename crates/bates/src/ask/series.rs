//! `bates series`: the series of a running server. What a series promises is changed in the store: see `promise`.

use bates_api::{Description, Series};
use clap::{Args, Subcommand};

use super::server::ServerArgs;
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

pub(crate) fn run(args: &SeriesArgs) -> anyhow::Result<Answer> {
    if let Some(SeriesCommand::Promise(args)) = &args.change {
        return promise::run(args);
    }
    let series = args.server.ask(async |client| match &args.series {
        Some(name) => Ok(vec![client.series(name).describe().await?]),
        None => Ok(client.all_series().await?),
    })?;
    let mut out = Output::new();
    if args.json {
        series.iter().try_for_each(|one| out.json(one))?;
    } else {
        print(&mut out, series)?;
    }
    out.flush()?;
    Ok(Answer::Yes)
}

fn print(out: &mut Output, series: Vec<Series>) -> anyhow::Result<()> {
    let mut rows = vec![["SERIES", "PATTERN", "PROMISE", "ORDER", "KEY", "FROM"].map(str::to_owned)];
    for Series { name, description, origin, .. } in series {
        let Description { pattern, promise, order, key, .. } = description;
        rows.push([name, pattern, promise, order, key.unwrap_or_default(), origin]);
    }
    output::table(out, &rows)
}
