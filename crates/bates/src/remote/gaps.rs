//! `bates gaps` and `bates reconcile`: list which numbers are missing, and why.

use bates_api::{Gap, Reconciliation, scope_text};
use bates_client::{Client, Error};
use clap::Args;

use super::list::{self, ListArgs, PAGE};
use super::server::ServerArgs;
use crate::output::{self, Output, count_of, group_digits};

/// List the gaps that the last reconciliation found
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates gaps\n  \
    bates gaps document project=PROJ type=9012\n  \
    bates gaps document --csv > gaps.csv")]
pub(crate) struct GapsArgs {
    /// Reconcile first
    #[arg(long)]
    now: bool,

    #[command(flatten)]
    list: ListArgs,
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
        let ListArgs { series, parameters, period, server, .. } = &self.list;
        let client = server.client()?;
        if self.now {
            reconcile(&client, series.as_deref()).await?;
        }
        let filters = [("series", series), ("period", period)];
        let mut gaps = list::add_filters(client.gaps().page(PAGE), filters, parameters)?;
        let format = self.list.format(Gap::CSV_HEADER, Gap::csv_row);
        let heads = ["SERIES", "SCOPE", "FIRST", "LAST", "COUNT", "NUMBERS", "REASON", "SEEN"];
        list::print(out, &mut gaps, None, format, heads, |gap| vec![row(gap)]).await?;
        output::print_note(&match gaps.reconciled_at() {
            Some(at) => format!("reconciled at {}; later losses are not listed yet", output::sanitize(at)),
            None => "never reconciled, so the gaps are not known: repeat the command with --now".to_owned(),
        });
        Ok(())
    }
}

fn row(gap: Gap) -> [String; 8] {
    let scope = scope_text(&gap.scope, gap.period.as_deref());
    let reason = if gap.uncertain { format!("{} (uncertain)", gap.reason) } else { gap.reason };
    let count = group_digits(gap.last - gap.first + 1);
    let numbers = match (gap.first_number, gap.last_number) {
        (Some(first), Some(last)) if first != last => format!("{first} … {last}"),
        (first, _) => first.unwrap_or_default(),
    };
    let numbers = list::shortened(numbers);
    [gap.series, scope, gap.first.to_string(), gap.last.to_string(), count, numbers, reason, gap.seen]
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
            output::print_note(&format!("your documents have {texts} that are not numbers of their series"));
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
