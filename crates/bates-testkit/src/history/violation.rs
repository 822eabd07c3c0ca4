//! A violation of the rules, with the answers that show it.

use std::fmt;

use super::{Entry, Scope};

/// A violation of the rules in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// **U**: two answers have the same number.
    Repeated {
        /// The answer with the smaller first number.
        one: Entry,
        /// The other answer.
        other: Entry,
    },
    /// **M**: an answer has a smaller number than one that came before its request.
    OutOfOrder {
        /// The answer that came first.
        earlier: Entry,
        /// The answer to the later request.
        later: Entry,
    },
    /// **G**: more numbers of a scope are missing than allowed.
    Skipped {
        /// The scope.
        scope: Scope,
        /// How many unexplained numbers are missing in the scope.
        skipped: u64,
        /// How many may be missing.
        allowed: u64,
        /// The answer before the widest hole; `None` if the hole is before the first answer.
        before: Option<Entry>,
        /// The answer after it.
        after: Entry,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeated { one, other } => write!(f, "came twice: {one}; and {other}"),
            Self::OutOfOrder { earlier, later } => write!(f, "out of order: {earlier}; and later {later}"),
            Self::Skipped { scope, skipped, allowed, before, after } => {
                write!(f, "scope {}: {skipped} numbers skipped, {allowed} allowed: ", scope.0)?;
                match before {
                    Some(before) => write!(f, "between {before}; and {after}"),
                    None => write!(f, "before {after}"),
                }
            }
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, client, asked, answered, first, last } = self;
        write!(
            f,
            "scope {}: {first} to {last}, to client {client}, asked at {asked}, answered at {answered}",
            scope.0
        )
    }
}
