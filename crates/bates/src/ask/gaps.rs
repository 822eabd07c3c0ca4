//! `bates gaps` and `bates reconcile`: which numbers nobody has, and why.

use bates_api::{Gap, Reconciliation, scope_text};
use bates_client::{Client, Error};
use clap::Args;

use super::list::{self, Format, PAGE};
use super::server::ServerArgs;
use crate::output::{self, Output, counted, grouped};

/// List the gaps that the last reconciliation found
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates gaps\n  \
    bates gaps document project=PROJ type=9012\n  \
    bates gaps document --csv > gaps.csv")]
pub(crate) struct GapsArgs {
    /// Only those of this series
    series: Option<String>,

    /// Only those of this scope
    #[arg(value_name = "NAME=VALUE")]
    parameters: Vec<String>,

    /// Only those of the scope of this period
    #[arg(long)]
    period: Option<String>,

    /// Reconcile first
    #[arg(long)]
    now: bool,

    /// Print JSON, one gap a line
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print CSV
    #[arg(long)]
    csv: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// Compare cursors with the ledger, the outbox and what is held, and write down what is missing
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bates reconcile\n  bates reconcile document --json")]
pub(crate) struct ReconcileArgs {
    /// Only this series
    series: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

impl GapsArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> anyhow::Result<()> {
        let client = self.server.client()?;
        if self.now {
            find_gaps(&client, self.series.as_deref()).await?;
        }
        let filters = [("series", &self.series), ("period", &self.period)];
        let gaps = list::narrow(client.gaps().page(PAGE), filters, &self.parameters)?;
        let format = Format::of(self.json, self.csv, Gap::CSV, Gap::csv);
        let heads = ["SERIES", "SCOPE", "FIRST", "LAST", "COUNT", "REASON", "SEEN"];
        list::print(out, gaps, None, format, heads, |gap| vec![row(gap)]).await
    }
}

fn row(gap: Gap) -> [String; 7] {
    let scope = scope_text(&gap.scope, gap.period.as_deref());
    let reason = if gap.uncertain { format!("{} (uncertain)", gap.reason) } else { gap.reason };
    let count = grouped(gap.last - gap.first + 1);
    [gap.series, scope, gap.first.to_string(), gap.last.to_string(), count, reason, gap.seen]
}

impl ReconcileArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> anyhow::Result<()> {
        let found = find_gaps(&self.server.client()?, self.series.as_deref()).await?;
        if self.json {
            return out.json(&found);
        }
        let Reconciliation { scopes, gaps, missing, uncertain, strangers } = found;
        let (scopes, gaps) = (counted(scopes, "scope"), counted(gaps, "gap"));
        let (numbers, uncertain) = (counted(missing, "number"), grouped(uncertain));
        writeln!(out, "{scopes} looked at: {gaps}, {numbers} missing, {uncertain} uncertain")?;
        if strangers > 0 {
            let texts = counted(strangers, "text");
            output::print_note(&format!("{texts} in your documents are no numbers of their series"));
        }
        Ok(())
    }
}

async fn find_gaps(client: &Client, series: Option<&str>) -> Result<Reconciliation, Error> {
    match series {
        Some(series) => client.series(series).reconcile().await,
        None => client.reconcile().await,
    }
}
