//! The positions of a scope by what became of them, and from that its missing positions. Pure: no store, no clock.

use super::{GapReason, MissingRange};
use crate::range::{PositionRange, RangeSet};
use crate::series::Promise;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopePositions {
    /// The first position not yet granted.
    pub next: u64,
    /// The ledger: positions of documents, reservations and gapless numbers.
    pub issued: Vec<PositionRange>,
    /// Held in memory by live processes.
    pub held: Vec<PositionRange>,
    /// Held or used by clients.
    pub with_clients: Vec<PositionRange>,
    /// Lost for a known reason, or held by a process or client that counts as crashed.
    pub lost: Vec<MissingRange>,
    /// Documents that were not delivered, and reservations that were not confirmed, also those that were removed.
    pub undelivered: Vec<MissingRange>,
    /// Documents on their way, and open reservations.
    pub pending: Vec<PositionRange>,
    /// Adopted positions. There may be millions: a store leaves them out, and reconciliation reads those that matter.
    pub adopted: Vec<PositionRange>,
    /// The first position past all adopted ones.
    pub adopted_to: u64,
    /// The position from which on the scope is gapless; 0 if it always was.
    pub gapless_from: u64,
}

impl ScopePositions {
    /// The missing positions as disjoint, ascending ranges. `saved` are the positions of the user's own documents, if known.
    pub fn missing(&self, promise: Promise, start: u64, saved: Option<&RangeSet>) -> Vec<MissingRange> {
        let mut missing: Vec<MissingRange> = Vec::new();
        // Not missing: adopted positions, those of clients (even if their node crashed), and those of saved documents: a
        // document that is saved late closes its gap.
        let adopted_or_leased = self.adopted.iter().chain(&self.with_clients).copied();
        let mut excluded = RangeSet::of(adopted_or_leased.chain(saved.into_iter().flat_map(RangeSet::iter)));
        // First: a decision or an observed failure is a better reason than a presumed loss.
        MissingRange::add_new(&mut missing, &mut excluded, &self.undelivered);
        MissingRange::add_new(&mut missing, &mut excluded, &self.lost);
        let untracked = self.untracked(promise, start, saved).difference(&excluded);
        missing.extend(MissingRange::all(untracked.iter(), GapReason::UntrackedLoss));
        missing.sort_unstable();
        missing
    }

