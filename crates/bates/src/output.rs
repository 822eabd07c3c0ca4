//! How the binary speaks: plain lines, JSON for machines, errors on standard error, colour on a terminal.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();

/// What a command found.
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
pub(crate) fn stdout() -> impl Write {
    io::BufWriter::with_capacity(64 * 1024, anstream::AutoStream::auto(io::stdout()))
}

/// One JSON value a line.
pub(crate) fn json_line(out: &mut impl Write, value: &impl Serialize) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)?;
    Ok(())
}

pub(crate) fn print_error(error: &anyhow::Error) {
    // Nobody reads what cannot be written, so a failure to complain is not complained about.
    let _ = writeln!(anstream::stderr(), "{BAD}error:{BAD:#} {error:#}");
}

pub(crate) fn print_note(note: &str) {
    let _ = writeln!(anstream::stderr(), "{FAINT}note: {note}{FAINT:#}");
}

/// Whether the reader of our output went away, as `head` does; that is its right, not an error.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| {
        cause.downcast_ref().is_some_and(closed)
            || cause.downcast_ref().is_some_and(|json: &serde_json::Error| {
                json.io_error_kind() == Some(io::ErrorKind::BrokenPipe)
            })
    })
}

/// A whole number with a comma between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
