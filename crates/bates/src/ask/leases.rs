//! `bates leases`: what programs hold in advance, who they are, and since when.

use std::collections::BTreeMap;

use clap::Args;
use serde::Deserialize;

use super::server::{ServerArgs, escaped};
use crate::output::{self, Answer, Output, grouped};
use crate::scope;

/// List what programs hold in advance
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bates leases\n  bates leases short --json")]
pub(crate) struct LeasesArgs {
    /// Only those of this series
    series: Option<String>,

    /// Print JSON, one lease a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Deserialize)]
struct Page {
    leases: Vec<serde_json::Value>,
    after: Option<String>,
}

#[derive(Deserialize)]
struct Lease {
    series: String,
    scope: BTreeMap<String, String>,
    #[serde(default)]
    period: Option<String>,
    ranges: Vec<Range>,
    who: String,
    since: String,
}

#[derive(Deserialize)]
struct Range {
    first: u64,
    last: u64,
}

pub(crate) fn run(args: &LeasesArgs) -> anyhow::Result<Answer> {
    let series =
        args.series.as_ref().map(|series| format!("series={}&", escaped(series))).unwrap_or_default();
    let mut out = Output::new();
    let mut rows = vec![["SERIES", "SCOPE", "FIRST", "LAST", "POSITIONS", "WHO", "SINCE"].map(str::to_owned)];
    let mut behind = String::new();
    loop {
        let page: Page = args.server.get(&format!("/v1/leases?{series}{behind}"))?;
        for lease in page.leases {
            if args.json {
                out.json(&lease)?;
            } else {
                rows.extend(serde_json::from_value::<Lease>(lease)?.rows());
            }
        }
        let Some(after) = page.after else { break };
        behind = format!("after={}", escaped(&after));
    }
    if !args.json {
        output::table(&mut out, &rows)?;
    }
    out.flush()?;
    Ok(Answer::Yes)
}

impl Lease {
    /// A row a range.
    fn rows(self) -> impl Iterator<Item = [String; 7]> {
        let Self { series, scope, period, ranges, who, since } = self;
        let scope = scope::shown(&scope, period.as_deref());
        ranges.into_iter().map(move |Range { first, last }| {
            let count = grouped(last - first + 1);
            [
                series.clone(),
                scope.clone(),
                first.to_string(),
                last.to_string(),
                count,
                who.clone(),
                since.clone(),
            ]
        })
    }
}
