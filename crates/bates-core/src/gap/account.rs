//! The account of a scope: what a store knows of its positions, and which of them nobody has. Pure: no store, no clock.

use super::{Missing, Reason};
use crate::range::{Lease, Ranges};
use crate::series::Promise;

/// What a store knows of the positions of a scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The first position not yet granted.
    pub next: u64,
    /// The ledger: what was issued one by one, for documents, reservations and gapless numbers.
    pub issued: Vec<Lease>,
    /// What processes that live hold in memory.
    pub held: Vec<Lease>,
    /// What clients hold in advance, or have used of what they hold.
    pub with_clients: Vec<Lease>,
    /// What is known to be nobody's, or held by a process that crashed.
    pub lost: Vec<Missing>,
    /// Documents that were not delivered, and reservations that were not confirmed.
    pub undelivered: Vec<Missing>,
    /// Documents on their way, and open reservations.
    pub pending: Vec<Lease>,
    /// What was set aside: numbers that somebody else gave out. There may be millions, so a store leaves them out, and
    /// who needs them asks for those that matter.
    pub aside: Vec<Lease>,
    /// Past the last of them.
    pub aside_to: u64,
    /// The first position since which the scope is gapless; 0 if it always was.
    pub gapless_from: u64,
}

impl Account {
    /// The positions that nobody has, ascending, each once. `saved` are the positions that the user's own documents
    /// have, where the user says so.
    pub fn missing(&self, promise: Promise, start: u64, saved: Option<&Ranges>) -> Vec<Missing> {
        let mut missing: Vec<Missing> = Vec::new();
        // What somebody else gave out is missing to nobody, nor is what a client has, whatever became of the node that
        // gave it.
        let mut taken = Ranges::of(self.aside.iter().chain(&self.with_clients).copied());
        // What somebody decided or saw counts more than what is only not known.
        for known in [&self.undelivered, &self.lost] {
            for found in by_reason(known) {
                let ranges = match saved {
                    // A late document closes its gap again.
                    Some(saved) => found.1.without(saved),
                    None => found.1,
                };
                let new = ranges.without(&taken);
                missing.extend(new.iter().map(|range| Missing { range, reason: found.0 }));
                taken = taken.and(&new);
            }
        }
        let untracked = self.untracked(promise, start, saved).without(&taken);
        missing.extend(untracked.iter().map(|range| Missing { range, reason: Reason::UntrackedLoss }));
        missing.sort_unstable();
        missing
    }

    /// What was issued and is no document that anybody knows of.
    fn untracked(&self, promise: Promise, start: u64, saved: Option<&Ranges>) -> Ranges {
        let granted = Ranges::of(Lease::new(start, self.next));
        let elsewhere = Ranges::of(self.held.iter().chain(&self.with_clients).copied());
        let elsewhere = elsewhere.and(&Ranges::of(self.lost.iter().map(|lost| lost.range)));
        let issued = Ranges::of(self.issued.iter().copied());
        let loose = granted.without(&elsewhere).without(&issued);
        // Every position of a gapless series is in the ledger since it is gapless. In others, and before that, what is
        // not was handed out from memory.
        let before = Ranges::of(Lease::new(0, self.gapless_from));
        let unwritten = if promise == Promise::Gapless { loose.without(&before) } else { Ranges::default() };
        match saved {
            None => unwritten,
            Some(saved) => {
                let pending = Ranges::of(self.pending.iter().copied());
                let handed_out = issued.and(&loose).without(&pending);
                unwritten.and(&handed_out).without(saved)
            }
        }
    }
}

