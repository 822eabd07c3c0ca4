//! The table: its name, and what it has to look like. Must never put a name into a statement that is not quoted.

use std::fmt;

/// PostgreSQL cuts longer names off, and two of them would become one.
const NAME_BYTES_MAX: usize = 63;

/// The name of a table, shown as a statement needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    schema: Option<Box<str>>,
    name: Box<str>,
}

impl Table {
    /// Reads `table` or `schema.table`. Names are taken as they are, upper case and all.
    pub(super) fn parse(text: &str) -> Result<Self, Box<str>> {
        let (schema, name) = match text.split_once('.') {
            Some((schema, name)) => (Some(part(schema)?), part(name)?),
            None => (None, part(text)?),
        };
        Ok(Self { schema, name })
    }

    /// What creates it.
    pub(super) fn definition(&self) -> String {
        format!(
            "CREATE TABLE {self} (event uuid PRIMARY KEY, series text NOT NULL, scope text NOT NULL, \
             position bigint NOT NULL, number text NOT NULL, document jsonb NOT NULL, \
             created_at timestamptz NOT NULL)"
        )
    }
}

fn part(text: &str) -> Result<Box<str>, Box<str>> {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let goes_on = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if starts && goes_on && text.len() <= NAME_BYTES_MAX {
        Ok(text.into())
    } else {
        Err("it is table or schema.table, each a letter or _, then up to 62 letters, digits and _".into())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Invariant: `part` let no quote through.
        match &self.schema {
            Some(schema) => write!(f, "\"{schema}\".\"{}\"", self.name),
            None => write!(f, "\"{}\"", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_nothing_else_gets_in() {
        assert_eq!(Table::parse("Documents").unwrap().to_string(), r#""Documents""#);
        assert_eq!(Table::parse("archive._d1").unwrap().to_string(), r#""archive"."_d1""#);
        let long = "x".repeat(64);
        for wrong in ["", ".", "a.", ".a", "a.b.c", "1a", "a b", "a\"b", "a;b", "é", "a-b", &long] {
            assert!(Table::parse(wrong).is_err(), "{wrong}");
        }
    }
}
