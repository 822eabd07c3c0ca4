//! `bates audit`: who took which numbers, how and when.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use serde::Deserialize;

use super::server::{ServerArgs, escaped};
use crate::output::{self, Answer, Output, grouped};
use crate::scope;

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

#[derive(Deserialize)]
struct Page {
    entries: Vec<serde_json::Value>,
    after: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    series: String,
    scope: BTreeMap<String, String>,
    #[serde(default)]
    period: Option<String>,
    from: u64,
    to: u64,
    first: String,
    last: String,
    count: u64,
    who: String,
    how: String,
    at: String,
}

pub(crate) fn run(args: &AuditArgs) -> anyhow::Result<Answer> {
    let query = query(args)?;
    let mut out = Output::new();
    let mut rows = vec![["AT", "WHO", "HOW", "SERIES", "SCOPE", "FIRST", "LAST", "COUNT"].map(str::to_owned)];
    if args.csv {
        out.line(format_args!("series,scope,from,to,first,last,count,who,how,at"))?;
    }
    let (mut left, mut after): (usize, Option<String>) = (args.limit.unwrap_or(usize::MAX), None);
    while left > 0 {
        let behind = after.as_ref().map(|after| format!("&after={}", escaped(after))).unwrap_or_default();
        let limit = left.min(PAGE);
        let page: Page = args.server.get(&format!("/v1/audit?limit={limit}{query}{behind}"))?;
        left -= page.entries.len().min(left);
        for entry in page.entries {
            if args.json {
                out.json(&entry)?;
                continue;
            }
            let entry: Entry = serde_json::from_value(entry)?;
            if args.csv { out.line(format_args!("{}", entry.csv()))? } else { rows.push(entry.row()) }
        }
        after = page.after;
        if after.is_none() {
            break;
        }
    }
    if !args.json && !args.csv {
        output::table(&mut out, &rows)?;
    }
    out.flush()?;
    Ok(Answer::Yes)
}

fn query(args: &AuditArgs) -> anyhow::Result<String> {
    let mut query = String::new();
    for (name, value) in [
        ("series", &args.series),
        ("period", &args.period),
        ("id", &args.id),
        ("who", &args.who),
        ("since", &args.since),
        ("until", &args.until),
    ] {
        if let Some(value) = value {
            write!(query, "&{name}={}", escaped(value))?;
        }
    }
    for (name, value) in scope::pairs(&args.parameters)? {
        write!(query, "&{}={}", escaped(name), escaped(value))?;
    }
    Ok(query)
}

impl Entry {
    fn scope(&self) -> String {
        scope::shown(&self.scope, self.period.as_deref())
    }

    fn row(self) -> [String; 8] {
        let scope = self.scope();
        let count = grouped(self.count);
        [self.at, self.who, self.how, self.series, scope, self.first, self.last, count]
    }

    fn csv(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let Self { series, from, to, count, how, at, .. } = self;
        let (scope, first, last, who) =
            (quoted(&self.scope()), quoted(&self.first), quoted(&self.last), quoted(&self.who));
        format!("{series},{scope},{from},{to},{first},{last},{count},{who},{how},{at}")
    }
}
