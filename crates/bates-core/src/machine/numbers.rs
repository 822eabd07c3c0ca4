//! Numbers that were given.

use bates_pattern::{Position, Scope};

use crate::lease::Taken;

/// Numbers that were given, as text, in one piece of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    text: Vec<u8>,
    /// The position of each, and where its text ends.
    ends: Vec<(Position, usize)>,
}

impl Numbers {
    /// How many.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Each position and its number, ascending by position.
    pub fn iter(&self) -> impl Iterator<Item = (Position, &str)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        self.ends.iter().zip(starts).map(|((position, end), start)| {
            let text = std::str::from_utf8(&self.text[start..*end]).expect("a pattern renders UTF-8");
            (*position, text)
        })
    }

    pub(super) fn add(&mut self, scope: &Scope, taken: &Taken) {
        for lease in taken.leases() {
            let bounds = (Position::new(lease.from()), Position::new(lease.to() - 1));
            let (Some(first), Some(last)) = bounds else { continue };
            let mut walk = scope.accepted(first, last);
            while let Some(position) = walk.next_into(&mut self.text) {
                self.ends.push((position, self.text.len()));
            }
        }
    }
}
