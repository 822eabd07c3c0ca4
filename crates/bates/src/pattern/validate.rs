//! `bates pattern validate`: checks whether texts could be identifiers, and names every reason against them.

use bates_api::{Reason, Verdict};
use clap::Args;

use super::{compile::PatternArgs, for_each_text};
use crate::output::{Answer, Output};
use crate::remote::validate::TextVerdict;

/// Check whether texts could be identifiers of the pattern
///
/// Checks shape, check characters and rules, and names every rule that is broken. Does not check whether an
/// identifier was issued; order and key make no difference. Exit code 1 if a text is invalid.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates pattern validate '{seq:9}{check:verhoeff}' 5738201964 --reject openg2p\n  \
    bates pattern validate '{seq:4}{check:verhoeff}' 00057 20168 --reject openg2p --restrict 786,420\n  \
    cat ids.txt | bates pattern validate '{seq:11}{check:luhn}' - --json")]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pattern: PatternArgs,

    /// The texts; - reads them from standard input, one per line
    #[arg(value_name = "TEXT", required = true)]
    texts: Vec<String>,
}

impl ValidateArgs {
    pub(super) fn run(&self, out: &mut Output) -> anyhow::Result<Answer> {
        let pattern = self.pattern.compile_any_order()?;
        let mut answer = Answer::Yes;
        for_each_text(&self.texts, out, |out, text, width| {
            let verdict = pattern.validate(text);
            let reasons = verdict.reasons().iter();
            let reasons = reasons.map(|it| Reason { code: it.code().to_owned(), message: it.to_string() });
            let verdict = Verdict { valid: verdict.is_valid(), reasons: reasons.collect() };
            answer = answer.and(TextVerdict { text, verdict }.print(out, self.pattern.json, width)?);
            Ok(())
        })?;
        Ok(answer)
    }
}
