//! How a scope is written on the command line: `project=PROJ type=9012`, and a date.

use std::collections::BTreeMap;

use anyhow::bail;
use bates_pattern::Date;

/// Words into parameters.
pub(crate) fn pairs(words: &[String]) -> anyhow::Result<Vec<(&str, &str)>> {
    let mut pairs = Vec::with_capacity(words.len());
    for word in words {
        match word.split_once('=') {
            Some((name, value)) if !name.is_empty() => pairs.push((name, value)),
            _ => bail!("{word:?} is no parameter: expected NAME=VALUE"),
        }
    }
    Ok(pairs)
}

/// One way to write a date, and one message.
pub(crate) fn date(text: &str) -> Result<Date, String> {
    let date: Option<Date> = text.parse().ok();
    date.filter(|date| date.to_string() == text).ok_or_else(|| "expected a day as YYYY-MM-DD".to_owned())
}

/// A scope as it is shown: its parameters, and its period if it has one.
pub(crate) fn shown(parameters: &BTreeMap<String, String>, period: Option<&str>) -> String {
    let mut scope: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    scope.extend(period.map(|period| format!("@{period}")));
    scope.join(" ")
}
