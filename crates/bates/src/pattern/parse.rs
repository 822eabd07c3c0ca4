//! `bates pattern parse`: identifiers back into scope and position.

use std::collections::BTreeMap;
use std::fmt::Write;

use bates_api::Reason;
use bates_pattern::Parsed;
use clap::Args;
use serde::Serialize;

use super::{compile::PatternArgs, each_text};
use crate::output::{self, Answer, BAD, Output};

/// Read identifiers back: their scope and position
///
/// The rules of --reject and --restrict are not asked: what was issued before a rule came is still read. Exit
/// code 1 if one of the texts is no identifier of the pattern.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates pattern parse '{project}-{type}-{seq}' PROJ-9012-1001 PROJ-9012-1002\n  \
    bates pattern parse '{seq:base62:6}' TpW7Oe --order shuffled \\\n    \
    --key 2b7e151628aed2a6abf7158809cf4f3c\n  \
    cat numbers.txt | bates pattern parse 'INV-{date:%Y}-{seq:5}' - --reset yearly --json")]
pub(crate) struct ParseArgs {
    #[command(flatten)]
    pattern: PatternArgs,

    /// The identifiers; - stands for those on standard input, one a line
    #[arg(value_name = "TEXT", required = true)]
    texts: Vec<String>,
}

#[derive(Serialize)]
struct Read<'t> {
    text: &'t str,
    position: u64,
    parameters: BTreeMap<&'t str, &'t str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    date: BTreeMap<&'t str, i16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<String>,
}

#[derive(Serialize)]
struct Unread<'t> {
    text: &'t str,
    error: Reason,
}

impl ParseArgs {
    pub(super) fn run(&self, out: &mut Output) -> anyhow::Result<Answer> {
        let pattern = self.pattern.compile()?;
        let mut answer = Answer::Yes;
        each_text(&self.texts, out, |out, text, width| match (pattern.parse(text), self.pattern.json) {
            (Ok(parsed), false) => writeln!(out, "{}", describe(text, width, &parsed)),
            (Ok(parsed), true) => out.json(&read(text, &parsed)),
            (Err(error), json) => {
                answer = Answer::No;
                if json {
                    let code = error.reason.code().to_owned();
                    return out.json(&Unread { text, error: Reason { code, message: error.to_string() } });
                }
                writeln!(out, "{}  {BAD}not read{BAD:#}: {error}", output::padded(text, width))
            }
        })?;
        Ok(answer)
    }
}

fn describe(text: &str, width: usize, parsed: &Parsed<'_, '_>) -> String {
    let mut line = format!("{}  position {}", output::padded(text, width), parsed.position());
    let parameters = parsed.parameters().map(|(name, value)| format!("  {name}={value}"));
    let date = parsed.date().map(|(part, value)| format!("  {} {value}", part.replace('_', " ")));
    line.extend(parameters.chain(date));
    if let Some(period) = parsed.period() {
        let _ = write!(line, "  period {period}");
    }
    line
}

fn read<'t>(text: &'t str, parsed: &'t Parsed<'_, '_>) -> Read<'t> {
    Read {
        text,
        position: parsed.position().value(),
        parameters: parsed.parameters().collect(),
        date: parsed.date().collect(),
        period: parsed.period().map(|period| period.to_string()),
    }
}
