//! How the binary speaks: plain lines, JSON for machines, errors on standard error, colour on a terminal.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::ask::server::Refused;

const STDOUT: &str = "standard output";

pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    /// The call was good and the answer is no: exit code 1.
    No,
}

impl Answer {
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::Yes { other } else { self }
    }
}

/// Standard output in large writes; colours are left out unless it is a terminal.
pub(crate) struct Output(io::BufWriter<anstream::AutoStream<io::Stdout>>);

impl Output {
    pub(crate) fn new() -> Self {
        Self(io::BufWriter::with_capacity(64 * 1024, anstream::AutoStream::auto(io::stdout())))
    }

    /// Called by `writeln!`.
    pub(crate) fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<()> {
        self.0.write_fmt(text).context(STDOUT)
    }

    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.0, value).map_err(io::Error::from).context(STDOUT)?;
        self.0.write_all(b"\n").context(STDOUT)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).context(STDOUT)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.0.flush().context(STDOUT)
    }
}

pub(crate) fn print_error(error: &anyhow::Error) {
    // A failure to write to standard error cannot be reported anywhere.
    let _ = writeln!(anstream::stderr(), "{BAD}error:{BAD:#} {error:#}");
}

pub(crate) fn print_note(note: &str) {
    let _ = writeln!(anstream::stderr(), "{FAINT}note: {note}{FAINT:#}");
}

/// Whether the reader of the output went away, as `head` does, which is no error.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe)
}

pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Refused>() {
        Some(refused) => refused.exit_code,
        None if let Some(error) = error.downcast_ref::<bates_core::FillError>() => error.code().exit_code(),
        None if error.downcast_ref::<io::Error>().is_some() || is_of_store(error) => 3,
        None => 2,
    }
}

/// Whether a store could not be reached or used, rather than was named wrongly.
fn is_of_store(error: &anyhow::Error) -> bool {
    use bates_postgres::OpenError;
    error.downcast_ref().is_some_and(|error| !matches!(error, OpenError::Address(_) | OpenError::NoStore(_)))
        || error.downcast_ref::<bates_core::StoreError>().is_some()
}

/// Replaces control characters, with which a text from outside could steer a terminal.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(is_steering) { text.replace(is_steering, "\u{fffd}").into() } else { text.into() }
}

fn is_steering(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub(crate) fn width(text: &str) -> usize {
    printable(text).width()
}

pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{}{}", printable(text), " ".repeat(columns.saturating_sub(width(text))))
}

/// The first row holds the heads of the columns.
pub(crate) fn table<const N: usize>(out: &mut Output, rows: &[[String; N]]) -> Result<()> {
    let widest = |column: usize| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(widest);
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| padded(cell, width)).collect();
        let (line, style) = (cells.join("  "), if at == 0 { FAINT } else { Style::new() });
        writeln!(out, "{style}{}{style:#}", line.trim_end())?;
    }
    Ok(())
}

/// `1 position`, `2 positions`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// `1,000,000`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}
