//! `bates audit`: who took which numbers, how and when.

use bates_api::{AuditEntry, scope_text};
use clap::Args;

use super::list::{self, Format};
use super::server::ServerArgs;
use crate::output::{Answer, grouped};

/// See who took which numbers of the series that are audited, the oldest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates audit\n  \
    bates audit document project=PROJ type=9012\n  \
    bates audit --id PROJ-9012-1001\n  \
    bates audit document --who registry --since 2026-12-01 --until 2027-01-01\n  \
    bates audit document --csv > audit.csv")]
pub(crate) struct AuditArgs {
    /// Only what was taken of this series
    series: Option<String>,

    /// Only what was taken of this scope
    #[arg(value_name = "NAME=VALUE")]
    parameters: Vec<String>,

    /// Only what was taken of the scope of this period
    #[arg(long)]
    period: Option<String>,

    /// Only the entry that covers this number
    #[arg(long)]
    id: Option<String>,

    /// Only what was taken by a token, an address, or "pool" and the key of a list
    #[arg(long)]
    who: Option<String>,

    /// Only from this moment on, or from the beginning of this day in UTC
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Only before this moment, or before the beginning of this day in UTC
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

    /// Stop after so many entries
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,

    /// Print JSON, one entry a line
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print CSV
    #[arg(long)]
    csv: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// Entries that are asked for at a time.
const PAGE: usize = 10_000;

pub(crate) fn run(args: &AuditArgs) -> anyhow::Result<Answer> {
    args.server.ask(async |client| {
        let entries = client.audit().page(args.limit.unwrap_or(PAGE).min(PAGE));
        let filters = [
            ("series", &args.series),
            ("period", &args.period),
            ("id", &args.id),
            ("who", &args.who),
            ("since", &args.since),
            ("until", &args.until),
        ];
        let entries = list::narrow(entries, &filters, &args.parameters)?;
        let format = Format::of(args.json, args.csv, AuditEntry::CSV, AuditEntry::csv);
        let heads = ["AT", "WHO", "HOW", "SERIES", "SCOPE", "FIRST", "LAST", "COUNT"];
        list::print(entries, args.limit, format, heads, |entry| vec![row(entry)]).await
    })
}

fn row(entry: AuditEntry) -> [String; 8] {
    let scope = scope_text(&entry.scope, entry.period.as_deref());
    let AuditEntry { at, who, how, series, first, last, count, .. } = entry;
    [at, who, how, series, scope, first, last, grouped(count)]
}
