//! How a scope is written on the command line: `project=PROJ type=9012`, and a date.

use anyhow::bail;
use bates_api::Day;
use bates_client::{Client, Series};
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
    text.parse().map(Day::date).map_err(|_| "expected a day as YYYY-MM-DD".to_owned())
}

/// A series of a server, with the scope and the date that a command names.
pub(crate) fn series(
    client: &Client,
    name: &str,
    words: &[String],
    date: Option<Date>,
) -> anyhow::Result<Series> {
    let series = client.series(name).scope(pairs(words)?);
    Ok(match date {
        Some(date) => series.date(&date.to_string())?,
        None => series,
    })
}
