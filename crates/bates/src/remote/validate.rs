//! `bates validate`: checks whether texts could be identifiers of a series of a running server.

use anyhow::Result;
use bates_client::{Reason, Verdict};
use clap::Args;
use serde::Serialize;

use super::server::ServerArgs;
use crate::output::{Answer, BAD, GOOD, Output, pad, sanitize};

/// Check texts against a series of a running server
///
/// Checks shape, check characters and rules, not whether a number was issued. Exit code 1 if a text is invalid.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bates validate farmer 548126974596\n  bates validate document PROJ-9012-1001 --json"
)]
pub(crate) struct ValidateArgs {
    /// The series
    series: String,

    /// The texts
    #[arg(required = true, value_name = "TEXT")]
    texts: Vec<String>,

    /// Print JSON, one verdict per line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

impl ValidateArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<Answer> {
        let (series, mut answer) = (self.server.client()?.series(&*self.series), Answer::Yes);
        for text in &self.texts {
            let verdict = series.validate(text).await?;
            answer = answer.and(TextVerdict { text, verdict }.print(out, self.json, 0)?);
        }
        Ok(answer)
    }
}

#[derive(Serialize)]
pub(crate) struct TextVerdict<'a> {
    pub(crate) text: &'a str,
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
}

impl TextVerdict<'_> {
    /// `width` is that of the column of texts.
    pub(crate) fn print(&self, out: &mut Output, json: bool, width: usize) -> Result<Answer> {
        let Verdict { valid, reasons } = &self.verdict;
        let (answer, style, word) =
            if *valid { (Answer::Yes, GOOD, "valid") } else { (Answer::No, BAD, "invalid") };
        if json {
            out.print_json(self)?;
            return Ok(answer);
        }
        writeln!(out, "{}  {style}{word}{style:#}", pad(self.text, width))?;
        let code_width = reasons.iter().map(|reason| reason.code.len()).max().unwrap_or(0);
        for Reason { code, message } in reasons {
            writeln!(out, "  {}  {}", pad(code, code_width), sanitize(message))?;
        }
        Ok(answer)
    }
}
