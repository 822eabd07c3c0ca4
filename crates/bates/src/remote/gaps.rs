//! `bates gaps` and `bates reconcile`: list which numbers are missing, and why.

use bates_api::{Gap, Reconciliation, scope_text};
use bates_client::{Client, Error};
use clap::Args;

use super::list::{self, Format, PAGE};
use super::server::ServerArgs;
use crate::output::{self, Output, count_of, group_digits};

/// List the gaps that the last reconciliation found
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates gaps\n  \
    bates gaps document project=PROJ type=9012\n  \
    bates gaps document --csv > gaps.csv")]
pub(crate) struct GapsArgs {
    /// Only gaps of this series
    series: Option<String>,

    /// Only gaps of this scope
    #[arg(value_name = "NAME=VALUE")]
    parameters: Vec<String>,

    /// Only gaps of this period
    #[arg(long)]
    period: Option<String>,

    /// Reconcile first
    #[arg(long)]
    now: bool,

    /// Print JSON, one gap per line
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print CSV
    #[arg(long)]
    csv: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// Compare cursors with the ledger, the outbox and held numbers, and record the gaps
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
            reconcile(&client, self.series.as_deref()).await?;
        }
        let filters = [("series", &self.series), ("period", &self.period)];
        let gaps = list::add_filters(client.gaps().page(PAGE), filters, &self.parameters)?;
        let format = Format::from_flags(self.json, self.csv, Gap::CSV_HEADER, Gap::csv_row);
        let heads = ["SERIES", "SCOPE", "FIRST", "LAST", "COUNT", "REASON", "SEEN"];
        list::print(out, gaps, None, format, heads, |gap| vec![row(gap)]).await
    }
}

fn row(gap: Gap) -> [String; 7] {
    let scope = scope_text(&gap.scope, gap.period.as_deref());
    let reason = if gap.uncertain { format!("{} (uncertain)", gap.reason) } else { gap.reason };
    let count = group_digits(gap.last - gap.first + 1);
    [gap.series, scope, gap.first.to_string(), gap.last.to_string(), count, reason, gap.seen]
}

impl ReconcileArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> anyhow::Result<()> {
        let report = reconcile(&self.server.client()?, self.series.as_deref()).await?;
        if self.json {
            return out.print_json(&report);
        }
        let Reconciliation { scopes, gaps, missing, uncertain, strangers } = report;
        let (scopes, gaps) = (count_of(scopes, "scope"), count_of(gaps, "gap"));
        let (numbers, uncertain) = (count_of(missing, "number"), group_digits(uncertain));
        writeln!(out, "{scopes} checked: {gaps}, {numbers} missing, {uncertain} uncertain")?;
        if strangers > 0 {
            let texts = count_of(strangers, "text");
            output::print_note(&format!(
                "your documents have {texts} that cannot be numbers of their series"
            ));
        }
        Ok(())
    }
}

async fn reconcile(client: &Client, series: Option<&str>) -> Result<Reconciliation, Error> {
    match series {
        Some(series) => client.series(series).reconcile().await,
        None => client.reconcile().await,
    }
}
