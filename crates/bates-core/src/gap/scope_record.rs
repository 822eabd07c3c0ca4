//! The ranges of a scope in a store, as reconciliation and a move to another store need them.
//! Pure: a store loads the ranges and decides nothing about them.

use super::{GapReason, MissingRange, ScopePositions};
use crate::document::DocumentState;
use crate::moving::MovedScope;
use crate::range::{PositionRange, RangeSet};
use crate::scope::ScopeKey;
use crate::store::Cursor;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeRecord {
    pub scope: ScopeKey,
    pub cursor: Cursor,
    /// The first position past all adopted ones.
    pub adopted_to: u64,
    /// The position from which on the scope is gapless; 0 if it always was.
    pub gapless_from: u64,
    /// Ranges of several kinds may overlap.
    pub ranges: Vec<RangeRecord>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPurpose {
    /// Reads documents that are open or were not delivered, too. First records that silent nodes have crashed.
    Reconcile,
    /// Reads no documents.
    Move,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeRecord {
    pub range: PositionRange,
    pub kind: RangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeKind {
    /// In the ledger: numbers of documents, reservations and gapless series.
    Issued,
    /// A live process holds them in memory.
    Held,
    /// A process that crashed held them.
    Crashed,
    /// A live process pushes them to a shared pool.
    Filling,
    /// A process crashed before it had pushed them to a shared pool, or recorded that it had.
    FillerCrashed,
    /// In a shared pool.
    Pushed,
    /// A client holds or has used them.
    WithClient,
    /// The same, and the client was silent for too long.
    ClientSilent,
    Lost(GapReason),
    Document(DocumentState),
    /// A document with an attempt of unknown outcome that may have reached the sink.
    InDoubt(DocumentState),
}

impl RangeKind {
    /// The kind of this name in the queries of stores: a word, a gap reason, or `document` or `in_doubt` with a state.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "issued" => Self::Issued,
            "held" => Self::Held,
            "crashed" => Self::Crashed,
            "filling" => Self::Filling,
            "filler_crashed" => Self::FillerCrashed,
            "pushed" => Self::Pushed,
            "with_client" => Self::WithClient,
            "client_silent" => Self::ClientSilent,
            _ => match name.split_once(' ') {
                Some(("document", state)) => Self::Document(DocumentState::from_name(state)?),
                Some(("in_doubt", state)) => Self::InDoubt(DocumentState::from_name(state)?),
                _ => Self::Lost(GapReason::from_name(name)?),
            },
        })
    }
}

impl ScopeRecord {
    /// Ranges of crashed processes and silent clients become uncertain gaps: they may have been used.
    pub fn positions(self) -> (ScopeKey, ScopePositions) {
        use {DocumentState as State, RangeKind as Kind};
        let Self { scope, cursor, adopted_to, gapless_from, ranges } = self;
        let empty = ScopePositions::default();
        let mut all = ScopePositions { next: cursor.next, adopted_to, gapless_from, ..empty };
        for RangeRecord { range, kind } in ranges {
            let missing = |reason| MissingRange { range, reason };
            match kind {
                Kind::Issued => all.issued.push(range),
                Kind::Held | Kind::Filling | Kind::Pushed => all.held.push(range),
                Kind::WithClient => all.with_clients.push(range),
                Kind::Crashed | Kind::FillerCrashed | Kind::ClientSilent => {
                    all.lost.push(missing(GapReason::CrashSkip));
                }
                // Of a document that was removed: its position is treated as before.
                Kind::Lost(reason) if reason.is_of_document() => all.undelivered.push(missing(reason)),
                Kind::Lost(reason) => all.lost.push(missing(reason)),
                Kind::Document(State::Pending | State::Reserved)
                | Kind::InDoubt(State::Pending | State::Reserved) => all.pending.push(range),
                Kind::Document(state) => all.undelivered.extend(state.gap_reason(false).map(missing)),
                Kind::InDoubt(state) => all.undelivered.extend(state.gap_reason(true).map(missing)),
            }
        }
        (scope, all)
    }

