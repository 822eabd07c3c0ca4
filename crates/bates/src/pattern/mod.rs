//! `bates pattern`: tries a pattern without a server or a store.

mod capacity;
mod compile;
mod parse;
mod render;
mod validate;

use std::io::{self, BufRead, BufReader, Read};

use anyhow::{Context, Result, bail};
use clap::Subcommand;

use crate::output::{self, Answer, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum PatternCommand {
    Render(render::RenderArgs),
    Parse(parse::ParseArgs),
    Validate(validate::ValidateArgs),
    Capacity(capacity::CapacityArgs),
}

impl PatternCommand {
    pub(crate) fn run(self, out: &mut Output) -> Result<Answer> {
        match self {
            Self::Render(args) => args.run(out),
            Self::Parse(args) => args.run(out),
            Self::Validate(args) => args.run(out),
            Self::Capacity(args) => args.run(out),
        }
    }
}

/// No identifier is this long.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// One long text must not widen the column for all.
const WIDTH_MAX: usize = 60;

/// Calls `visit` with each text and the width of the column of texts, then flushes.
fn for_each_text(
    texts: &[String],
    out: &mut Output,
    mut visit: impl FnMut(&mut Output, &str, usize) -> Result<()>,
) -> Result<()> {
    let width = texts.iter().map(|text| output::display_width(text)).max().unwrap_or(0).min(WIDTH_MAX);
    for text in texts {
        if text == "-" {
            for_each_line(out, |out, line| visit(out, line, width))?;
        } else {
            visit(out, text, width)?;
        }
    }
    out.flush()
}

fn for_each_line(out: &mut Output, mut visit: impl FnMut(&mut Output, &str) -> Result<()>) -> Result<()> {
    let mut input = BufReader::new(io::stdin());
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        // A program that writes line by line gets its answers line by line.
        if input.buffer().is_empty() {
            out.flush()?;
        }
        let read = input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let read = read.context("standard input")?;
        if read == 0 {
            break;
        }
        if read as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
            bail!("standard input, line {number}: longer than {LINE_BYTES_MAX} bytes");
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        // A line that is not UTF-8 is reported like any other invalid text.
        visit(out, &String::from_utf8_lossy(text))?;
    }
    Ok(())
}
