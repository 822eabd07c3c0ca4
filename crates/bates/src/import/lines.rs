//! Reads the documents of a file: one per line of NDJSON, or per row of CSV. Must never hold more than the caller
//! asks for.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

pub(super) fn is_csv(file: &Path) -> Result<bool> {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("ndjson" | "jsonl" | "json") => Ok(false),
        Some("csv") => Ok(true),
        _ => bail!("{}: expected a file that ends in .ndjson, .jsonl or .csv", file.display()),
    }
}

pub(super) struct Document {
    /// From 1.
    pub(super) line: u64,
    pub(super) text: Box<RawValue>,
    pub(super) value: Value,
}

pub(super) struct Documents {
    source: Source,
    line: u64,
    pub(super) bytes: u64,
}

enum Source {
    Lines(BufReader<File>),
    Rows(Box<csv::Reader<BufReader<File>>>, csv::StringRecord),
}

impl Documents {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let reader = BufReader::with_capacity(1 << 20, file);
        let source = if is_csv(path)? {
            let mut rows = csv::Reader::from_reader(reader);
            let heads = rows.headers().context("the first row must name the fields")?.clone();
            Source::Rows(Box::new(rows), heads)
        } else {
            Source::Lines(reader)
        };
        Ok(Self { source, line: 0, bytes: 0 })
    }

    /// Skips a document that was numbered before. Fails if it changed, because documents could be missed or numbered
    /// twice.
    pub(super) fn skip(&mut self, numbered: Option<&Value>) -> Result<()> {
        match (self.next()?, numbered) {
            (_, None) => Ok(()),
            (None, Some(_)) => bail!("the file has fewer documents than were numbered before"),
            (Some(document), Some(numbered)) if document.value == *numbered => Ok(()),
            _ => bail!("document {} is not the one numbered before: the file was changed", self.line),
        }
    }

    /// Stops at `count` documents or at `bytes`.
    pub(super) fn take(&mut self, count: usize, bytes: usize) -> Result<Vec<Document>> {
        let (mut taken, begin) = (Vec::new(), self.bytes);
        while taken.len() < count && self.bytes - begin < bytes as u64 {
            let Some(document) = self.next()? else { break };
            taken.push(document);
        }
        Ok(taken)
    }

    fn next(&mut self) -> Result<Option<Document>> {
        let line = self.line + 1;
        let document = match &mut self.source {
            Source::Lines(reader) => loop {
                let mut text = Vec::new();
                let Some(read) = super::read_line(reader, &mut text)? else { break None };
                self.bytes += read as u64;
                if !text.trim_ascii().is_empty() {
                    let read = || Ok((serde_json::from_slice(&text)?, serde_json::from_slice(&text)?));
                    let read: serde_json::Result<_> = read();
                    break Some(read.with_context(|| format!("document {line} is not valid JSON"))?);
                }
            },
            Source::Rows(rows, heads) => {
                let mut row = csv::StringRecord::new();
                let found = rows.read_record(&mut row).with_context(|| format!("row {line}"))?;
                self.bytes = rows.position().byte();
                let fields = heads.iter().zip(&row).map(|(head, cell)| (head.to_owned(), Value::from(cell)));
                let value = Value::Object(fields.collect());
                found.then(|| anyhow::Ok((to_raw_value(&value)?, value))).transpose()?
            }
        };
        self.line += u64::from(document.is_some());
        Ok(document.map(|(text, value)| Document { line, text, value }))
    }
}
