//! What a token may do: its rights, series, scopes and limits. The environment gives a list as words between commas.

use bates_core::{
    CallerLimits, DefinitionLimits, Permissions, Right, Rights, ScopeRule, SeriesPattern, SeriesSet,
};
use serde_json::Value as Json;

use super::limit::{Limit, parse_limit};
use super::reader::Reader;
use super::tree::{Node, Value};

/// The keys of a token that are read here.
pub(super) const KEYS: [&str; 8] =
    ["may", "series", "scope", "series_max", "scopes_max", "words_max", "rate", "quota"];

/// `None` if there is a mistake. `of` begins every message.
pub(super) fn read_permissions(reader: &mut Reader<'_, '_>, of: &str) -> Option<Permissions> {
    let before = reader.mistakes.count();
    let (rights, series, scope) = (read_rights(reader, of), read_series(reader, of), read_scope(reader, of));
    let default = DefinitionLimits::default();
    let limits = DefinitionLimits {
        series_max: to_usize(reader.number("series_max", default.series_max as u64, 0..=100_000)),
        scopes_max: reader.number("scopes_max", default.scopes_max, 1..=bates_server::SCOPES_MAX),
        words_max: to_usize(reader.number("words_max", default.words_max as u64, 0..=10_000)),
    };
    let rates = CallerLimits {
        rate: read_limit(reader, of, "rate", Limit::Rate),
        quota: read_limit(reader, of, "quota", Limit::Quota),
    };
    if reader.mistakes.count() > before {
        return None;
    }
    Some(Permissions::new(rights?, series).with_scope(scope).with_limits(limits).with_rates(rates))
}

fn read_limit(reader: &mut Reader<'_, '_>, of: &str, key: &str, limit: Limit) -> Option<u64> {
    let node = reader.tree.get(key)?;
    let text = match &node.value {
        Value::Scalar(Json::String(text)) => text.clone(),
        Value::Scalar(Json::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    match parse_limit(limit, &text) {
        Ok(count) => Some(count),
        Err(problem) => {
            reader.mistakes.add(&node.origin, format!("{of}{key}: {problem}"));
            None
        }
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn read_rights(reader: &mut Reader<'_, '_>, of: &str) -> Option<Rights> {
    let all = Right::ALL.map(Right::name).join(", ");
    let Some(node) = reader.tree.get("may") else {
        let hint = format!("{of}expected may: which of the rights {all} it has, such as may: [read, take]");
        reader.mistakes.add(&reader.tree.origin, hint);
        return None;
    };
    let words = read_words(reader, node, &format!("{of}may"))?;
    let mut rights = Vec::new();
    for word in words {
        match Right::from_name(&word) {
            Some(right) => rights.push(right),
            None => {
                let problem = format!("{of}may: unknown right {word:?}; expected some of {all}");
                reader.mistakes.add(&node.origin, problem);
            }
        }
    }
    Some(rights.into_iter().collect())
}

/// Without the key, all series.
fn read_series(reader: &mut Reader<'_, '_>, of: &str) -> SeriesSet {
    let Some(node) = reader.tree.get("series") else { return SeriesSet::All };
    let mut patterns = Vec::new();
    for word in read_words(reader, node, &format!("{of}series")).unwrap_or_default() {
        match word.parse::<SeriesPattern>() {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => reader.mistakes.add(&node.origin, format!("{of}series: {error}")),
        }
    }
    SeriesSet::Patterns(patterns.into())
}

fn read_scope(reader: &mut Reader<'_, '_>, of: &str) -> Vec<ScopeRule> {
    let Some(node) = reader.tree.get("scope") else { return Vec::new() };
    let Some(entries) = node.entries() else {
        let problem = format!("{of}scope: expected a map of parameters, each with a list of values");
        reader.mistakes.add(&node.origin, problem);
        return Vec::new();
    };
    let mut rules = Vec::new();
    for (parameter, values) in entries {
        let values = read_words(reader, values, &format!("{of}scope: {parameter}")).unwrap_or_default();
        let values = values.into_iter().map(Into::into).collect();
        rules.push(ScopeRule { parameter: parameter.as_str().into(), values });
    }
    rules
}

/// A list of words, or words between commas. An empty list is a mistake: it would say nothing, or seem to say "all".
pub(super) fn read_words(reader: &mut Reader<'_, '_>, node: &Node, of: &str) -> Option<Vec<String>> {
    let to_word = |value: &Json| match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let words = match &node.value {
        Value::List(nodes) => {
            let word =
                |node: &Node| if let Value::Scalar(value) = &node.value { to_word(value) } else { None };
            nodes.iter().map(word).collect::<Option<Vec<String>>>()
        }
        Value::Scalar(value) => {
            to_word(value).map(|text| text.split(',').map(|word| word.trim().to_owned()).collect())
        }
        Value::Map(_) => None,
    };
    let words = words.filter(|words| !words.is_empty() && words.iter().all(|word| !word.is_empty()));
    if words.is_none() {
        reader.mistakes.add(&node.origin, format!("{of}: expected a list of at least one word"));
    }
    words
}

pub(super) fn read_hosts(reader: &mut Reader<'_, '_>) -> Vec<String> {
    let node = reader.tree.get("hosts");
    node.and_then(|node| read_words(reader, node, "hosts")).unwrap_or_default()
}
