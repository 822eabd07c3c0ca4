//! `bates gaps` and `bates reconcile`: which numbers nobody has, and why.

use std::fmt::Write as _;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::server::{ServerArgs, escaped};
use crate::output::{self, Answer, Output, counted, grouped};
use crate::scope;

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

#[derive(Deserialize)]
struct Page {
    gaps: Vec<serde_json::Value>,
    after: Option<String>,
}

#[derive(Deserialize)]
struct Gap {
    series: String,
    scope: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    period: Option<String>,
    first: u64,
    last: u64,
    reason: String,
    uncertain: bool,
    seen: String,
}

#[derive(Serialize, Deserialize)]
struct Reconciled {
    scopes: u64,
    gaps: u64,
    missing: u64,
    uncertain: u64,
    strangers: u64,
}

pub(crate) fn gaps(args: &GapsArgs) -> anyhow::Result<Answer> {
    if args.now {
        ask_reconcile(&args.server, args.series.as_deref())?;
    }
    let query = query(args)?;
    let mut out = Output::new();
    let mut rows = vec![["SERIES", "SCOPE", "FIRST", "LAST", "COUNT", "REASON", "SEEN"].map(str::to_owned)];
    let mut after: Option<String> = None;
    if args.csv {
        out.line(format_args!("series,scope,first,last,count,reason,uncertain,seen"))?;
    }
    loop {
        let behind = after.as_ref().map(|after| format!("&after={}", escaped(after))).unwrap_or_default();
        let page: Page = args.server.get(&format!("/v1/gaps?{query}{behind}"))?;
        for gap in page.gaps {
            if args.json {
                out.json(&gap)?;
                continue;
            }
            let gap: Gap = serde_json::from_value(gap)?;
            if args.csv { out.line(format_args!("{}", gap.csv()))? } else { rows.push(gap.row()) }
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

fn query(args: &GapsArgs) -> anyhow::Result<String> {
    let mut query = String::from("limit=10000");
    for (name, value) in [("series", &args.series), ("period", &args.period)] {
        if let Some(value) = value {
            write!(query, "&{name}={}", escaped(value))?;
        }
    }
    for (name, value) in scope::pairs(&args.parameters)? {
        write!(query, "&{}={}", escaped(name), escaped(value))?;
    }
    Ok(query)
}

impl Gap {
    fn scope(&self) -> String {
        scope::shown(&self.scope, self.period.as_deref())
    }

    fn row(self) -> [String; 7] {
        let count = grouped(self.last - self.first + 1);
        let reason =
            if self.uncertain { format!("{} (uncertain)", self.reason) } else { self.reason.clone() };
        let scope = self.scope();
        [self.series, scope, self.first.to_string(), self.last.to_string(), count, reason, self.seen]
    }

    fn csv(&self) -> String {
        let Self { series, first, last, reason, uncertain, seen, .. } = self;
        let (scope, count) = (self.scope().replace('"', "\"\""), last - first + 1);
        format!("{series},\"{scope}\",{first},{last},{count},{reason},{uncertain},{seen}")
    }
}

pub(crate) fn reconcile(args: &ReconcileArgs) -> anyhow::Result<Answer> {
    let found = ask_reconcile(&args.server, args.series.as_deref())?;
    let mut out = Output::new();
    if args.json {
        out.json(&found)?;
    } else {
        let Reconciled { scopes, gaps, missing, uncertain, strangers } = found;
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

fn ask_reconcile(server: &ServerArgs, series: Option<&str>) -> anyhow::Result<Reconciled> {
    let query = series.map(|series| format!("?series={}", escaped(series))).unwrap_or_default();
    server.post(&format!("/v1/reconcile{query}"))
}
