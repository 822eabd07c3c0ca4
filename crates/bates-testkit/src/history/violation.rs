//! What contradicts the rules, with the answers that contradict each other.

use std::fmt;

use super::{Entry, Scope};

/// A contradiction in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// **U**: both answers hold the same number.
    Twice {
        /// The one with the smaller first number.
        one: Entry,
        /// The other.
        other: Entry,
    },
    /// **M**: the later was asked for after the earlier was answered, and has a smaller number.
    Fell {
        /// Answered first.
        earlier: Entry,
        /// Asked for afterwards.
        later: Entry,
    },
    /// **G**: more numbers of the scope were skipped than anybody accounts for.
    Skipped {
        /// Where.
        scope: Scope,
        /// How many, in the whole scope.
        skipped: u64,
        /// How many may be.
        allowed: u64,
        /// The answer before the widest hole; `None` if that is before the first number answered.
        before: Option<Entry>,
        /// The answer behind it.
        behind: Entry,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice { one, other } => write!(f, "came twice: {one}; and {other}"),
            Self::Fell { earlier, later } => write!(f, "fell: {earlier}; and afterwards {later}"),
            Self::Skipped { scope, skipped, allowed, before, behind } => {
                write!(f, "scope {}: {skipped} numbers skipped, {allowed} allowed: ", scope.0)?;
                match before {
                    Some(before) => write!(f, "between {before}; and {behind}"),
                    None => write!(f, "before {behind}"),
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
