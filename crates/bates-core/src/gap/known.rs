//! What a store knows of the positions of a scope, and what that means for its account and for a move to another store.
//! Pure: a store loads the ranges and decides nothing about them.

use super::{Account, Missing, Reason};
use crate::document::State;
use crate::moving::Adopted;
use crate::range::{Lease, Ranges};
use crate::scope::ScopeKey;
use crate::store::Cursor;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownScope {
    pub scope: ScopeKey,
    pub cursor: Cursor,
    /// The first position past all adopted ones.
    pub aside_to: u64,
    /// The first position since which it is gapless; 0 if it always was.
    pub gapless_from: u64,
    /// Ranges of several kinds may overlap.
    pub ranges: Vec<KnownRange>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownFor {
    /// Includes documents that are open or were not delivered. Silent nodes count as crashed from then on.
    Account,
    /// Without documents.
    Move,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownRange {
    pub range: Lease,
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
    Lost(Reason),
    Document(State),
    /// A document, and a try may have reached the sink although its outcome is unknown.
    InDoubt(State),
}

impl RangeKind {
    /// The kind of this name, as the queries of stores write it: a word, a reason, or `document` or `in_doubt` with a state.
    pub fn named(name: &str) -> Option<Self> {
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
                Some(("document", state)) => Self::Document(State::named(state)?),
                Some(("in_doubt", state)) => Self::InDoubt(State::named(state)?),
                _ => Self::Lost(Reason::named(name)?),
            },
        })
    }
}

impl KnownScope {
    /// Processes and clients that crashed or fell silent may have used what they held.
    pub fn account(self) -> (ScopeKey, Account) {
        let Self { scope, cursor, aside_to, gapless_from, ranges } = self;
        let mut account = Account { next: cursor.next, aside_to, gapless_from, ..Account::default() };
        for KnownRange { range, kind } in ranges {
            let missing = |reason| Missing { range, reason };
            match kind {
                RangeKind::Issued => account.issued.push(range),
                RangeKind::Held | RangeKind::Filling | RangeKind::Pushed => account.held.push(range),
                RangeKind::WithClient => account.with_clients.push(range),
                RangeKind::Crashed | RangeKind::FillerCrashed | RangeKind::ClientSilent => {
                    account.lost.push(missing(Reason::CrashSkip));
                }
                RangeKind::Lost(reason) => account.lost.push(missing(reason)),
                RangeKind::Document(State::Pending | State::Reserved)
                | RangeKind::InDoubt(State::Pending | State::Reserved) => account.pending.push(range),
                RangeKind::InDoubt(State::Dead | State::Abandoned) => {
                    account.undelivered.push(missing(Reason::DeliveryUnknown));
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
    pub fn leaving(self) -> Adopted {
        let of = |wanted: &[RangeKind]| {
            let found = self.ranges.iter().filter(|known| wanted.contains(&known.kind));
            Ranges::of(found.map(|known| known.range))
        };
        let lost = self.ranges.iter().filter_map(|known| {
            let reason = match known.kind {
                RangeKind::Lost(reason) => reason,
                RangeKind::Pushed => Reason::PoolInvalidated,
                RangeKind::Filling | RangeKind::FillerCrashed => Reason::CrashSkip,
                _ => return None,
            };
            Some(Missing { range: known.range, reason })
        });
        let mut lost: Vec<Missing> = lost.collect();
        let held = of(&[RangeKind::Held, RangeKind::Crashed])
            .without(&of(&[RangeKind::WithClient, RangeKind::ClientSilent]))
            .without(&Ranges::of(lost.iter().map(|lost| lost.range)));
        lost.extend(Missing::all(held.iter(), Reason::CrashSkip));
        let (ledger, lost) = (of(&[RangeKind::Issued]).iter().collect(), Missing::each_once(&lost));
        Adopted { scope: self.scope, cursor: self.cursor, ledger, lost, gapless_from: self.gapless_from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(ranges: &[(u64, u64, &str)]) -> KnownScope {
        let range = |(from, to, name): &(u64, u64, &str)| KnownRange {
            range: Lease::new(*from, *to).unwrap(),
            kind: RangeKind::named(name).expect(name),
        };
        KnownScope {
            scope: ScopeKey::from_store("a=1"),
            cursor: Cursor { next: 100, version: 7 },
            aside_to: 0,
            gapless_from: 3,
            ranges: ranges.iter().map(range).collect(),
        }
    }

    fn shown(missing: &[Missing]) -> Vec<String> {
        missing.iter().map(|Missing { range, reason }| format!("{range} {reason}")).collect()
    }

    #[test]
    fn a_document_is_missing_for_the_reason_that_its_state_tells() {
        let states = [
            ("document pending", None),
            ("in_doubt pending", None),
            ("document reserved", None),
            ("document delivered", None),
            ("document confirmed", None),
            ("document dead", Some(Reason::OutboxDlq)),
            ("document abandoned", Some(Reason::Abandoned)),
            ("document voided", Some(Reason::Voided)),
            ("in_doubt voided", Some(Reason::Voided)),
            ("in_doubt dead", Some(Reason::DeliveryUnknown)),
            ("in_doubt abandoned", Some(Reason::DeliveryUnknown)),
        ];
        for (name, reason) in states {
            let (_, account) = known(&[(5, 6, name)]).account();
            assert_eq!(account.undelivered.first().map(|missing| missing.reason), reason, "{name}");
            let is_open = name.ends_with("pending") || name.ends_with("reserved");
            assert_eq!(account.pending.len(), usize::from(is_open), "{name}");
        }
        assert_eq!(RangeKind::named("document unheard of"), None);
        assert_eq!(RangeKind::named("unheard of"), None);
    }

    #[test]
    fn what_is_held_is_accounted_for_by_who_lives() {
        let held = [(1, 2, "held"), (2, 3, "filling"), (3, 4, "pushed"), (4, 5, "with_client")];
        let lost = [(5, 6, "crashed"), (6, 7, "filler_crashed"), (7, 8, "client_silent"), (8, 9, "burned")];
        let (_, account) = known(&[&held[..], &lost].concat()).account();
        assert_eq!((account.next, account.gapless_from), (100, 3));
        assert_eq!((account.held.len(), account.with_clients.len()), (3, 1));
        let uncertain = account.lost.iter().filter(|lost| lost.reason == Reason::CrashSkip).count();
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
        .leaving();
        assert_eq!((adopted.cursor.version, adopted.gapless_from), (7, 3));
        assert_eq!(adopted.ledger, [Lease::new(1, 10).unwrap()]);
        let lost: u64 = adopted.lost.iter().map(|missing| missing.range.count()).sum();
        assert_eq!(lost, 40 - 4 + 15, "{:?}", shown(&adopted.lost));
        let uncertain = adopted.lost.iter().filter(|missing| missing.reason.is_uncertain());
        assert_eq!(uncertain.map(|missing| missing.range.count()).sum::<u64>(), lost - 2);
        let pushed = Missing { range: Lease::new(50, 55).unwrap(), reason: Reason::PoolInvalidated };
        assert!(adopted.lost.contains(&pushed), "{:?}", shown(&adopted.lost));
    }
}
