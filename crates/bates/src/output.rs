//! Output of the commands: lines, tables and JSON on standard output, errors and notes on standard error, colors only
//! on a terminal.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::remote::server::Refusal;

const STDOUT: &str = "standard output";

pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    /// The command worked, and the answer is no: exit code 1.
    No,
}

impl Answer {
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::Yes { other } else { self }
    }
}

/// Buffered standard output, without colors unless it is a terminal.
pub(crate) struct Output(io::BufWriter<anstream::AutoStream<io::Stdout>>);

impl Output {
    pub(crate) fn new() -> Self {
        Self(io::BufWriter::with_capacity(64 * 1024, anstream::AutoStream::auto(io::stdout())))
    }

    /// Called by `writeln!`.
    pub(crate) fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<()> {
        self.0.write_fmt(text).context(STDOUT)
    }

    pub(crate) fn print_json(&mut self, value: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.0, value).map_err(io::Error::from).context(STDOUT)?;
        self.0.write_all(b"\n").context(STDOUT)
    }

    pub(crate) fn print_bytes(&mut self, bytes: &[u8]) -> Result<()> {
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

/// Whether the reader closed the pipe, as `head` does. That is not an error.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe)
}

pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Refusal>() {
        Some(refusal) => refusal.exit_code,
        None if let Some(error) = error.downcast_ref::<bates_core::FillError>() => error.code().exit_code(),
        None if error.downcast_ref::<io::Error>().is_some() || is_store_failure(error) => 3,
        None => 2,
    }
}

/// Whether the store failed. A wrong address, or a database without a store, is invalid usage instead.
fn is_store_failure(error: &anyhow::Error) -> bool {
    use bates_postgres::OpenError;
    error.downcast_ref().is_some_and(|error| !matches!(error, OpenError::Address(_) | OpenError::NoStore(_)))
        || error.downcast_ref::<bates_core::StoreError>().is_some()
}

/// Replaces control characters, so that text from outside cannot control the terminal.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    if text.contains(is_terminal_control) {
        text.replace(is_terminal_control, "\u{fffd}").into()
    } else {
        text.into()
    }
}

fn is_terminal_control(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

pub(crate) fn display_width(text: &str) -> usize {
    sanitize(text).width()
}

pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{}{}", sanitize(text), " ".repeat(columns.saturating_sub(display_width(text))))
}

/// The first row is the header.
pub(crate) fn print_table<const N: usize>(out: &mut Output, rows: &[[String; N]]) -> Result<()> {
    let widest = |column: usize| rows.iter().map(|row| display_width(&row[column])).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(widest);
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| pad(cell, width)).collect();
        let (line, style) = (cells.join("  "), if at == 0 { FAINT } else { Style::new() });
        writeln!(out, "{style}{}{style:#}", line.trim_end())?;
    }
    Ok(())
}

/// `1 position`, `2 positions`.
pub(crate) fn count_of(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", group_digits(count), if count == 1 { "" } else { "s" })
}

/// `1,000,000`.
pub(crate) fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}