    /// The scope for another store. Ranges of processes become uncertain gaps, even if the processes live: until they notice
    /// the move, they may hand them out. Ranges in a shared pool are lost. Ranges of clients move with their leases.
    pub fn moved_scope(self) -> MovedScope {
        let of = |wanted: &[RangeKind]| {
            let found = self.ranges.iter().filter(|known| wanted.contains(&known.kind));
            RangeSet::of(found.map(|known| known.range))
        };
        let lost = self.ranges.iter().filter_map(|known| {
            let reason = match known.kind {
                RangeKind::Lost(reason) => reason,
                RangeKind::Pushed => GapReason::PoolInvalidated,
                RangeKind::Filling | RangeKind::FillerCrashed => GapReason::CrashSkip,
                _ => return None,
            };
            Some(MissingRange { range: known.range, reason })
        });
        let mut lost: Vec<MissingRange> = lost.collect();
        let held = of(&[RangeKind::Held, RangeKind::Crashed])
            .difference(&of(&[RangeKind::WithClient, RangeKind::ClientSilent]))
            .difference(&RangeSet::of(lost.iter().map(|lost| lost.range)));
        lost.extend(MissingRange::all(held.iter(), GapReason::CrashSkip));
        let (ledger, lost) = (of(&[RangeKind::Issued]).iter().collect(), MissingRange::disjoint(&lost));
        MovedScope { scope: self.scope, cursor: self.cursor, ledger, lost, gapless_from: self.gapless_from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(ranges: &[(u64, u64, &str)]) -> ScopeRecord {
        let range = |(from, to, name): &(u64, u64, &str)| RangeRecord {
            range: PositionRange::new(*from, *to).unwrap(),
            kind: RangeKind::from_name(name).expect(name),
        };
        ScopeRecord {
            scope: ScopeKey::from_store("a=1"),
            cursor: Cursor { next: 100, version: 7 },
            adopted_to: 0,
            gapless_from: 3,
            ranges: ranges.iter().map(range).collect(),
        }
    }

    #[test]
    fn the_state_of_a_document_decides_why_it_is_missing() {
        let states = [
            ("document pending", None),
            ("in_doubt pending", None),
            ("document reserved", None),
            ("document delivered", None),
            ("document confirmed", None),
            ("document dead", Some(GapReason::OutboxDlq)),
            ("document abandoned", Some(GapReason::Abandoned)),
            ("document voided", Some(GapReason::Voided)),
            ("in_doubt voided", Some(GapReason::Voided)),
            ("in_doubt dead", Some(GapReason::DeliveryUnknown)),
            ("in_doubt abandoned", Some(GapReason::DeliveryUnknown)),
        ];
        for (name, reason) in states {
            let (_, all) = record(&[(5, 6, name)]).positions();
            assert_eq!(all.undelivered.first().map(|missing| missing.reason), reason, "{name}");
            let is_open = name.ends_with("pending") || name.ends_with("reserved");
            assert_eq!(all.pending.len(), usize::from(is_open), "{name}");
        }
        assert_eq!(RangeKind::from_name("document unheard of"), None);
        assert_eq!(RangeKind::from_name("unheard of"), None);
    }

    #[test]
    fn ranges_of_live_holders_are_held_and_those_of_crashed_ones_are_uncertain() {
        let held = [(1, 2, "held"), (2, 3, "filling"), (3, 4, "pushed"), (4, 5, "with_client")];
        let lost = [(5, 6, "crashed"), (6, 7, "filler_crashed"), (7, 8, "client_silent"), (8, 9, "burned")];
        let (_, all) = record(&[&held[..], &lost].concat()).positions();
        assert_eq!((all.next, all.gapless_from), (100, 3));
        assert_eq!((all.held.len(), all.with_clients.len()), (3, 1));
        let uncertain = all.lost.iter().filter(|lost| lost.reason == GapReason::CrashSkip).count();
        assert_eq!((all.lost.len(), uncertain), (4, 3));
    }

    #[test]
    fn a_move_gives_up_all_held_positions_except_those_of_clients() {
        let moved = record(&[
            (1, 5, "issued"),
            (5, 10, "issued"),
            (10, 40, "held"),
            (40, 50, "crashed"),
            (12, 14, "burned"),
            (20, 22, "with_client"),
            (30, 32, "client_silent"),
            (50, 55, "pushed"),
            (55, 60, "filling"),
            (60, 65, "filler_crashed"),
            (7, 8, "document dead"),
        ])
        .moved_scope();
        assert_eq!((moved.cursor.version, moved.gapless_from), (7, 3));
        assert_eq!(moved.ledger, [PositionRange::new(1, 10).unwrap()]);
        let lost: u64 = moved.lost.iter().map(|missing| missing.range.count()).sum();
        assert_eq!(lost, 40 - 4 + 15, "{:?}", moved.lost);
        let uncertain = moved.lost.iter().filter(|missing| missing.reason.is_uncertain());
        assert_eq!(uncertain.map(|missing| missing.range.count()).sum::<u64>(), lost - 2);
        let range = PositionRange::new(50, 55).unwrap();
        let pushed = MissingRange { range, reason: GapReason::PoolInvalidated };
        assert!(moved.lost.contains(&pushed), "{:?}", moved.lost);
    }
}
