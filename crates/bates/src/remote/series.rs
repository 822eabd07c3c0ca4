//! `bates series`: lists the series of a running server. `promise.rs` changes what a series promises.

use bates_api::{Series, SeriesDescription};
use clap::{Args, Subcommand};

use super::server::ServerArgs;
use crate::output::{self, Output};
use crate::promise::PromiseArgs;

/// List the series of a running server, or change a promise
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  bates series\n  bates series document --json\n  bates series promise invoice gapless"
)]
pub(crate) struct SeriesArgs {
    #[command(subcommand)]
    change: Option<SeriesCommand>,

    /// Only this series
    series: Option<String>,

    /// Print JSON, one series per line, with all fields
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
enum SeriesCommand {
    Promise(PromiseArgs),
}

impl SeriesArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> anyhow::Result<()> {
        if let Some(SeriesCommand::Promise(args)) = &self.change {
            return args.run(out).await;
        }
        let client = self.server.client()?;
        let series = match &self.series {
            Some(name) => vec![client.series(name).describe().await?],
            None => client.all_series().collect(usize::MAX).await?,
        };
        if self.json {
            return series.iter().try_for_each(|one| out.print_json(one));
        }
        let mut rows = vec![["SERIES", "PATTERN", "PROMISE", "ORDER", "KEY", "FROM"].map(str::to_owned)];
        for Series { name, description, origin, .. } in series {
            let SeriesDescription { pattern, promise, order, key, .. } = description;
            rows.push([name, pattern, promise, order, key.unwrap_or_default(), origin]);
        }
        output::print_table(out, &rows)
    }
}
