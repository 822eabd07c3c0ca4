//! The texts that `parse` and `validate` look at: those of the command line, and those of standard input,
//! which are read one at a time, so that a pipe can be as long as it likes.

use std::io::{self, BufRead, BufReader, Read};

use anyhow::{Context, Result, bail};

use crate::output::{self, Output};

/// No identifier comes near this; a longer line is no list of identifiers.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// One long text does not push all others aside.
const WIDTH_MAX: usize = 60;

/// Each text, and how wide the column of texts should be: known for those of the command line. Flushes.
pub(super) fn each(
    texts: &[String],
    out: &mut Output,
    mut see: impl FnMut(&mut Output, &str, usize) -> Result<()>,
) -> Result<()> {
    let width = texts.iter().map(|text| output::width(text)).max().unwrap_or(0).min(WIDTH_MAX);
    for text in texts {
        if text == "-" {
            each_line(out, |out, line| see(out, line, width))?;
        } else {
            see(out, text, width)?;
        }
    }
    out.flush()
}

fn each_line(out: &mut Output, mut see: impl FnMut(&mut Output, &str) -> Result<()>) -> Result<()> {
    let mut input = BufReader::new(io::stdin());
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        // Whoever writes line by line is answered line by line.
        if input.buffer().is_empty() {
            out.flush()?;
        }
        let read =
            input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).context("standard input")?;
        if read == 0 {
            break;
        }
        if read as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
            bail!("standard input, line {number}: longer than {LINE_BYTES_MAX} bytes");
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        // What is no UTF-8 is no identifier either, and is said so like any other.
        see(out, &String::from_utf8_lossy(text))?;
    }
    Ok(())
}
