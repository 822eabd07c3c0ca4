//! Arguments of every pattern command: the template and its options, compiled.
#![allow(clippy::doc_markdown, reason = "clap prints these comments as they are")]

use std::fmt;

use anyhow::{Context, Result, anyhow, bail};
use bates_pattern::{Date, DigitRules, Key, Options, Order, Pattern, PatternError, Reject, Reset, Scope};
use clap::{Args, ValueEnum};

use crate::output;
use crate::scope;

/// Other users of the machine see a command line, but not this variable.
const KEY_VARIABLE: &str = "BATES_PATTERN_KEY";

#[derive(Debug, Args)]
pub(super) struct PatternArgs {
    /// The template, such as '{project}-{type}-{seq}'
    #[arg(value_name = "TEMPLATE")]
    template: String,

    /// How positions map to values of {seq}
    #[arg(long, value_enum, default_value_t = OrderArg::Counting)]
    order: OrderArg,

    /// The key of a shuffled order: 32, 48 or 64 hexadecimal digits [env: BATES_PATTERN_KEY]
    ///
    /// Other users of the machine can see a command line: keep a real key in the environment.
    #[arg(long, value_name = "HEX")]
    key: Option<Secret>,

    /// Rules that numbers must pass: openg2p or mosip, with limits as in openg2p:sequence_limit=4
    #[arg(long, value_name = "RULES")]
    reject: Option<DigitRules>,

    /// Digit strings or words that must not occur, in any letter case
    #[arg(long, value_name = "WORD,…", value_delimiter = ',')]
    restrict: Vec<String>,

    /// When numbering restarts: never, yearly, monthly, daily or fiscal-MM-DD
    #[arg(long, value_name = "RESET", default_value = "never")]
    reset: Reset,

    /// Print JSON, one object per line
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderArg {
    /// 1, 2, 3, …
    Counting,
    /// A keyed permutation; needs --key
    Shuffled,
}

/// Never shown, valid or not.
#[derive(Clone)]
struct Secret(String);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl PatternArgs {
    /// Compiles for use with positions: a shuffled order needs its key.
    pub(super) fn compile(&self) -> Result<Pattern> {
        let order = match (self.order, &self.key) {
            (OrderArg::Counting, None) => Order::Counting,
            (OrderArg::Counting, Some(_)) => bail!("--key needs --order shuffled"),
            (OrderArg::Shuffled, Some(Secret(key))) => Order::Shuffled(key.parse::<Key>().context("--key")?),
            (OrderArg::Shuffled, None) => match std::env::var(KEY_VARIABLE) {
                Ok(key) => Order::Shuffled(key.parse::<Key>().context(KEY_VARIABLE)?),
                Err(_) => bail!("--order shuffled needs --key HEX or {KEY_VARIABLE}"),
            },
        };
        self.compile_in(order)
    }

    /// Compiles for commands that do not depend on the order: no key is needed.
    pub(super) fn compile_any_order(&self) -> Result<Pattern> {
        self.compile_in(match self.order {
            OrderArg::Counting => Order::Counting,
            OrderArg::Shuffled => Order::Shuffled(Key::new(&[0; 16])?),
        })
    }

    fn compile_in(&self, order: Order) -> Result<Pattern> {
        let mut reject = Reject::default().with_restricted(&self.restrict).context("--restrict")?;
        if let Some(rules) = &self.reject {
            reject = reject.with_digits(rules.clone());
        }
        let options = Options { order, reset: self.reset, reject, ..Options::default() };
        Pattern::compile(&self.template, options).map_err(|error| self.point_at(&error))
    }

    fn point_at(&self, error: &PatternError) -> anyhow::Error {
        let before: String = self.template.chars().take(error.column - 1).collect();
        let indent = " ".repeat(output::display_width(&before));
        anyhow!("{error}\n  {}\n  {indent}^", output::sanitize(&self.template))
    }
}

#[derive(Debug, Args)]
pub(super) struct ScopeArgs {
    /// A parameter of the scope; repeat it for each parameter of the template
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = scope::pair)]
    parameters: Vec<(String, String)>,

    /// The business date, as in 2026-12-31
    #[arg(long, value_name = "DATE", value_parser = scope::date)]
    date: Option<Date>,
}

impl ScopeArgs {
    /// Uses today's date if none is given.
    pub(super) fn scope_today(mut self, pattern: &Pattern) -> Result<Scope> {
        self.date.get_or_insert_with(|| jiff::Zoned::now().date());
        self.scope(pattern)
    }

    pub(super) fn scope(self, pattern: &Pattern) -> Result<Scope> {
        Ok(pattern.scope(self.parameters, self.date)?)
    }

    pub(super) fn is_given(&self) -> bool {
        !self.parameters.is_empty() || self.date.is_some()
    }
}
