//! `bates validate`: whether texts could be identifiers of a series of a running server.

use bates_client::{Reason, Verdict};
use clap::Args;
use serde::Serialize;

use super::server::ServerArgs;
use crate::output::{Answer, BAD, GOOD, Output, padded, printable};

/// Judge texts by a series of a running server
///
/// About structure: shape, check characters and rules. Exit code 1 if one is not valid.
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

    /// Print JSON, one verdict a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// A verdict, and the text that it is about.
#[derive(Serialize)]
struct Line<'a> {
    text: &'a str,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

pub(crate) fn run(args: &ValidateArgs) -> anyhow::Result<Answer> {
    args.server.ask(async |client| {
        let (series, mut out, mut answer) = (client.series(&*args.series), Output::new(), Answer::Yes);
        for text in &args.texts {
            let verdict = series.validate(text).await?;
            answer = answer.and(if verdict.valid { Answer::Yes } else { Answer::No });
            if args.json {
                out.json(&Line { text, verdict: &verdict })?;
            } else {
                print(&mut out, text, &verdict)?;
            }
        }
        out.flush()?;
        Ok(answer)
    })
}

fn print(out: &mut Output, text: &str, verdict: &Verdict) -> anyhow::Result<()> {
    let (style, said) = if verdict.valid { (GOOD, "valid") } else { (BAD, "invalid") };
    out.line(format_args!("{}  {style}{said}{style:#}", printable(text)))?;
    let width = verdict.reasons.iter().map(|reason| reason.code.len()).max().unwrap_or(0);
    for Reason { code, message } in &verdict.reasons {
        out.line(format_args!("  {}  {}", padded(code, width), printable(message)))?;
    }
    Ok(())
}
