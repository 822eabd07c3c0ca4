//! `bates gaps` and `bates reconcile`: which numbers nobody has, and why.

use bates_api::{Gap, Reconciliation, scope_text};
use bates_client::{Client, Error};
use clap::Args;

use super::list::{self, Format};
use super::server::ServerArgs;
use crate::output::{self, Answer, Output, counted, grouped};

/// Gaps that are asked for at a time.
const PAGE: usize = 10_000;

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

pub(crate) fn gaps(args: &GapsArgs) -> anyhow::Result<Answer> {
    args.server.ask(async |client| {
        if args.now {
            find_gaps(&client, args.series.as_deref()).await?;
        }
        let filters = [("series", &args.series), ("period", &args.period)];
        let gaps = list::narrow(client.gaps().page(PAGE), &filters, &args.parameters)?;
        let format = Format::of(args.json, args.csv, Gap::CSV, Gap::csv);
        let heads = ["SERIES", "SCOPE", "FIRST", "LAST", "COUNT", "REASON", "SEEN"];
        list::print(gaps, None, format, heads, |gap| vec![row(gap)]).await
    })
}

fn row(gap: Gap) -> [String; 7] {
    let scope = scope_text(&gap.scope, gap.period.as_deref());
    let reason = if gap.uncertain { format!("{} (uncertain)", gap.reason) } else { gap.reason };
    let count = grouped(gap.last - gap.first + 1);
    [gap.series, scope, gap.first.to_string(), gap.last.to_string(), count, reason, gap.seen]
}

pub(crate) fn reconcile(args: &ReconcileArgs) -> anyhow::Result<Answer> {
    let found = args.server.ask(async |client| Ok(find_gaps(&client, args.series.as_deref()).await?))?;
    let mut out = Output::new();
    if args.json {
        out.json(&found)?;
    } else {
        let Reconciliation { scopes, gaps, missing, uncertain, strangers } = found;
        let (scopes, gaps) = (counted(scopes, "scope"), counted(gaps, "gap"));
        let numbers = counted(missing, "number");
        out.line(format_args!(
            "{scopes} looked at: {gaps}, {numbers} missing, {} uncertain",
            grouped(uncertain)
        ))?;
        if strangers > 0 {
            output::print_note(&format!(
                "{} in your documents are no numbers of their series",
                counted(strangers, "text")
            ));
        }
    }
    out.flush()?;
    Ok(Answer::Yes)
}

async fn find_gaps(client: &Client, series: Option<&str>) -> Result<Reconciliation, Error> {
    match series {
        Some(series) => client.series(series).reconcile().await,
        None => client.reconcile().await,
    }
}
