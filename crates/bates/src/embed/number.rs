//! A number that was given.

use std::fmt;

use bates_pattern::Position;

/// A number: its text, and the position that it stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Number {
    position: Position,
    text: String,
}

impl Number {
    pub(super) fn new(position: Position, text: String) -> Self {
        Self { position, text }
    }

    /// The text, as in `PROJ-9012-1001`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The position, as in 1001. In a series that counts, a later number has a higher one.
    pub fn position(&self) -> Position {
        self.position
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl AsRef<str> for Number {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl From<Number> for String {
    fn from(number: Number) -> Self {
        number.text
    }
}

impl PartialEq<str> for Number {
    fn eq(&self, text: &str) -> bool {
        self.text == text
    }
}

impl PartialEq<&str> for Number {
    fn eq(&self, text: &&str) -> bool {
        self.text == *text
    }
}
