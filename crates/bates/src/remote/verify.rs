//! `bates audit verify`: reads the operations log from a server and checks its chains here. Must never trust the server to
//! check itself.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use bates_api as api;
use bates_client::Client;
use bates_core::{
    ChainDigest, ChainHead, ChainReport, ChainVerifier, Channel, KnownRecord, Operation, OperationKind,
    OperationRecord, Runtime as _, SystemRuntime, Timestamp,
};
use clap::Args;

use super::server::ServerArgs;
use crate::output::{self, Answer, BAD, GOOD, Output, count_of};

/// Check that no record of the operations log was removed or changed
///
/// Each host has a chain of records: each record has the digest of the one before. Someone who can write to the database
/// could rewrite a whole chain, or remove it. So keep what `--json` prints in another place, and name that file later
/// with --known: the check then also finds a chain that was rewritten or removed since, or whose known records are gone
/// before the shortest retention of 30 days. Records after the last known ones can be cut off unnoticed, so keep heads
/// often. Exit code 1: the log was tampered with. Needs the right admin for all series.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates audit verify\n  \
    bates audit verify --json >> heads.jsonl\n  \
    bates audit verify --known heads.jsonl")]
pub(crate) struct VerifyArgs {
    /// What an earlier check with --json printed: each chain must still contain those records
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,

    /// Print JSON, one chain per line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// A chain, as `--json` prints it and `--known` reads it.
#[derive(serde::Serialize, serde::Deserialize)]
struct ChainLine {
    chain: String,
    /// The number of its last record.
    number: u64,
    digest: String,
    /// The time of that record; absent for a chain without records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(default)]
    records: u64,
    #[serde(default)]
    removed: u64,
    #[serde(default)]
    faults: Vec<String>,
}

impl VerifyArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<Answer> {
        let known = self.read_known()?;
        let client = self.server.client()?;
        // A chain that is gone has no head: all its known records are missing.
        let of_store = client.chains().await?.into_iter().map(|head| head.chain);
        let chains: BTreeSet<String> =
            of_store.chain(known.iter().map(|known| known.head.chain.to_string())).collect();
        let mut lines = Vec::new();
        for chain in chains {
            lines.push(to_line(verify(&client, &chain, known.clone()).await?));
        }
        let is_good = lines.iter().all(|line| line.faults.is_empty());
        if self.json {
            lines.iter().try_for_each(|line| out.print_json(line))?;
        } else {
            print(out, &lines)?;
        }
        Ok(if is_good { Answer::Yes } else { Answer::No })
    }

    fn read_known(&self) -> Result<Vec<KnownRecord>> {
        let Some(file) = &self.known else { return Ok(Vec::new()) };
        let context = || format!("cannot read {}", file.display());
        let text = std::fs::read_to_string(file).with_context(context)?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(at, line)| {
                let context = || format!("{} line {}: expected what --json prints", file.display(), at + 1);
                let ChainLine { chain, number, digest, at, .. } =
                    serde_json::from_str(line).with_context(context)?;
                let at = at.map(|at| at.parse()).transpose().with_context(context)?;
                let head = to_head(&api::ChainHead { chain, number, digest }).with_context(context)?;
                Ok(KnownRecord { head, at: at.unwrap_or(Timestamp::MAX) })
            })
            .collect()
    }
}

/// Reads a chain to its end, and its head afterwards: a record may be appended meanwhile, but none is past the head.
async fn verify(client: &Client, chain: &str, known: Vec<KnownRecord>) -> Result<ChainReport> {
    let (mut verifier, mut last) = (ChainVerifier::new(chain, known, SystemRuntime.now()), 0);
    loop {
        let before = last;
        while let Some(end) = read_page(client, chain, last, &mut verifier).await? {
            last = end;
        }
        let head = client.chains().await?.into_iter().find(|head| head.chain == chain);
        let head = head.map_or_else(|| Ok(ChainHead::new(chain)), |head| to_head(&head))?;
        if last >= head.number || last == before {
            return Ok(verifier.end(head));
        }
    }
}

/// Adds the records after a number. Returns the number of the last one; `None` if there are no more.
async fn read_page(
    client: &Client,
    chain: &str,
    after: u64,
    verifier: &mut ChainVerifier,
) -> Result<Option<u64>> {
    let page = client.chain_records(chain, Some(&after.to_string())).await?;
    let mut last = None;
    for operation in page.operations {
        let id = operation.id.clone();
        let record = to_record(operation)
            .with_context(|| format!("record {} cannot be read", output::sanitize(&id)))?;
        verifier.add(&record);
        last = Some(record.number);
    }
    Ok(last)
}

fn to_digest(text: &str) -> Result<ChainDigest> {
    text.parse().map_err(|()| anyhow::anyhow!("{:?} is not a digest", output::sanitize(text)))
}

fn to_head(api::ChainHead { chain, number, digest }: &api::ChainHead) -> Result<ChainHead> {
    Ok(ChainHead { chain: chain.as_str().into(), number: *number, digest: to_digest(digest)? })
}

fn to_record(of: api::Operation) -> Result<OperationRecord> {
    let channel = Channel::from_name(&of.how).with_context(|| format!("unknown channel {:?}", of.how))?;
    let kind = OperationKind::from_name(&of.kind).with_context(|| format!("unknown kind {:?}", of.kind))?;
    Ok(OperationRecord {
        chain: of.chain.context("it has no chain")?.into(),
        number: of.number.context("it has no number")?,
        previous: to_digest(&of.previous.context("it has no digest of the record before it")?)?,
        digest: to_digest(&of.digest.context("it has no digest")?)?,
        operation: Operation {
            id: of.id.parse()?,
            at: of.at.parse()?,
            caller: of.who.into(),
            channel,
            kind,
            series: of.series.map(|series| series.parse()).transpose()?,
            subject: of.subject.into(),
            before: of.before.map(Into::into),
            after: of.after.map(Into::into),
        },
    })
}

fn to_line(ChainReport { head, last_at, records, removed, faults }: ChainReport) -> ChainLine {
    ChainLine {
        chain: head.chain.into(),
        number: head.number,
        digest: head.digest.to_string(),
        at: last_at.map(|at| at.to_string()),
        records,
        removed,
        faults: faults.iter().map(ToString::to_string).collect(),
    }
}

fn print(out: &mut Output, lines: &[ChainLine]) -> Result<()> {
    if lines.is_empty() {
        return writeln!(out, "the operations log is empty");
    }
    for ChainLine { chain, number, digest, records, removed, faults, .. } in lines {
        let chain = output::sanitize(chain);
        let removed = match removed {
            0 => String::new(),
            removed => format!(", after {} that retention removed", count_of(*removed, "record")),
        };
        if faults.is_empty() {
            let checked = count_of(*records, "record");
            writeln!(out, "{GOOD}ok{GOOD:#}  {chain}: {checked}{removed}; head {number} {digest}")?;
        } else {
            writeln!(out, "{BAD}no{BAD:#}  {chain}:")?;
            faults.iter().try_for_each(|fault| writeln!(out, "    {fault}"))?;
        }
    }
    Ok(())
}
