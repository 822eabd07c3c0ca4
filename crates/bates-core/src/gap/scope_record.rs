//! What a store knows of the positions of a scope, and what that means for its account and for a move to another store.
//! Pure: a store loads the ranges and decides nothing about them.

use super::{GapReason, MissingRange, Reconciliation};
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
    /// The first position since which it is gapless; 0 if it always was.
    pub gapless_from: u64,
    /// Ranges of several kinds may overlap.
    pub ranges: Vec<RangeRecord>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPurpose {
    /// Includes documents that are open or were not delivered. Silent nodes count as crashed from then on.
    Reconcile,
    /// Without documents.
    Move,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeRecord {
    pub range: PositionRange,
    pub kind: RangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeKind {
    /// In the ledger.
    Issued,
    /// A live process holds them in memory.
    Held,
    /// A process that crashed held them.
    Crashed,
    /// A live process pushes them to a shared pool.
    Filling,
    /// A process that crashed was to push them to a shared pool.
    FillerCrashed,
    /// In a shared pool.
    Pushed,
    /// A client holds or has used them.
    WithClient,
    /// The same, and the client was silent for too long.
    ClientSilent,
    Lost(GapReason),
    Document(DocumentState),
    /// A document, and a try may have reached the sink although its outcome is unknown.
    InDoubt(DocumentState),
}

impl RangeKind {
    /// The kind of this name, as the queries of stores write it: a word, a reason, or `document` or `in_doubt` with a state.
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
    /// Processes and clients that crashed or fell silent may have used what they held.
    pub fn reconciliation(self) -> (ScopeKey, Reconciliation) {
        let Self { scope, cursor, adopted_to: aside_to, gapless_from, ranges } = self;
        let mut account = Reconciliation {
            next: cursor.next,
            adopted_to: aside_to,
            gapless_from,
            ..Reconciliation::default()
        };
        for RangeRecord { range, kind } in ranges {
            let missing = |reason| MissingRange { range, reason };
            match kind {
                RangeKind::Issued => account.issued.push(range),
                RangeKind::Held | RangeKind::Filling | RangeKind::Pushed => account.held.push(range),
                RangeKind::WithClient => account.with_clients.push(range),
                RangeKind::Crashed | RangeKind::FillerCrashed | RangeKind::ClientSilent => {
                    account.lost.push(missing(GapReason::CrashSkip));
                }
                RangeKind::Lost(reason) => account.lost.push(missing(reason)),
                RangeKind::Document(DocumentState::Pending | DocumentState::Reserved)
                | RangeKind::InDoubt(DocumentState::Pending | DocumentState::Reserved) => {
                    account.pending.push(range);
                }
                RangeKind::InDoubt(DocumentState::Dead | DocumentState::Abandoned) => {
                    account.undelivered.push(missing(GapReason::DeliveryUnknown));
                }
                RangeKind::Document(state) | RangeKind::InDoubt(state) => {
                    account.undelivered.extend(state.reason().map(missing));
                }
            }
        }
        (scope, account)
    }

    /// The scope as another store takes it over. What processes held becomes uncertain, even if they live: they may hand it
    /// out until they look at the store. What a shared pool holds is lost. What clients hold moves with their leases.
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
        let (ledger, lost) = (of(&[RangeKind::Issued]).iter().collect(), MissingRange::each_once(&lost));
        MovedScope { scope: self.scope, cursor: self.cursor, ledger, lost, gapless_from: self.gapless_from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(ranges: &[(u64, u64, &str)]) -> ScopeRecord {
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

    fn shown(missing: &[MissingRange]) -> Vec<String> {
        missing.iter().map(|MissingRange { range, reason }| format!("{range} {reason}")).collect()
    }

    #[test]
    fn a_document_is_missing_for_the_reason_that_its_state_tells() {
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
            let (_, account) = known(&[(5, 6, name)]).reconciliation();
            assert_eq!(account.undelivered.first().map(|missing| missing.reason), reason, "{name}");
            let is_open = name.ends_with("pending") || name.ends_with("reserved");
            assert_eq!(account.pending.len(), usize::from(is_open), "{name}");
        }
        assert_eq!(RangeKind::from_name("document unheard of"), None);
        assert_eq!(RangeKind::from_name("unheard of"), None);
    }

    #[test]
    fn what_is_held_is_accounted_for_by_who_lives() {
        let held = [(1, 2, "held"), (2, 3, "filling"), (3, 4, "pushed"), (4, 5, "with_client")];
        let lost = [(5, 6, "crashed"), (6, 7, "filler_crashed"), (7, 8, "client_silent"), (8, 9, "burned")];
        let (_, account) = known(&[&held[..], &lost].concat()).reconciliation();
        assert_eq!((account.next, account.gapless_from), (100, 3));
        assert_eq!((account.held.len(), account.with_clients.len()), (3, 1));
        let uncertain = account.lost.iter().filter(|lost| lost.reason == GapReason::CrashSkip).count();
        assert_eq!((account.lost.len(), uncertain), (4, 3));
    }

    #[test]
    fn who_leaves_a_store_gives_up_what_it_held_but_for_what_clients_have() {
        let adopted = known(&[
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
        assert_eq!((adopted.cursor.version, adopted.gapless_from), (7, 3));
        assert_eq!(adopted.ledger, [PositionRange::new(1, 10).unwrap()]);
        let lost: u64 = adopted.lost.iter().map(|missing| missing.range.count()).sum();
        assert_eq!(lost, 40 - 4 + 15, "{:?}", shown(&adopted.lost));
        let uncertain = adopted.lost.iter().filter(|missing| missing.reason.is_uncertain());
        assert_eq!(uncertain.map(|missing| missing.range.count()).sum::<u64>(), lost - 2);
        let pushed =
            MissingRange { range: PositionRange::new(50, 55).unwrap(), reason: GapReason::PoolInvalidated };
        assert!(adopted.lost.contains(&pushed), "{:?}", shown(&adopted.lost));
    }
}
