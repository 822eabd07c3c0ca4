//! `bates outbox`: lists documents, and retries or abandons them.

use anyhow::{Result, bail};
use bates_client::{DocumentAction, DocumentStatus};
use clap::{Args, Subcommand};

use super::list::{self, Format};
use super::server::ServerArgs;
use crate::output::{self, Output, count_of};

const PAGE: usize = 1_000;

/// List documents, and retry or abandon dead ones
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

    /// Max documents listed
    #[arg(short = 'n', long, default_value_t = 100)]
    limit: usize,

    /// Print JSON, one document per line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
enum DecisionCommand {
    /// Retry dead documents, or deliver pending ones now
    #[command(after_help = "Examples:\n  \
        bates outbox retry PROJ-9012-1001 PROJ-9012-1002\n  \
        bates outbox retry --all --series document")]
    Retry(DocumentsArgs),
    /// Abandon documents: their numbers become gaps
    #[command(after_help = "Examples:\n  \
        bates outbox abandon PROJ-9012-1001\n  \
        bates outbox abandon 019a8c4e-5f4b-7c3d-9a51-0d3a5b6c7d8e\n  \
        bates outbox abandon --all --series document")]
    Abandon(DocumentsArgs),
}

#[derive(Debug, Args)]
struct DocumentsArgs {
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

impl OutboxArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<()> {
        match &self.decision {
            None => self.list(out).await,
            Some(DecisionCommand::Retry(documents)) => {
                documents.decide(out, DocumentAction::Retry, "will be delivered").await
            }
            Some(DecisionCommand::Abandon(documents)) => {
                documents.decide(out, DocumentAction::Abandon, "abandoned").await
            }
        }
    }

    async fn list(&self, out: &mut Output) -> Result<()> {
        let documents = self.server.client()?.outbox().page(self.limit.min(PAGE));
        let filters = [("state", &self.state), ("series", &self.series)];
        let mut documents = list::add_filters(documents, filters, &[])?;
        let format = if self.json { Format::Json } else { Format::Table };
        let heads = ["NUMBER", "SERIES", "STATE", "TRIES", "UPDATED", "LAST ERROR"];
        list::print(out, &mut documents, Some(self.limit), format, heads, |document| vec![row(document)])
            .await
    }
}

fn row(document: DocumentStatus) -> [String; 6] {
    let DocumentStatus { id, series, state, tries, updated, last_error, .. } = document;
    [id, series, state, tries.to_string(), updated, last_error.unwrap_or_default()]
}

impl DocumentsArgs {
    async fn decide(&self, out: &mut Output, decision: DocumentAction, outcome: &str) -> Result<()> {
        if self.ids.is_empty() && !self.all {
            bail!("missing documents: give their numbers or event ids, or --all");
        }
        let client = self.server.client()?;
        if self.all {
            let count = client.decide_all(self.series.as_deref(), decision).await?;
            writeln!(out, "{} {outcome}", count_of(count, "document"))?;
        }
        for id in &self.ids {
            let document = client.decide(id, decision).await?;
            writeln!(out, "{} {outcome}", output::sanitize(&document.id))?;
        }
        Ok(())
    }
}