    /// Issued positions without a known document.
    fn untracked(&self, promise: Promise, start: u64, saved: Option<&RangeSet>) -> RangeSet {
        let granted = RangeSet::of(PositionRange::new(start, self.next));
        let lost = self.lost.iter().map(|lost| lost.range);
        let held_or_lost = RangeSet::of(self.held.iter().chain(&self.with_clients).copied().chain(lost));
        let issued = RangeSet::of(self.issued.iter().copied());
        let unrecorded = granted.difference(&held_or_lost).difference(&issued);
        // A gapless series writes all positions to the ledger. Before it became gapless, they were handed out from memory.
        let mut untracked = RangeSet::default();
        if promise == Promise::Gapless {
            untracked = unrecorded.difference(&RangeSet::of(PositionRange::new(0, self.gapless_from)));
        }
        let Some(saved) = saved else { return untracked };
        let pending = RangeSet::of(self.pending.iter().copied());
        let handed_out = issued.union(&unrecorded).difference(&pending);
        untracked.union(&handed_out).difference(saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: u64, to: u64) -> PositionRange {
        PositionRange::new(from, to).unwrap()
    }

    fn missing(from: u64, to: u64, reason: GapReason) -> MissingRange {
        MissingRange { range: range(from, to), reason }
    }

    fn untracked(from: u64, to: u64) -> MissingRange {
        missing(from, to, GapReason::UntrackedLoss)
    }

    fn reason_at(found: &[MissingRange], at: u64) -> Option<GapReason> {
        let is_in = |range: PositionRange| (range.from()..range.to()).contains(&at);
        found.iter().find(|missing| is_in(missing.range)).map(|missing| missing.reason)
    }

    fn scope() -> ScopePositions {
        ScopePositions {
            next: 100,
            issued: vec![range(1, 20), range(30, 50)],
            held: vec![range(60, 70)],
            lost: vec![missing(50, 60, GapReason::CrashSkip)],
            undelivered: vec![missing(5, 6, GapReason::OutboxDlq), missing(40, 42, GapReason::Voided)],
            pending: vec![range(48, 50)],
            ..ScopePositions::default()
        }
    }

    #[test]
    fn each_missing_position_has_its_known_reason() {
        let expected = [
            missing(5, 6, GapReason::OutboxDlq),
            missing(40, 42, GapReason::Voided),
            missing(50, 60, GapReason::CrashSkip),
        ];
        assert_eq!(scope().missing(Promise::Unique, 1, None), expected, "the rest came from memory");
        let mut gapless = scope().missing(Promise::Gapless, 1, None);
        gapless.retain(|missing| missing.reason == GapReason::UntrackedLoss);
        assert_eq!(gapless, [untracked(20, 30), untracked(70, 100)], "a gapless series writes every number");
    }

    #[test]
    fn numbers_from_before_a_series_became_gapless_are_no_loss() {
        let scope = ScopePositions { gapless_from: 75, ..scope() };
        let mut found = scope.missing(Promise::Gapless, 1, None);
        found.retain(|missing| missing.reason == GapReason::UntrackedLoss);
        assert_eq!(found, [untracked(75, 100)]);
    }

    #[test]
    fn saved_documents_close_gaps_and_missing_ones_open_them() {
        let saved = RangeSet::of([range(1, 20), range(40, 41), range(52, 53), range(70, 99)]);
        let found = scope().missing(Promise::Unique, 1, Some(&saved));
        let expected = [
            untracked(20, 40),
            missing(41, 42, GapReason::Voided),
            untracked(42, 48),
            missing(50, 52, GapReason::CrashSkip),
            missing(53, 60, GapReason::CrashSkip),
            untracked(99, 100),
        ];
        assert_eq!(found, expected, "held positions and pending documents are not missing");
    }

    #[test]
    fn adopted_positions_are_not_missing() {
        let adopted = vec![range(22, 24), range(50, 55), range(80, 81)];
        let scope = ScopePositions { adopted, ..scope() };
        let found = scope.missing(Promise::Unique, 1, Some(&RangeSet::default()));
        assert!([22, 23, 50, 54, 80].into_iter().all(|at| reason_at(&found, at).is_none()), "{found:?}");
        assert_eq!(reason_at(&found, 24), Some(GapReason::UntrackedLoss));
        assert_eq!(reason_at(&found, 55), Some(GapReason::CrashSkip));
    }

    #[test]
    fn positions_of_a_client_are_not_missing_until_it_returns_them_unused() {
        let with_clients = vec![range(55, 58), range(70, 75)];
        let mut scope = ScopePositions { with_clients, ..scope() };
        let found = scope.missing(Promise::Unique, 1, Some(&RangeSet::default()));
        assert!([55, 57, 70, 74].into_iter().all(|at| reason_at(&found, at).is_none()), "{found:?}");
        assert_eq!(reason_at(&found, 58), Some(GapReason::CrashSkip));
        scope.with_clients.clear();
        scope.lost.push(missing(56, 58, GapReason::LeaseLost));
        let found = scope.missing(Promise::Unique, 1, None);
        assert_eq!(reason_at(&found, 55), Some(GapReason::CrashSkip));
        assert_eq!(reason_at(&found, 57), Some(GapReason::LeaseLost), "a certain reason comes first");
    }

    #[test]
    fn a_thousand_gaps_in_a_hundred_million_numbers_are_found_from_ranges() {
        let issued = (0..=1_000_u64).map(|at| range(at * 100_000 + 1, (at + 1) * 100_000)).collect();
        let scope = ScopePositions { next: 100_100_000, issued, ..ScopePositions::default() };
        assert_eq!(scope.missing(Promise::Gapless, 1, None).len(), 1_000);
    }
}
