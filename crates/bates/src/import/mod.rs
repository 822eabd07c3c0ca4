//! `bates import`: numbers the documents of a file line by line over HTTP. Each line has an idempotency key made of
//! the import and the line, so that a line is numbered once, however often the command is stopped and run again.

mod lines;
mod numbers_file;
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

use crate::output::{self, Answer, Output, count_of, group_digits};
use crate::progress::Progress;
use crate::remote::server::ServerArgs;
use lines::{Document, Documents, is_csv};
use numbers_file::NumbersFile;
use stream::{ScopeMapping, Upload};

const FAILED_SHOWN: u64 = 10;

/// Bytes at the start of the file that identify an import.
const ID_BYTES: u64 = 64 * 1024;

/// Number the documents of a file and deliver them
///
/// Each line of an NDJSON file, or each row of a CSV file, is a document. Numbers are written next to the file, to
/// documents.numbered.ndjson. If the import is interrupted, run it again: it continues where it stopped, and no
/// document gets a second number.
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

    /// A parameter of the scope taken from a field of each document [default: the field of the same name]
    #[arg(long, value_name = "NAME=FIELD")]
    scope_from: Vec<String>,

    /// The field of each document that holds its business date
    #[arg(long, value_name = "FIELD")]
    date_from: Option<String>,

    /// Where to write the numbers [default: next to the file, as NAME.numbered.ndjson]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The id by which a second run continues the import [default: from the series, the file name and the first line]
    #[arg(long)]
    id: Option<String>,

    /// Wait until the documents are delivered or dead
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Serialize)]
struct NumberedLine<'a> {
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
        let Self { parameters: fixed, scope_from, date_from, .. } = self;
        let scope = ScopeMapping::new(fixed, scope_from, date_from.as_deref(), parameters)?;
        let (mut compared, mut documents) = (Documents::open(&self.file)?, Documents::open(&self.file)?);
        let id = self.id.clone().map_or_else(|| import_id(&self.series, &self.file), Ok)?;
        let output = self.output.clone().unwrap_or_else(|| default_output(&self.file));
        let mut numbers_file = NumbersFile::open(output, |document| compared.skip(document))?;
        (0..numbers_file.done).try_for_each(|_| documents.skip(None))?;
        let mut progress = Progress::new("documents", self.file.metadata()?.len());
        if numbers_file.done > 0 {
            output::print_note(&format!("continuing after {}", count_of(numbers_file.done, "line")));
        }
        let mut failed = 0;
        let sent = stream::send(&series, Upload { documents, scope, id }, |sent, answer| {
            failed += u64::from(!write_answer(&mut numbers_file, &sent.document, answer, failed)?);
            progress.show(numbers_file.done, sent.bytes);
            Ok(())
        })
        .await;
        // Keep the answers that arrived, even if the request failed.
        numbers_file.flush()?;
        progress.end();
        sent?;
        self.report(&client, numbers_file, failed, out).await
    }

    async fn report(
        &self,
        client: &Client,
        file: NumbersFile,
        failed: u64,
        out: &mut Output,
    ) -> Result<Answer> {
        let documents = count_of(file.done.saturating_sub(failed), "document");
        let path = file.close()?;
        writeln!(out, "{documents} numbered, {} failed: {}", group_digits(failed), path.display())?;
        let counts = loop {
            let counts = client.outbox_counts().await?.remove(&self.series).unwrap_or_default();
            if !self.wait || counts.get("pending").is_none_or(|pending| *pending == 0) {
                break counts;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let of = |state: &str| group_digits(counts.get(state).copied().unwrap_or(0));
        let (delivered, pending, dead) = (of("delivered"), of("pending"), of("dead"));
        writeln!(out, "the series has {delivered} delivered, {pending} pending, {dead} dead")?;
        Ok(if failed == 0 { Answer::Yes } else { Answer::No })
    }
}

/// Returns whether the line has a number.
fn write_answer(file: &mut NumbersFile, sent: &Document, answer: LineAnswer, failed: u64) -> Result<bool> {
    let Document { line, text, .. } = sent;
    let Problem { code, detail, .. } = match answer {
        LineAnswer::Assignment(Assignment { id, event, .. }) => {
            file.write(&NumberedLine { id, event, line: *line, document: text })?;
            return Ok(true);
        }
        LineAnswer::Refusal { error, .. } => error,
    };
    let detail = output::sanitize(&detail).into_owned();
    match failed {
        0..FAILED_SHOWN => {
            output::print_note(&format!("line {line}: {}: {detail}", output::sanitize(&code)));
        }
        FAILED_SHOWN => output::print_note("more lines failed; the output file lists all of them"),
        _ => {}
    }
    // A second run begins at the first line without a number.
    file.write(&serde_json::json!({"line": line, "error": {"code": code, "detail": detail}}))?;
    Ok(false)
}

/// `documents.ndjson` → `documents.numbered.ndjson`, in the same folder.
fn default_output(file: &Path) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    file.with_file_name(format!("{stem}.numbered.ndjson"))
}

/// Does not depend on the folder, or on lines appended to the file.
fn import_id(series: &str, file: &Path) -> Result<String> {
    let mut start = Vec::new();
    File::open(file)?.take(ID_BYTES).read_to_end(&mut start)?;
    // The first document, and in CSV the header row.
    let count = if is_csv(file)? { 2 } else { 1 };
    let lines: Vec<&[u8]> = start.split(|byte| *byte == b'\n').take(count).map(<[u8]>::trim_ascii).collect();
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let digest = Sha256::digest(serde_json::to_vec(&(series, name, lines))?);
    let mut id = String::new();
    digest.iter().take(12).try_for_each(|byte| write!(id, "{byte:02x}"))?;
    Ok(id)
}

/// `None` at the end of the file.
fn read_line(reader: &mut impl std::io::BufRead, line: &mut Vec<u8>) -> std::io::Result<Option<usize>> {
    line.clear();
    let read = reader.read_until(b'\n', line)?;
    Ok((read > 0).then_some(read))
}
