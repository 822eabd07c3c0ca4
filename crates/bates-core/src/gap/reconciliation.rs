//! The account of a scope: what a store knows of its positions, and which are missing. Pure: no store, no clock.

use super::{GapReason, MissingRange};
use crate::range::{PositionRange, RangeSet};
use crate::series::Promise;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// The first position not yet granted.
    pub next: u64,
    /// The ledger: positions of documents, reservations and gapless numbers.
    pub issued: Vec<PositionRange>,
    /// Held in memory by live processes.
    pub held: Vec<PositionRange>,
    /// Held or used by clients.
    pub with_clients: Vec<PositionRange>,
    /// Known to be lost, or held by a process that crashed.
    pub lost: Vec<MissingRange>,
    /// Documents that were not delivered, and reservations that were not confirmed.
    pub undelivered: Vec<MissingRange>,
    /// Documents on their way, and open reservations.
    pub pending: Vec<PositionRange>,
    /// Adopted positions. There may be millions, so a store leaves them out, and the caller reads those that matter.
    pub adopted: Vec<PositionRange>,
    /// The first position past all adopted ones.
    pub adopted_to: u64,
    /// The first position since which the scope is gapless; 0 if it always was.
    pub gapless_from: u64,
}

impl Reconciliation {
    /// The missing positions, ascending, each once. `saved` are those that the user's own documents have, if known.
    pub fn missing(&self, promise: Promise, start: u64, saved: Option<&RangeSet>) -> Vec<MissingRange> {
        let mut missing: Vec<MissingRange> = Vec::new();
        // Adopted positions are not missing, nor those of a client, even if its node crashed, nor those of saved documents:
        // a late document closes its gap again.
        let adopted_or_leased = self.adopted.iter().chain(&self.with_clients).copied();
        let mut taken = RangeSet::of(adopted_or_leased.chain(saved.into_iter().flat_map(RangeSet::iter)));
        // A decision or an observed failure counts more than a loss that is only presumed.
        MissingRange::add_new(&mut missing, &mut taken, &self.undelivered);
        MissingRange::add_new(&mut missing, &mut taken, &self.lost);
        let untracked = self.untracked(promise, start, saved).difference(&taken);
        missing.extend(MissingRange::all(untracked.iter(), GapReason::UntrackedLoss));
        missing.sort_unstable();
        missing
    }

