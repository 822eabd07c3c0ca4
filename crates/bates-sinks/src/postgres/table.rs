//! The name and the definition of a table. Must never put a name into a statement unquoted.

use std::fmt;

/// PostgreSQL cuts longer names, so two of them could become the same.
const NAME_BYTES_MAX: usize = 63;

/// Quoted for use in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table(String);

impl Table {
    /// Reads `table` or `schema.table`, and keeps upper case.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        // Invariant: no part holds a quote.
        if text.split('.').count() <= 2 && text.split('.').all(is_name) {
            Ok(Self(format!("\"{}\"", text.replace('.', "\".\""))))
        } else {
            Err("expected table or schema.table, each a letter or _, then up to 62 letters, digits and _")
        }
    }

    pub(super) fn definition(&self) -> String {
        format!(
            "CREATE TABLE {self} (event uuid PRIMARY KEY, series text NOT NULL, scope text NOT NULL, \
             position bigint NOT NULL, number text NOT NULL, document jsonb NOT NULL, \
             created_at timestamptz NOT NULL)"
        )
    }
}

fn is_name(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let goes_on = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    starts && goes_on && text.len() <= NAME_BYTES_MAX
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_other_texts_are_refused() {
        assert_eq!(Table::parse("Documents").unwrap().to_string(), r#""Documents""#);
        assert_eq!(Table::parse("archive._d1").unwrap().to_string(), r#""archive"."_d1""#);
        let long = "x".repeat(64);
        for wrong in ["", ".", "a.", ".a", "a.b.c", "1a", "a b", "a\"b", "a;b", "é", "a-b", &long] {
            assert!(Table::parse(wrong).is_err(), "{wrong}");
        }
    }
}
