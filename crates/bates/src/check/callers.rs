//! The tokens of a configuration, and what it offers to series that they create. Must never show a secret.

use anyhow::Result;
use bates_api::TokenGrant;
use bates_core::SeriesSet;
use serde::Serialize;

use super::describe_fill;
use crate::config::{Config, Offer};
use crate::output::{GOOD, Output, sanitize};

#[derive(Serialize)]
#[serde(untagged)]
enum CallerReport {
    Token {
        token: String,
        #[serde(flatten)]
        grant: TokenGrant,
    },
    Sink {
        sink: String,
        delivers_to: String,
        offered_to: Vec<String>,
    },
    Pool {
        pool: String,
        lists: String,
        offered_to: Vec<String>,
    },
}

pub(super) fn print(out: &mut Output, config: &Config, is_json: bool) -> Result<()> {
    let reports = reports(config)?;
    if !is_json && !reports.is_empty() {
        writeln!(out)?;
    }
    for report in reports {
        if is_json {
            out.print_json(&report)?;
        } else {
            let (kind, name, text) = report.describe();
            writeln!(out, "{kind:<5}  {GOOD}{}{GOOD:#}  {}", sanitize(name), sanitize(&text))?;
        }
    }
    Ok(())
}

fn reports(config: &Config) -> Result<Vec<CallerReport>> {
    let tokens = config.access.configured_tokens().into_iter();
    let mut reports: Vec<_> = tokens.map(|(token, grant)| CallerReport::Token { token, grant }).collect();
    for (sink, Offer { offered, offered_to }) in &config.offered_sinks {
        let (sink, delivers_to) = (sink.clone(), offered.open()?.describe());
        reports.push(CallerReport::Sink { sink, delivers_to, offered_to: patterns(offered_to) });
    }
    for (pool, Offer { offered, offered_to }) in &config.offered_pools {
        let lists = format!("lists on Redis at {}, {}", offered.address()?, describe_fill(&offered.sizes()?));
        reports.push(CallerReport::Pool { pool: pool.clone(), lists, offered_to: patterns(offered_to) });
    }
    Ok(reports)
}

fn patterns(offered_to: &SeriesSet) -> Vec<String> {
    let patterns = offered_to.patterns().unwrap_or_default().iter();
    patterns.map(|pattern| pattern.as_str().to_owned()).collect()
}

impl CallerReport {
    fn describe(&self) -> (&'static str, &str, String) {
        match self {
            Self::Token { token, grant } => ("token", token, describe_grant(grant)),
            Self::Sink { sink, delivers_to, offered_to } => {
                ("sink", sink, format!("{delivers_to}, offered to {}", offered_to.join(", ")))
            }
            Self::Pool { pool, lists, offered_to } => {
                ("pool", pool, format!("{lists}, offered to {}", offered_to.join(", ")))
            }
        }
    }
}

fn describe_grant(grant: &TokenGrant) -> String {
    let of = grant.series.as_ref().map_or_else(|| "all series".to_owned(), |series| series.join(", "));
    let scope = grant.scope.iter().map(|(name, values)| format!(", where {name} is {}", values.join(" or ")));
    let limit = |limit: Option<u64>, unit| limit.map(|limit| format!(", {limit}/{unit}"));
    let limits = [limit(grant.rate, "s"), limit(grant.quota, "day")].into_iter().flatten();
    format!("may {} of {of}{}", grant.may.join(", "), scope.chain(limits).collect::<String>())
}
