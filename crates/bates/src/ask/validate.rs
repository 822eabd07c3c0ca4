//! `bates validate`: whether texts could be identifiers of a series of a running server.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::server::{ServerArgs, escaped};
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

#[derive(Serialize, Deserialize)]
struct Verdict {
    #[serde(default)]
    text: String,
    valid: bool,
    reasons: Vec<Reason>,
}

#[derive(Serialize, Deserialize)]
struct Reason {
    code: String,
    message: String,
}

pub(crate) fn run(args: &ValidateArgs) -> anyhow::Result<Answer> {
    let mut out = Output::new();
    let mut answer = Answer::Yes;
    for text in &args.texts {
        let path = format!("/v1/series/{}/validate/{}", escaped(&args.series), escaped(text));
        let verdict = Verdict { text: text.clone(), ..args.server.get(&path)? };
        answer = answer.and(if verdict.valid { Answer::Yes } else { Answer::No });
        if args.json {
            out.json(&verdict)?;
            continue;
        }
        let (style, said) = if verdict.valid { (GOOD, "valid") } else { (BAD, "invalid") };
        out.line(format_args!("{}  {style}{said}{style:#}", printable(text)))?;
        let width = verdict.reasons.iter().map(|reason| reason.code.len()).max().unwrap_or(0);
        for Reason { code, message } in &verdict.reasons {
            out.line(format_args!("  {}  {}", padded(code, width), printable(message)))?;
        }
    }
    out.flush()?;
    Ok(answer)
}
