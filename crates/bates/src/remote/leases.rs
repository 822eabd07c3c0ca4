//! `bates leases`: lists the numbers that clients hold in advance, by client and since when.

use bates_api::{HeldLease, PositionRange, scope_text};
use clap::Args;

use super::list::{self, Format};
use super::server::ServerArgs;
use crate::output::{Output, group_digits};

/// List the leases of clients: numbers that they hold in advance
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bates leases\n  bates leases short --json")]
pub(crate) struct LeasesArgs {
    /// Only leases of this series
    series: Option<String>,

    /// Print JSON, one lease per line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

impl LeasesArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> anyhow::Result<()> {
        let mut leases = list::add_filters(self.server.client()?.leases(), [("series", &self.series)], &[])?;
        let format = if self.json { Format::Json } else { Format::Table };
        let heads = ["SERIES", "SCOPE", "FIRST", "LAST", "POSITIONS", "WHO", "SINCE"];
        list::print(out, &mut leases, None, format, heads, rows).await
    }
}

fn rows(lease: HeldLease) -> Vec<[String; 7]> {
    let HeldLease { series, scope, period, ranges, who, since, .. } = lease;
    let scope = scope_text(&scope, period.as_deref());
    let row = |PositionRange { first, last }| {
        let (count, [first, last]) = (group_digits(last - first + 1), [first, last].map(|at| at.to_string()));
        [series.clone(), scope.clone(), first, last, count, who.clone(), since.clone()]
    };
    ranges.into_iter().map(row).collect()
}