    /// Issued positions without a known document.
    fn untracked(&self, promise: Promise, start: u64, saved: Option<&RangeSet>) -> RangeSet {
        let granted = RangeSet::of(PositionRange::new(start, self.next));
        let lost = self.lost.iter().map(|lost| lost.range);
        let elsewhere = RangeSet::of(self.held.iter().chain(&self.with_clients).copied().chain(lost));
        let issued = RangeSet::of(self.issued.iter().copied());
        let loose = granted.difference(&elsewhere).difference(&issued);
        // Since a series is gapless, all its positions are in the ledger. The others were handed out from memory.
        let before = RangeSet::of(PositionRange::new(0, self.gapless_from));
        let unwritten =
            if promise == Promise::Gapless { loose.difference(&before) } else { RangeSet::default() };
        match saved {
            None => unwritten,
            Some(saved) => {
                let pending = RangeSet::of(self.pending.iter().copied());
                let handed_out = issued.union(&loose).difference(&pending);
                unwritten.union(&handed_out).difference(saved)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(from: u64, to: u64) -> PositionRange {
        PositionRange::new(from, to).unwrap()
    }

    fn missing(from: u64, to: u64, reason: GapReason) -> MissingRange {
        MissingRange { range: lease(from, to), reason }
    }

    fn reason_at(found: &[MissingRange], at: u64) -> Option<GapReason> {
        let is_in = |range: PositionRange| (range.from()..range.to()).contains(&at);
        found.iter().find(|missing| is_in(missing.range)).map(|missing| missing.reason)
    }

    fn account() -> Reconciliation {
        Reconciliation {
            next: 100,
            issued: vec![lease(1, 20), lease(30, 50)],
            held: vec![lease(60, 70)],
            lost: vec![missing(50, 60, GapReason::CrashSkip)],
            undelivered: vec![missing(5, 6, GapReason::OutboxDlq), missing(40, 42, GapReason::Voided)],
            pending: vec![lease(48, 50)],
            ..Reconciliation::default()
        }
    }

    #[test]
    fn what_is_missing_has_the_reason_that_is_known() {
        let expected = [
            missing(5, 6, GapReason::OutboxDlq),
            missing(40, 42, GapReason::Voided),
            missing(50, 60, GapReason::CrashSkip),
        ];
        assert_eq!(
            account().missing(Promise::Unique, 1, None),
            expected,
            "the rest was handed out from memory"
        );
        let mut gapless = account().missing(Promise::Gapless, 1, None);
        gapless.retain(|missing| missing.reason == GapReason::UntrackedLoss);
        let lost = [missing(20, 30, GapReason::UntrackedLoss), missing(70, 100, GapReason::UntrackedLoss)];
        assert_eq!(gapless, lost, "in a gapless series all is written");
    }

    #[test]
    fn numbers_from_before_a_series_became_gapless_are_no_loss() {
        let account = Reconciliation { gapless_from: 75, ..account() };
        let mut found = account.missing(Promise::Gapless, 1, None);
        found.retain(|missing| missing.reason == GapReason::UntrackedLoss);
        assert_eq!(found, [missing(75, 100, GapReason::UntrackedLoss)]);
    }

    #[test]
    fn documents_that_the_user_has_close_gaps_and_those_that_are_not_there_open_them() {
        let saved = RangeSet::of([lease(1, 20), lease(40, 41), lease(52, 53), lease(70, 99)]);
        let found = account().missing(Promise::Unique, 1, Some(&saved));
        let expected = [
            missing(20, 40, GapReason::UntrackedLoss),
            missing(41, 42, GapReason::Voided),
            missing(42, 48, GapReason::UntrackedLoss),
            missing(50, 52, GapReason::CrashSkip),
            missing(53, 60, GapReason::CrashSkip),
            missing(99, 100, GapReason::UntrackedLoss),
        ];
        assert_eq!(found, expected, "what is held or on its way is neither");
    }

    #[test]
    fn what_was_set_aside_is_missing_to_nobody() {
        let adopted = vec![lease(22, 24), lease(50, 55), lease(80, 81)];
        let found =
            Reconciliation { adopted, ..account() }.missing(Promise::Unique, 1, Some(&RangeSet::default()));
        assert!([22, 23, 50, 54, 80].into_iter().all(|at| reason_at(&found, at).is_none()), "{found:?}");
        assert_eq!(reason_at(&found, 24), Some(GapReason::UntrackedLoss));
        assert_eq!(reason_at(&found, 55), Some(GapReason::CrashSkip));
    }

    #[test]
    fn what_a_client_has_is_missing_to_nobody_and_what_it_did_not_use_is_known() {
        let with_clients = vec![lease(55, 58), lease(70, 75)];
        let mut account = Reconciliation { with_clients, ..account() };
        let found = account.missing(Promise::Unique, 1, Some(&RangeSet::default()));
        assert!([55, 57, 70, 74].into_iter().all(|at| reason_at(&found, at).is_none()), "{found:?}");
        assert_eq!(reason_at(&found, 58), Some(GapReason::CrashSkip));
        account.with_clients.clear();
        account.lost.push(missing(56, 58, GapReason::LeaseLost));
        let found = account.missing(Promise::Unique, 1, None);
        assert_eq!(reason_at(&found, 55), Some(GapReason::CrashSkip));
        assert_eq!(
            reason_at(&found, 57),
            Some(GapReason::LeaseLost),
            "what is known counts more than what is not"
        );
    }

    #[test]
    fn a_hundred_million_numbers_with_a_thousand_gaps_are_a_matter_of_their_ranges() {
        let issued = (0..=1_000_u64).map(|at| lease(at * 100_000 + 1, (at + 1) * 100_000));
        let account =
            Reconciliation { next: 100_100_000, issued: issued.collect(), ..Reconciliation::default() };
        assert_eq!(account.missing(Promise::Gapless, 1, None).len(), 1_000);
    }
}
