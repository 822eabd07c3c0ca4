//! A number that was issued: its position and its text.

use std::fmt;
use std::ops::Deref;

use crate::position::Position;

/// A number: its text, and the position that it stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Number {
    position: Position,
    text: Box<str>,
}

impl Number {
    /// A number of a scope that renders `position` as `text`.
    pub fn new(position: Position, text: impl Into<Box<str>>) -> Self {
        Self { position, text: text.into() }
    }

    /// The text, such as `PROJ-9012-1001`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The position in the scope, such as 1001. In a series that counts, a later number has a higher one.
    pub fn position(&self) -> Position {
        self.position
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// A number is used as its text: `find(&number)`.
impl Deref for Number {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for Number {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl From<Number> for String {
    fn from(number: Number) -> Self {
        number.text.into()
    }
}

impl PartialEq<str> for Number {
    fn eq(&self, text: &str) -> bool {
        *self.text == *text
    }
}

impl PartialEq<&str> for Number {
    fn eq(&self, text: &&str) -> bool {
        *self.text == **text
    }
}

impl PartialEq<String> for Number {
    fn eq(&self, text: &String) -> bool {
        *self.text == **text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_stored_compared_and_printed() {
        let number = Number::new(Position::MIN, "A-0");
        let stored: std::collections::HashSet<Number> = [number.clone(), number.clone()].into();
        assert_eq!(stored.len(), 1);
        let owned = "A-0".to_owned();
        assert!(number == "A-0" && number == owned && number != *"A-1");
        assert_eq!((format!("{number}"), format!("{number:>5}")), ("A-0".to_owned(), "  A-0".to_owned()));
        assert_eq!((number.position(), String::from(number)), (Position::MIN, "A-0".to_owned()));
    }
}
