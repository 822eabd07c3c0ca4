//! The mark of a store that is not served, and how it may change. Pure: a store compares and writes it in one transaction.

use uuid::Uuid;

/// Why a store is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It was left for another one.
    Left(Move),
    /// It is being filled from another one.
    Arriving(Move),
}

/// What a store does when its mark is to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkChange {
    /// Nothing: it has the new mark already. The answer to an earlier try may have been lost.
    Done,
    /// Nothing: it has not the mark that was expected, or has series of its own and was to be filled.
    Refused,
    /// It writes the new mark.
    Write,
}

impl Mark {
    /// As stores write it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Left(_) => "left",
            Self::Arriving(_) => "arriving",
        }
    }

    /// The mark of this kind.
    pub fn new(kind: &str, of: Move) -> Self {
        if kind == "left" { Self::Left(of) } else { Self::Arriving(of) }
    }

    /// The move that it names.
    pub const fn of(&self) -> &Move {
        match self {
            Self::Left(of) | Self::Arriving(of) => of,
        }
    }

    /// Whether a store with this mark takes pages of a run.
    pub fn takes_pages_of(&self, run: Uuid) -> bool {
        matches!(self, Self::Arriving(arriving) if arriving.run == run)
    }

    /// Decides a change of the mark that a store has, `found`.
    ///
    /// Invariant: a store that was not being filled begins to be only while it has no series.
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

/// A move, as the mark of a store names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Its id, the same in both stores and however often it is begun again.
    pub id: Uuid,
    /// The run of the command that moves: begun again, another one takes over.
    pub run: Uuid,
    /// The name of the other store.
    pub other: Box<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_changes_only_from_what_was_expected_and_a_store_with_series_is_not_filled() {
        let of = |run| Move { id: Uuid::nil(), run: Uuid::from_u128(run), other: "elsewhere".into() };
        let (left, arriving, again) = (Mark::Left(of(1)), Mark::Arriving(of(1)), Mark::Arriving(of(2)));
        for (found, expected, new, has_series, change) in [
            (None, None, Some(&left), true, MarkChange::Write),
            (None, None, Some(&arriving), false, MarkChange::Write),
            (None, None, Some(&arriving), true, MarkChange::Refused),
            (Some(&arriving), Some(&arriving), Some(&again), true, MarkChange::Write),
            (Some(&again), Some(&arriving), None, true, MarkChange::Refused),
            (Some(&left), None, Some(&left), true, MarkChange::Done),
            (Some(&again), Some(&again), None, true, MarkChange::Write),
        ] {
            assert_eq!(Mark::change(found, expected, new, has_series), change, "{found:?} to {new:?}");
        }
        assert!(again.takes_pages_of(Uuid::from_u128(2)) && !again.takes_pages_of(Uuid::from_u128(1)));
        assert!(!left.takes_pages_of(Uuid::from_u128(1)) && Mark::new(left.kind(), of(1)) == left);
    }
}
