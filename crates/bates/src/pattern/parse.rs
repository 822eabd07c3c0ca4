//! `bates pattern parse`: identifiers back into scope and position.

use std::collections::BTreeMap;
use std::fmt::Write;

use bates_api::Reason;
use bates_pattern::ParsedIdentifier;
use clap::Args;
use serde::Serialize;

use super::{compile::PatternArgs, for_each_text};
use crate::output::{self, Answer, BAD, Output};

/// Parse identifiers: print their scope and position
///
/// The rules of --reject and --restrict do not apply: an identifier that was issued before a rule was added still
/// parses. Exit code 1 if a text is not an identifier of the pattern.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates pattern parse '{project}-{type}-{seq}' PROJ-9012-1001 PROJ-9012-1002\n  \
    bates pattern parse '{seq:base62:6}' TpW7Oe --order shuffled \\\n    \
    --key 2b7e151628aed2a6abf7158809cf4f3c\n  \
    cat numbers.txt | bates pattern parse 'INV-{date:%Y}-{seq:5}' - --reset yearly --json")]
pub(crate) struct ParseArgs {
    #[command(flatten)]
    pattern: PatternArgs,

    /// The identifiers; - reads them from standard input, one per line
    #[arg(value_name = "TEXT", required = true)]
    texts: Vec<String>,
}

#[derive(Serialize)]
struct ParsedText<'t> {
    text: &'t str,
    position: u64,
    parameters: BTreeMap<&'t str, &'t str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    date: BTreeMap<&'t str, i16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<String>,
}

#[derive(Serialize)]
struct UnparsedText<'t> {
    text: &'t str,
    error: Reason,
}

impl ParseArgs {
    pub(super) fn run(&self, out: &mut Output) -> anyhow::Result<Answer> {
        let pattern = self.pattern.compile()?;
        let mut answer = Answer::Yes;
        for_each_text(&self.texts, out, |out, text, width| match (pattern.parse(text), self.pattern.json) {
            (Ok(parsed), false) => writeln!(out, "{}", describe(text, width, &parsed)),
            (Ok(parsed), true) => out.print_json(&parsed_text(text, &parsed)),
            (Err(error), json) => {
                answer = Answer::No;
                if json {
                    let (code, message) = (error.reason.code().to_owned(), error.to_string());
                    return out.print_json(&UnparsedText { text, error: Reason { code, message } });
                }
                writeln!(out, "{}  {BAD}not parsed{BAD:#}: {error}", output::pad(text, width))
            }
        })?;
        Ok(answer)
    }
}

fn describe(text: &str, width: usize, parsed: &ParsedIdentifier<'_, '_>) -> String {
    let mut line = format!("{}  position {}", output::pad(text, width), parsed.position());
    let parameters = parsed.parameters().map(|(name, value)| format!("  {name}={value}"));
    let date = parsed.date().map(|(part, value)| format!("  {} {value}", part.replace('_', " ")));
    line.extend(parameters.chain(date));
    if let Some(period) = parsed.period() {
        let _ = write!(line, "  period {period}");
    }
    line
}

fn parsed_text<'t>(text: &'t str, parsed: &'t ParsedIdentifier<'_, '_>) -> ParsedText<'t> {
    ParsedText {
        text,
        position: parsed.position().value(),
        parameters: parsed.parameters().collect(),
        date: parsed.date().collect(),
        period: parsed.period().map(|period| period.to_string()),
    }
}
