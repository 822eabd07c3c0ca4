//! Parses a scope from the command line: `project=PROJ type=9012`, and a date.

use anyhow::{Result, anyhow};
use bates_api::Day;
use bates_client::{Client, Series};
use bates_pattern::Date;

pub(crate) fn pairs(words: &[String]) -> Result<Vec<(&str, &str)>> {
    let wrong = |word: &String| anyhow!("invalid parameter {word:?}: expected NAME=VALUE");
    words.iter().map(|word| split(word).ok_or_else(|| wrong(word))).collect()
}

pub(crate) fn pair(word: &str) -> Result<(String, String), String> {
    let (name, value) = split(word).ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn split(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(name, _)| !name.is_empty())
}

pub(crate) fn date(text: &str) -> Result<Date, String> {
    text.parse().map(Day::date).map_err(|_| "expected a date as YYYY-MM-DD".to_owned())
}

pub(crate) fn series(client: &Client, name: &str, words: &[String], date: Option<Date>) -> Result<Series> {
    let series = client.series(name).scope(pairs(words)?);
    Ok(date.into_iter().fold(series, Series::date))
}
