//! The scope of each document: parameters that all have, and those that are fields of it.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::scope;

/// Where the parameters of a scope come from.
pub(super) struct ScopeOf {
    fixed: BTreeMap<String, String>,
    /// Parameters and the fields that hold them.
    fields: Vec<(String, String)>,
    date: Option<String>,
}

impl ScopeOf {
    /// `parameters` are those of the series: what is neither given nor named is the field of its name.
    pub(super) fn new(
        fixed: &[String],
        from: &[String],
        date: Option<&str>,
        parameters: Vec<String>,
    ) -> anyhow::Result<Self> {
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

    /// Writes the request of a document, a line.
    pub(super) fn write(&self, body: &mut Vec<u8>, document: &Value, key: &str) -> anyhow::Result<()> {
        let mut scope = self.fixed.clone();
        for (name, field) in &self.fields {
            // What is missing is told by the server, for this document alone.
            if let Some(text) = text(document, field) {
                scope.insert(name.clone(), text);
            }
        }
        let mut request = serde_json::json!({"key": key, "scope": scope, "document": document});
        if let Some(date) = self.date.as_ref().and_then(|field| text(document, field)) {
            request["date"] = Value::from(date);
        }
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