pub(super) fn by_reason(missing: &[Missing]) -> Vec<(Reason, Ranges)> {
    let of = |reason: Reason| {
        Ranges::of(missing.iter().filter(|missing| missing.reason == reason).map(|missing| missing.range))
    };
    Reason::ALL
        .into_iter()
        .map(|reason| (reason, of(reason)))
        .filter(|(_, found)| !found.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(from: u64, to: u64) -> Lease {
        Lease::new(from, to).unwrap()
    }

    fn missing(from: u64, to: u64, reason: Reason) -> Missing {
        Missing { range: lease(from, to), reason }
    }

    fn account() -> Account {
        Account {
            next: 100,
            issued: vec![lease(1, 20), lease(30, 50)],
            held: vec![lease(60, 70)],
            with_clients: vec![],
            lost: vec![missing(50, 60, Reason::CrashSkip)],
            undelivered: vec![missing(5, 6, Reason::OutboxDlq), missing(40, 42, Reason::Voided)],
            pending: vec![lease(48, 50)],
            aside: vec![],
            aside_to: 0,
            gapless_from: 0,
        }
    }

    #[test]
    fn what_is_missing_has_the_reason_that_is_known() {
        let expected = [
            missing(5, 6, Reason::OutboxDlq),
            missing(40, 42, Reason::Voided),
            missing(50, 60, Reason::CrashSkip),
        ];
        assert_eq!(
            account().missing(Promise::Unique, 1, None),
            expected,
            "the rest was handed out from memory"
        );
        let mut gapless = account().missing(Promise::Gapless, 1, None);
        gapless.retain(|missing| missing.reason == Reason::UntrackedLoss);
        let lost = [missing(20, 30, Reason::UntrackedLoss), missing(70, 100, Reason::UntrackedLoss)];
        assert_eq!(gapless, lost, "in a gapless series all is written");
    }

    #[test]
    fn numbers_from_before_a_series_became_gapless_are_no_loss() {
        let account = Account { gapless_from: 75, ..account() };
        let mut found = account.missing(Promise::Gapless, 1, None);
        found.retain(|missing| missing.reason == Reason::UntrackedLoss);
        assert_eq!(found, [missing(75, 100, Reason::UntrackedLoss)]);
    }

    #[test]
    fn documents_that_the_user_has_close_gaps_and_those_that_are_not_there_open_them() {
        let saved = Ranges::of([lease(1, 20), lease(40, 41), lease(52, 53), lease(70, 99)]);
        let found = account().missing(Promise::Unique, 1, Some(&saved));
        let expected = [
            missing(20, 40, Reason::UntrackedLoss),
            missing(41, 42, Reason::Voided),
            missing(42, 48, Reason::UntrackedLoss),
            missing(50, 52, Reason::CrashSkip),
            missing(53, 60, Reason::CrashSkip),
            missing(99, 100, Reason::UntrackedLoss),
        ];
        assert_eq!(found, expected, "what is held or on its way is neither");
    }

    #[test]
    fn what_was_set_aside_is_missing_to_nobody() {
        let aside = vec![lease(22, 24), lease(50, 55), lease(80, 81)];
        let found = Account { aside, ..account() }.missing(Promise::Unique, 1, Some(&Ranges::default()));
        let reason = |at| found.iter().find(|missing| missing.range.from() <= at && at < missing.range.to());
        assert!([22, 23, 50, 54, 80].into_iter().all(|at| reason(at).is_none()), "{found:?}");
        assert_eq!(reason(24).map(|missing| missing.reason), Some(Reason::UntrackedLoss));
        assert_eq!(reason(55).map(|missing| missing.reason), Some(Reason::CrashSkip));
    }

    #[test]
    fn what_a_client_has_is_missing_to_nobody_and_what_it_did_not_use_is_known() {
        let with_clients = vec![lease(55, 58), lease(70, 75)];
        let mut account = Account { with_clients, ..account() };
        let found = account.missing(Promise::Unique, 1, Some(&Ranges::default()));
        let reason = |found: &[Missing], at| {
            found
                .iter()
                .find(|missing| (missing.range.from()..missing.range.to()).contains(&at))
                .map(|it| it.reason)
        };
        assert!([55, 57, 70, 74].into_iter().all(|at| reason(&found, at).is_none()), "{found:?}");
        assert_eq!(reason(&found, 58), Some(Reason::CrashSkip));
        account.with_clients.clear();
        account.lost.push(missing(56, 58, Reason::LeaseLost));
        let found = account.missing(Promise::Unique, 1, None);
        assert_eq!(reason(&found, 55), Some(Reason::CrashSkip));
        assert_eq!(reason(&found, 57), Some(Reason::LeaseLost), "what is known counts more than what is not");
    }

    #[test]
    fn a_hundred_million_numbers_with_a_thousand_gaps_are_a_matter_of_their_ranges() {
        let issued = (0..=1_000_u64).map(|at| lease(at * 100_000 + 1, (at + 1) * 100_000));
        let account = Account { next: 100_100_000, issued: issued.collect(), ..Account::default() };
        assert_eq!(account.missing(Promise::Gapless, 1, None).len(), 1_000);
    }
}
