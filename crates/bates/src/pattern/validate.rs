//! `bates pattern validate`: whether texts could be identifiers, and everything that speaks against them.

use bates_api::{Reason, Verdict};
use clap::Args;

use super::{compile::PatternArgs, each_text};
use crate::ask::validate::TextVerdict;
use crate::output::{Answer, Output};

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

impl ValidateArgs {
    pub(super) fn run(&self, out: &mut Output) -> anyhow::Result<Answer> {
        let pattern = self.pattern.compile_any_order()?;
        let mut answer = Answer::Yes;
        each_text(&self.texts, out, |out, text, width| {
            let verdict = pattern.validate(text);
            let reasons = verdict.reasons().iter();
            let reasons =
                reasons.map(|reason| Reason { code: reason.code().to_owned(), message: reason.to_string() });
            let verdict = Verdict { valid: verdict.is_valid(), reasons: reasons.collect() };
            answer = answer.and(TextVerdict { text, verdict }.print(out, self.pattern.json, width)?);
            Ok(())
        })?;
        Ok(answer)
    }
}
