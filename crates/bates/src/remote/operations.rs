//! `bates operations`: lists who changed what.
#![allow(clippy::doc_markdown, reason = "clap prints these comments as they are")]

use bates_api::Operation;
use clap::Args;

use super::list::{self, Format, PAGE, shortened};
use super::server::ServerArgs;
use crate::output::Output;

/// List who changed what: series, tokens, floors, documents and pools, oldest first
///
/// `bates audit` lists who took numbers. `bates audit verify` checks that no record of this log was removed or changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates operations\n  \
    bates operations --series acme.invoice --since 2026-12-01\n  \
    bates operations --who ops --kind documents_retried\n  \
    bates operations --csv > operations.csv")]
pub(crate) struct OperationsArgs {
    /// Only operations on this series
    #[arg(long)]
    series: Option<String>,

    /// Only operations of this caller
    #[arg(long)]
    who: Option<String>,

    /// Only this kind, such as series_changed
    #[arg(long)]
    kind: Option<String>,

    /// Only operations from this time on; a date means its start in UTC
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Only operations before this time; a date means its start in UTC
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

    /// Stop after this many operations
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,

    /// Print JSON, one operation per line
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print CSV
    #[arg(long)]
    csv: bool,

    #[command(flatten)]
    server: ServerArgs,
}

impl OperationsArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> anyhow::Result<()> {
        let operations = self.server.client()?.operations().page(self.limit.unwrap_or(PAGE).min(PAGE));
        let Self { series, who, kind, since, until, .. } = self;
        let names = ["series", "who", "kind", "since", "until"];
        let filters = names.into_iter().zip([series, who, kind, since, until]);
        let mut operations = list::add_filters(operations, filters, &[])?;
        let format = match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Csv(Operation::CSV_HEADER, Operation::csv_row),
            _ => Format::Table,
        };
        let heads = ["AT", "WHO", "HOW", "KIND", "SERIES", "SUBJECT", "BEFORE", "AFTER"];
        list::print(out, &mut operations, self.limit, format, heads, |operation| vec![row(operation)]).await
    }
}

fn row(operation: Operation) -> [String; 8] {
    let Operation { at, who, how, kind, series, subject, before, after, .. } = operation;
    let cell = |text: Option<String>| shortened(text.unwrap_or_default());
    [at, who, how, kind, series.unwrap_or_default(), subject, cell(before), cell(after)]
}
