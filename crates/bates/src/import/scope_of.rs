//! The scope of each document: parameters that all have, and those that are fields of it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::lines::Document;
use crate::scope;

pub(super) struct ScopeOf {
    fixed: BTreeMap<String, String>,
    fields: Vec<(String, String)>,
    date: Option<String>,
}

#[derive(Serialize)]
struct Request<'a> {
    key: &'a str,
    scope: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    document: &'a RawValue,
}

impl ScopeOf {
    /// `parameters` are those of the series: what is neither given nor named is the field of its name.
    pub(super) fn new(
        fixed: &[String],
        from: &[String],
        date: Option<&str>,
        parameters: Vec<String>,
    ) -> Result<Self> {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let fixed: BTreeMap<String, String> = scope::pairs(fixed)?.into_iter().map(owned).collect();
        let mut fields: BTreeMap<String, String> = scope::pairs(from)?.into_iter().map(owned).collect();
        for name in fixed.keys().chain(fields.keys()) {
            if !parameters.contains(name) {
                bail!("the series has no parameter {name:?}; it has {}", parameters.join(", "));
            }
        }
        for name in parameters.into_iter().filter(|name| !fixed.contains_key(name)) {
            fields.entry(name.clone()).or_insert(name);
        }
        Ok(Self { fixed, fields: fields.into_iter().collect(), date: date.map(str::to_owned) })
    }

    pub(super) fn write(&self, body: &mut Vec<u8>, document: &Document, key: &str) -> Result<()> {
        let Document { text: raw, value, .. } = document;
        let mut scope: BTreeMap<&str, String> =
            self.fixed.iter().map(|(name, value)| (&**name, value.clone())).collect();
        for (name, field) in &self.fields {
            // What is missing is told by the server, for this document alone.
            if let Some(text) = text(value, field) {
                scope.insert(name, text);
            }
        }
        let date = self.date.as_ref().and_then(|field| text(value, field));
        let request = Request { key, scope, date, document: raw };
        serde_json::to_writer(&mut *body, &request).context("a document cannot be written")?;
        body.push(b'\n');
        Ok(())
    }
}

/// A field as text: a text, or a whole number.
fn text(document: &Value, field: &str) -> Option<String> {
    match document.get(field)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_u64() || number.is_i64() => Some(number.to_string()),
        _ => None,
    }
}
