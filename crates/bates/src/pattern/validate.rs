//! `bates pattern validate`: whether texts could be identifiers, and everything that speaks against them.

use bates_pattern::Verdict;
use clap::Args;
use serde::Serialize;

use super::compile::PatternArgs;
use super::texts;
use crate::output::{self, Answer, BAD, GOOD, Output};

/// Say whether texts could be identifiers of the pattern
///
/// Looks at shape, check characters and rules, and names every rule that is broken. Whether an identifier
/// was issued is not asked, and no order or key changes the verdict. Exit code 1 if one of them is invalid.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates pattern validate '{seq:9}{check:verhoeff}' 5738201964 --reject openg2p\n  \
    bates pattern validate '{seq:4}{check:verhoeff}' 00057 20168 --reject openg2p --restrict 786,420\n  \
    cat ids.txt | bates pattern validate '{seq:11}{check:luhn}' - --json")]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pattern: PatternArgs,

    /// The texts; - stands for those on standard input, one a line
    #[arg(value_name = "TEXT", required = true)]
    texts: Vec<String>,
}

#[derive(Serialize)]
struct Judged<'t> {
    text: &'t str,
    valid: bool,
    reasons: Vec<Reason>,
}

#[derive(Serialize)]
struct Reason {
    code: &'static str,
    message: String,
}

pub(super) fn run(args: &ValidateArgs) -> anyhow::Result<Answer> {
    let pattern = args.pattern.compile_any_order()?;
    let mut out = Output::new();
    let mut answer = Answer::Yes;
    texts::each(&args.texts, &mut out, |out, text, width| {
        let verdict = pattern.validate(text);
        answer = answer.and(if verdict.is_valid() { Answer::Yes } else { Answer::No });
        if args.pattern.json { out.json(&judged(text, &verdict)) } else { print(out, text, width, &verdict) }
    })?;
    Ok(answer)
}

fn judged<'t>(text: &'t str, verdict: &Verdict) -> Judged<'t> {
    let reasons =
        verdict.reasons().iter().map(|reason| Reason { code: reason.code(), message: reason.to_string() });
    Judged { text, valid: verdict.is_valid(), reasons: reasons.collect() }
}

fn print(out: &mut Output, text: &str, width: usize, verdict: &Verdict) -> anyhow::Result<()> {
    let text = output::padded(text, width);
    if verdict.is_valid() {
        return out.line(format_args!("{text}  {GOOD}valid{GOOD:#}"));
    }
    out.line(format_args!("{text}  {BAD}invalid{BAD:#}"))?;
    let code_width = verdict.reasons().iter().map(|reason| reason.code().len()).max().unwrap_or(0);
    for reason in verdict.reasons() {
        out.line(format_args!("  {:code_width$}  {reason}", reason.code()))?;
    }
    Ok(())
}
