//! What every pattern command takes: the template and what goes with it, compiled.
#![allow(clippy::doc_markdown, reason = "clap prints these comments as they are")]

use std::io::{self, BufRead};

use anyhow::{Context, anyhow, bail};
use bates_pattern::{Date, DigitRules, Key, Options, Order, Pattern, PatternError, Reject, Reset, Scope};
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(super) struct PatternArgs {
    /// The template, such as '{project}-{type}-{seq}'
    #[arg(value_name = "TEMPLATE")]
    template: String,

    /// In which order positions walk through the space of {seq}
    #[arg(long, value_enum, default_value_t = OrderArg::Counting)]
    order: OrderArg,

    /// The key of a shuffled order: 32, 48 or 64 hexadecimal digits
    ///
    /// A command line is seen by other users of a machine: keep a key that matters in the environment.
    #[arg(long, value_name = "HEX", env = "BATES_PATTERN_KEY", hide_env_values = true)]
    key: Option<String>,

    /// Skip what a rule set refuses: openg2p or mosip, with limits as in openg2p:sequence_limit=4
    #[arg(long, value_name = "RULES")]
    reject: Option<DigitRules>,

    /// Skip what contains one of these digit strings or words, in any case
    #[arg(long, value_name = "WORD,…", value_delimiter = ',')]
    restrict: Vec<String>,

    /// When the numbering starts again: never, yearly, monthly, daily or fiscal-MM-DD
    #[arg(long, value_name = "RESET", default_value = "never")]
    reset: Reset,

    /// One JSON object a line instead of text
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

impl PatternArgs {
    /// Compiles for use with positions, which a shuffled order needs its key for.
    pub(super) fn compile(&self) -> anyhow::Result<Pattern> {
        let key = self.key.as_deref().filter(|key| !key.is_empty());
        let order = match (self.order, key) {
            (OrderArg::Counting, _) => Order::Counting,
            (OrderArg::Shuffled, Some(key)) => Order::Shuffled(key.parse::<Key>().context("--key")?),
            (OrderArg::Shuffled, None) => bail!("--order shuffled needs --key HEX or BATES_PATTERN_KEY"),
        };
        self.compile_in(order)
    }

    /// Compiles for questions that no order changes, so that no key has to be told.
    pub(super) fn compile_any_order(&self) -> anyhow::Result<Pattern> {
        match self.order {
            OrderArg::Counting => self.compile_in(Order::Counting),
            OrderArg::Shuffled => self.compile_in(Order::Shuffled(Key::new(&[0; 16])?)),
        }
    }

    fn compile_in(&self, order: Order) -> anyhow::Result<Pattern> {
        let mut reject = Reject::default().with_restricted(&self.restrict).context("--restrict")?;
        if let Some(rules) = &self.reject {
            reject = reject.with_digits(rules.clone());
        }
        let options = Options { order, reset: self.reset, reject, ..Options::default() };
        Pattern::compile(&self.template, options).map_err(|error| self.point_at(&error))
    }

    /// The error with the template below it and a mark under the column.
    fn point_at(&self, error: &PatternError) -> anyhow::Error {
        // A tab or an escape of the template must not move the mark or reach the terminal.
        let shown: String =
            self.template.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        match error.column {
            Some(column) => anyhow!("{error}\n  {shown}\n  {:>column$}", '^'),
            None => anyhow!("{error}\n  {shown}"),
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ScopeArgs {
    /// A parameter of the scope; once for each that the template has
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, String)>,

    /// The business date, as in 2026-12-31 [default: today]
    #[arg(long, value_name = "DATE")]
    date: Option<Date>,
}

fn parameter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err("expected NAME=VALUE".to_owned()),
    }
}

impl ScopeArgs {
    pub(super) fn scope(self, pattern: &Pattern) -> anyhow::Result<Scope> {
        let date = self.date.unwrap_or_else(|| jiff::Zoned::now().date());
        Ok(pattern.scope(self.parameters, Some(date))?)
    }

    pub(super) fn is_given(&self) -> bool {
        !self.parameters.is_empty()
    }
}

/// The texts of the command line, or those of standard input, one a line, for a lone `-`.
pub(super) fn texts(texts: Vec<String>) -> anyhow::Result<Vec<String>> {
    if texts != ["-"] {
        return Ok(texts);
    }
    io::stdin().lock().lines().collect::<Result<_, _>>().context("standard input")
}
