//! `bates pattern parse`: identifiers back into scope and position.

use std::collections::BTreeMap;
use std::io::Write;

use bates_pattern::{ParseError, Parsed};
use clap::Args;
use serde::Serialize;

use super::compile::{PatternArgs, texts};
use crate::output::{self, Answer, BAD};

/// Read identifiers back: their scope and position
///
/// Exit code 1 if one of them is no identifier of the pattern.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates pattern parse '{project}-{type}-{seq}' PROJ-9012-1001 PROJ-9012-1002\n  \
    bates pattern parse '{seq:base62:6}' TpW7Oe --order shuffled \\\n    \
    --key 2b7e151628aed2a6abf7158809cf4f3c\n  \
    cat numbers.txt | bates pattern parse 'INV-{date:%Y}-{seq:5}' - --reset yearly --json")]
pub(crate) struct ParseArgs {
    #[command(flatten)]
    pattern: PatternArgs,

    /// The identifiers, or - to read them from standard input, one a line
    #[arg(value_name = "TEXT", required = true)]
    texts: Vec<String>,
}

#[derive(Serialize)]
struct Read<'t> {
    text: &'t str,
    position: u64,
    parameters: BTreeMap<&'t str, &'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<String>,
}

#[derive(Serialize)]
struct Unread<'t> {
    text: &'t str,
    error: Failure<'t>,
}

#[derive(Serialize)]
struct Failure<'t> {
    code: &'t str,
    message: String,
}

pub(super) fn run(args: ParseArgs) -> anyhow::Result<Answer> {
    let pattern = args.pattern.compile()?;
    let texts = texts(args.texts)?;
    let width = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let mut out = output::stdout();
    let mut answer = Answer::Yes;
    for text in &texts {
        match (pattern.parse(text), args.pattern.json) {
            (Ok(parsed), false) => print(&mut out, text, width, &parsed)?,
            (Ok(parsed), true) => output::json_line(&mut out, &read(text, &parsed))?,
            (Err(error), json) => {
                answer = Answer::No;
                if json {
                    output::json_line(&mut out, &unread(text, &error))?;
                } else {
                    writeln!(out, "{text:width$}  {BAD}not read{BAD:#}: {error}")?;
                }
            }
        }
    }
    out.flush()?;
    Ok(answer)
}

fn print(out: &mut impl Write, text: &str, width: usize, parsed: &Parsed<'_, '_>) -> anyhow::Result<()> {
    write!(out, "{text:width$}  position {}", parsed.position())?;
    for (name, value) in parsed.parameters() {
        write!(out, "  {name}={value}")?;
    }
    if let Some(period) = parsed.period() {
        write!(out, "  period {period}")?;
    }
    writeln!(out)?;
    Ok(())
}

fn read<'t>(text: &'t str, parsed: &'t Parsed<'_, '_>) -> Read<'t> {
    Read {
        text,
        position: parsed.position().value(),
        parameters: parsed.parameters().collect(),
        period: parsed.period().map(|period| period.to_string()),
    }
}

fn unread<'t>(text: &'t str, error: &'t ParseError) -> Unread<'t> {
    Unread { text, error: Failure { code: error.reason.code(), message: error.to_string() } }
}
