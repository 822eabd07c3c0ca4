//! `bates outbox`: documents that are not delivered yet, or never will be, and what is decided about them.

use anyhow::bail;
use bates_client::{Decision, KnownDocument};
use clap::{Args, Subcommand};

use super::list::{self, Format};
use super::server::ServerArgs;
use crate::output::{self, Answer, Output, counted};

/// Documents that are asked for at a time.
const PAGE: usize = 1_000;

/// List documents, and retry or abandon those that are dead
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates outbox --state dead\n  \
    bates outbox retry PROJ-9012-1001\n  \
    bates outbox retry --all --series document\n  \
    bates outbox abandon 019a8c4e-5f4b-7c3d-9a51-0d3a5b6c7d8e")]
pub(crate) struct OutboxArgs {
    #[command(subcommand)]
    decision: Option<DecisionCommand>,

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
enum DecisionCommand {
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

pub(crate) fn run(args: &OutboxArgs) -> anyhow::Result<Answer> {
    match &args.decision {
        None => list(args),
        Some(DecisionCommand::Retry(which)) => decide(which, Decision::Retry, "will be delivered"),
        Some(DecisionCommand::Abandon(which)) => decide(which, Decision::Abandon, "abandoned"),
    }
}

fn list(args: &OutboxArgs) -> anyhow::Result<Answer> {
    args.server.ask(async |client| {
        let documents = client.outbox().page(args.limit.min(PAGE));
        let filters = [("state", &args.state), ("series", &args.series)];
        let documents = list::narrow(documents, &filters, &[])?;
        let format = if args.json { Format::Json } else { Format::Table };
        let heads = ["NUMBER", "SERIES", "STATE", "TRIES", "UPDATED", "LAST ERROR"];
        list::print(documents, Some(args.limit), format, heads, |document| vec![row(document)]).await
    })
}

fn row(document: KnownDocument) -> [String; 6] {
    let KnownDocument { id, series, state, tries, updated, last_error, .. } = document;
    [id, series, state, tries.to_string(), updated, last_error.unwrap_or_default()]
}

fn decide(which: &Which, decision: Decision, outcome: &str) -> anyhow::Result<Answer> {
    if which.ids.is_empty() && !which.all {
        bail!("name documents by their numbers or event ids, or say --all");
    }
    which.server.ask(async |client| {
        let mut out = Output::new();
        if which.all {
            let count = client.decide_all(which.series.as_deref(), decision).await?;
            out.line(format_args!("{} {outcome}", counted(count, "document")))?;
        }
        for id in &which.ids {
            let document = client.decide(id, decision).await?;
            out.line(format_args!("{} {outcome}", output::printable(&document.id)))?;
        }
        out.flush()?;
        Ok(Answer::Yes)
    })
}
