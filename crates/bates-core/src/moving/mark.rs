//! The mark of a store that is not served, and how it may change. Pure: a store applies a change in one transaction.

use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveMark {
    /// Left for another store.
    Left(Move),
    /// Being filled from another store.
    Arriving(Move),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkChange {
    /// The store has the new mark already: the answer to an earlier call may have been lost.
    Done,
    /// The store has not the expected mark, or has series and cannot be filled.
    Refused,
    Write,
}

impl MoveMark {
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Left(_) => "left",
            Self::Arriving(_) => "arriving",
        }
    }

    pub fn new(kind: &str, details: Move) -> Self {
        if kind == "left" { Self::Left(details) } else { Self::Arriving(details) }
    }

    pub const fn details(&self) -> &Move {
        let (Self::Left(details) | Self::Arriving(details)) = self;
        details
    }

    pub fn accepts_pages_of(&self, run: Uuid) -> bool {
        matches!(self, Self::Arriving(arriving) if arriving.run == run)
    }

    /// Decides how the mark `found` changes. Invariant: a store is marked as arriving only while it has no series.
    pub fn change(
        found: Option<&Self>,
        expected: Option<&Self>,
        new: Option<&Self>,
        has_series: bool,
    ) -> MarkChange {
        let begins = found.is_none() && matches!(new, Some(Self::Arriving(_)));
        if found == new {
            MarkChange::Done
        } else if found != expected || begins && has_series {
            MarkChange::Refused
        } else {
            MarkChange::Write
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The same in both stores and in every run.
    pub id: Uuid,
    /// The run of the command that moves: a later run takes over.
    pub run: Uuid,
    /// Name of the other store.
    pub other: Box<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_changes_only_from_the_expected_one_and_a_store_with_series_is_not_filled() {
        let of = |run| Move { id: Uuid::nil(), run: Uuid::from_u128(run), other: "elsewhere".into() };
        let (left, arriving) = (MoveMark::Left(of(1)), MoveMark::Arriving(of(1)));
        let again = MoveMark::Arriving(of(2));
        for (found, expected, new, has_series, change) in [
            (None, None, Some(&left), true, MarkChange::Write),
            (None, None, Some(&arriving), false, MarkChange::Write),
            (None, None, Some(&arriving), true, MarkChange::Refused),
            (Some(&arriving), Some(&arriving), Some(&again), true, MarkChange::Write),
            (Some(&again), Some(&arriving), None, true, MarkChange::Refused),
            (Some(&left), None, Some(&left), true, MarkChange::Done),
            (Some(&again), Some(&again), None, true, MarkChange::Write),
        ] {
            assert_eq!(MoveMark::change(found, expected, new, has_series), change, "{found:?} to {new:?}");
        }
        assert!(again.accepts_pages_of(Uuid::from_u128(2)) && !again.accepts_pages_of(Uuid::from_u128(1)));
        assert!(!left.accepts_pages_of(Uuid::from_u128(1)) && MoveMark::new(left.kind(), of(1)) == left);
    }
}
