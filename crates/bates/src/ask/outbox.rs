//! `bates outbox`: documents that are not delivered yet, or never will be, and what is decided about them.

use std::fmt::Write as _;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde::Deserialize;

use super::server::{ServerArgs, escaped};
use crate::output::{self, Answer, Output, counted};

/// List documents, and retry or abandon those that are dead
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates outbox --state dead\n  \
    bates outbox retry PROJ-9012-1001\n  \
    bates outbox retry --all --series document\n  \
    bates outbox abandon 019a8c4e-5f4b-7c3d-9a51-0d3a5b6c7d8e")]
pub(crate) struct OutboxArgs {
    #[command(subcommand)]
    decision: Option<Decision>,

    /// Only documents in this state: pending, delivered, dead, abandoned, reserved, confirmed or voided
    #[arg(long)]
    state: Option<String>,

    /// Only documents of this series
    #[arg(long)]
    series: Option<String>,

    /// How many, at most
    #[arg(short = 'n', long, default_value_t = 100)]
    limit: usize,

    /// Print JSON, one document a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
enum Decision {
    /// Deliver dead documents after all, or pending ones at once
    #[command(after_help = "Examples:\n  \
        bates outbox retry PROJ-9012-1001 PROJ-9012-1002\n  \
        bates outbox retry --all --series document")]
    Retry(Which),
    /// Give documents up: their numbers are gaps from now on
    #[command(after_help = "Examples:\n  \
        bates outbox abandon PROJ-9012-1001\n  \
        bates outbox abandon 019a8c4e-5f4b-7c3d-9a51-0d3a5b6c7d8e\n  \
        bates outbox abandon --all --series document")]
    Abandon(Which),
}

#[derive(Debug, Args)]
struct Which {
    /// Numbers or event ids
    #[arg(value_name = "ID")]
    ids: Vec<String>,

    /// All dead documents
    #[arg(long, conflicts_with = "ids")]
    all: bool,

    /// With --all, only those of this series
    #[arg(long, requires = "all")]
    series: Option<String>,

    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Deserialize)]
struct Page {
    documents: Vec<serde_json::Value>,
    after: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    id: String,
    series: String,
    state: String,
    tries: u32,
    updated: String,
    last_error: Option<String>,
}

#[derive(Deserialize)]
struct Count {
    count: u64,
}

pub(crate) fn run(args: &OutboxArgs) -> anyhow::Result<Answer> {
    match &args.decision {
        None => list(args),
        Some(Decision::Retry(which)) => decide(which, "retry", "will be delivered"),
        Some(Decision::Abandon(which)) => decide(which, "abandon", "abandoned"),
    }
}

fn list(args: &OutboxArgs) -> anyhow::Result<Answer> {
    let mut documents: Vec<serde_json::Value> = Vec::new();
    let mut after: Option<String> = None;
    while documents.len() < args.limit {
        let mut query = format!("limit={}", (args.limit - documents.len()).min(1_000));
        for (name, value) in [("state", &args.state), ("series", &args.series), ("after", &after)] {
            if let Some(value) = value {
                write!(query, "&{name}={}", escaped(value))?;
            }
        }
        let page: Page = args.server.get(&format!("/v1/outbox?{query}"))?;
        documents.extend(page.documents);
        after = page.after;
        if after.is_none() {
            break;
        }
    }
    let mut out = Output::new();
    if args.json {
        documents.iter().try_for_each(|document| out.json(document))?;
    } else {
        print(&mut out, documents)?;
    }
    out.flush()?;
    Ok(Answer::Yes)
}

fn print(out: &mut Output, documents: Vec<serde_json::Value>) -> anyhow::Result<()> {
    let mut rows = vec![["NUMBER", "SERIES", "STATE", "TRIES", "UPDATED", "LAST ERROR"].map(str::to_owned)];
    for document in documents {
        let Document { id, series, state, tries, updated, last_error } = serde_json::from_value(document)?;
        rows.push([id, series, state, tries.to_string(), updated, last_error.unwrap_or_default()]);
    }
    output::table(out, &rows)
}

fn decide(which: &Which, decision: &str, outcome: &str) -> anyhow::Result<Answer> {
    let mut out = Output::new();
    if which.all {
        let series = which.series.as_ref().map(|series| format!("?series={}", escaped(series)));
        let path = format!("/v1/outbox/{decision}{}", series.unwrap_or_default());
        let Count { count } = which.server.post(&path)?;
        out.line(format_args!("{} {outcome}", counted(count, "document")))?;
    } else if which.ids.is_empty() {
        bail!("name documents by their numbers or event ids, or say --all");
    }
    for id in &which.ids {
        let document: Document = which.server.post(&format!("/v1/outbox/{}/{decision}", escaped(id)))?;
        out.line(format_args!("{} {outcome}", output::printable(&document.id)))?;
    }
    out.flush()?;
    Ok(Answer::Yes)
}
