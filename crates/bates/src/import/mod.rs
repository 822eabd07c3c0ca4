//! `bates import`: a file of documents, numbered line by line over HTTP. Owns that a line is numbered once, however
//! often the command is stopped and run again: each line has an idempotency key of the import and the line.

mod lines;
mod numbered;
mod stream;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use bates_api::{Assignment, LineAnswer, Problem};
use bates_client::Client;
use clap::Args;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::ask::server::ServerArgs;
use crate::output::{self, Answer, Output, counted, grouped};
use crate::progress::Progress;
use lines::{Document, Documents, is_csv};
use numbered::Numbered;
use stream::{Outgoing, ScopeOf};

const FAILED_SHOWN: u64 = 10;

/// Bytes at the start of the file that identify an import.
const ID_BYTES: u64 = 64 * 1024;

/// Number the documents of a file, and have them delivered
///
/// Each line of an NDJSON file, or each row of a CSV file, is a document. Numbers are written beside the file, to
/// documents.numbered.ndjson. Stopped and run again it goes on where it was, and gives no document a second number.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates import documents.ndjson --series document --scope-from project=proj_code --scope-from type=kind\n  \
    bates import invoices.csv --series invoice --date-from issued --wait\n  \
    bates import letters.ndjson --series document project=PROJ type=9012")]
pub(crate) struct ImportArgs {
    /// The file: .ndjson, .jsonl or .csv
    file: PathBuf,

    /// Parameters of the scope that are the same for all documents
    #[arg(value_name = "NAME=VALUE")]
    parameters: Vec<String>,

    /// The series
    #[arg(long)]
    series: String,

    /// A parameter of the scope that is taken from a field of each document; without it, the field of its name
    #[arg(long, value_name = "NAME=FIELD")]
    scope_from: Vec<String>,

    /// The field of each document that holds its business date
    #[arg(long, value_name = "FIELD")]
    date_from: Option<String>,

    /// Where the numbers are written [default: beside the file, as NAME.numbered.ndjson]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// What the import is known by when it is run again [default: of the series, and the file's name and beginning]
    #[arg(long)]
    id: Option<String>,

    /// Wait until the documents are delivered, or dead
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Serialize)]
struct Written<'a> {
    id: String,
    event: String,
    line: u64,
    document: &'a RawValue,
}

impl ImportArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<Answer> {
        let client = self.server.client()?;
        let series = client.series(&*self.series);
        let parameters = series.describe().await?.parameters;
        let scope = ScopeOf::new(&self.parameters, &self.scope_from, self.date_from.as_deref(), parameters)?;
        let (mut compared, mut documents) = (Documents::open(&self.file)?, Documents::open(&self.file)?);
        let id = match &self.id {
            Some(id) => id.clone(),
            None => id_of(&self.series, &self.file)?,
        };
        let output = self.output.clone().unwrap_or_else(|| beside(&self.file));
        let mut numbered = Numbered::open(output, |document| compared.pass(document))?;
        (0..numbered.done).try_for_each(|_| documents.pass(None))?;
        let mut progress = Progress::new("documents", self.file.metadata()?.len());
        if numbered.done > 0 {
            output::print_note(&format!("going on behind {}", counted(numbered.done, "line")));
        }
        let mut failed = 0;
        let sent = stream::send(&series, Outgoing { documents, scope, id }, |sent, answer| {
            failed += u64::from(!write(&mut numbered, &sent.document, answer, failed)?);
            progress.show(numbered.done, sent.bytes);
            Ok(())
        })
        .await;
        // Answers that arrived are kept also if the request failed.
        numbered.flush()?;
        progress.end();
        sent?;
        self.summarize(&client, numbered, failed, out).await
    }

    async fn summarize(
        &self,
        client: &Client,
        numbered: Numbered,
        failed: u64,
        out: &mut Output,
    ) -> Result<Answer> {
        let documents = counted(numbered.done - failed.min(numbered.done), "document");
        let path = numbered.close()?;
        writeln!(out, "{documents} numbered, {} failed: {}", grouped(failed), path.display())?;
        let counts = loop {
            let counts = client.outbox_counts().await?.remove(&self.series).unwrap_or_default();
            if !self.wait || counts.get("pending").is_none_or(|pending| *pending == 0) {
                break counts;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let of = |state: &str| grouped(counts.get(state).copied().unwrap_or(0));
        let (delivered, pending, dead) = (of("delivered"), of("pending"), of("dead"));
        writeln!(out, "the series has {delivered} delivered, {pending} pending, {dead} dead")?;
        Ok(if failed == 0 { Answer::Yes } else { Answer::No })
    }
}

/// Returns whether the line has a number.
fn write(numbered: &mut Numbered, document: &Document, answer: LineAnswer, failed: u64) -> Result<bool> {
    let Document { line, text, .. } = document;
    let Problem { code, detail, .. } = match answer {
        LineAnswer::Assignment(Assignment { id, event, .. }) => {
            numbered.write(&Written { id, event, line: *line, document: text })?;
            return Ok(true);
        }
        LineAnswer::Refusal { error, .. } => error,
    };
    let detail = output::printable(&detail).into_owned();
    match failed {
        0..FAILED_SHOWN => {
            output::print_note(&format!("line {line}: {}: {detail}", output::printable(&code)));
        }
        FAILED_SHOWN => output::print_note("more lines fail; the file of numbers has them all"),
        _ => {}
    }
    // A second run begins at the first line without a number.
    numbered.write(&serde_json::json!({"line": line, "error": {"code": code, "detail": detail}}))?;
    Ok(false)
}

/// `documents.ndjson` → `documents.numbered.ndjson`, in the same folder.
fn beside(file: &Path) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    file.with_file_name(format!("{stem}.numbered.ndjson"))
}

/// Independent of the folder, and of lines added to the file.
fn id_of(series: &str, file: &Path) -> Result<String> {
    let mut beginning = Vec::new();
    File::open(file)?.take(ID_BYTES).read_to_end(&mut beginning)?;
    // The first document, and in CSV the row of heads.
    let count = if is_csv(file)? { 2 } else { 1 };
    let lines: Vec<Vec<u8>> =
        beginning.split(|byte| *byte == b'\n').take(count).map(|line| line.trim_ascii().to_vec()).collect();
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let digest = Sha256::digest(serde_json::to_vec(&(series, name, lines))?);
    let mut id = String::new();
    for byte in digest.iter().take(12) {
        write!(id, "{byte:02x}")?;
    }
    Ok(id)
}

/// `None` at the end of the file.
fn read_line(reader: &mut impl std::io::BufRead, line: &mut Vec<u8>) -> std::io::Result<Option<usize>> {
    line.clear();
    let read = reader.read_until(b'\n', line)?;
    Ok((read > 0).then_some(read))
}
