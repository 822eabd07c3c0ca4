//! Secrets, and addresses that may hold one, given directly or in a file. Must never print a value, not even in an error.

use std::path::Path;
use std::{fmt, fs};

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

use crate::description::SinkError;

/// Never shown, and wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Only texts: the errors of other types would quote the value.
impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text)
    }
}

struct Text;

macro_rules! refuse {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E: Error>(self, _: $type) -> Result<Secret, E> {
            Err(E::custom("expected text: put it in quotation marks"))
        })*
    };
}

impl Visitor<'_> for Text {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Secret, E> {
        Ok(Secret::new(text))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Secret, E> {
        Ok(Secret::new(text))
    }

    refuse!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);
}

/// The secret itself, or the content of the file without the line break at its end; `None` if neither is given.
pub(crate) fn read_secret(
    secret: Option<&Secret>,
    file: Option<&Path>,
    field: &'static str,
    file_field: &'static str,
) -> Result<Option<Secret>, SinkError> {
    let found = match (secret, file) {
        (Some(_), Some(_)) => {
            return Err(SinkError::new(file_field, format!("expected {file_field} or {field}, not both")));
        }
        (Some(secret), None) => Some((secret.clone(), field)),
        (None, Some(path)) => Some((from_file(path, file_field)?, file_field)),
        (None, None) => None,
    };
    match found {
        Some((secret, field)) if secret.reveal().is_empty() => Err(SinkError::new(field, "it is empty")),
        found => Ok(found.map(|(secret, _)| secret)),
    }
}

fn from_file(path: &Path, field: &'static str) -> Result<Secret, SinkError> {
    let text = fs::read_to_string(path).map(Zeroizing::new);
    let text = text.map_err(|error| SinkError::new(field, format!("{}: {error}", path.display())))?;
    Ok(Secret::new(text.trim_end_matches(['\r', '\n'])))
}
