//! A simple model of every position, which checks the answers of a store. Must never use the ledger of the core:
//! shared rules would share their errors.

mod steps;

use std::collections::{BTreeMap, BTreeSet};

use bates_core::{
    AssignError, Assignment, Cursor, GapReason, Grant, GrantError, GrantPurpose, MissingRange, PositionRange,
    RangeSet, ReleaseOutcome, ScopePositions,
};
use uuid::Uuid;

pub use steps::check_random_histories;

/// The state of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The process holds it.
    Held,
    /// A process that crashed held it.
    Uncertain,
    /// A caller has it; the store need not know.
    HandedOut,
    /// It is in the ledger.
    Issued,
    /// It was granted to a pool, and the process has not pushed it yet.
    Pooled,
    /// It is a gap.
    Lost(GapReason),
}

/// A scope, position by position.
#[derive(Default)]
pub(crate) struct ScopeModel {
    next: u64,
    /// How often the cursor was written.
    writes: u64,
    fates: BTreeMap<u64, Fate>,
    adopted: BTreeSet<u64>,
    /// The positions of documents, and whether they were abandoned.
    documents: BTreeMap<u64, bool>,
    /// The ranges that the process holds, in the order of their grants.
    held: Vec<HeldRange>,
}

#[derive(Clone, Copy)]
pub(crate) struct HeldRange {
    pub(crate) range: PositionRange,
    pub(crate) version: u64,
    /// The write that granted it.
    write: u64,
}

/// Idempotency keys, each with the digest, the document and the position of the request that used it.
#[derive(Default)]
pub(crate) struct KeyModel(BTreeMap<u8, (u8, Uuid, u64)>);

/// Why an answer is wrong.
pub(crate) type Verdict = Result<(), String>;

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(message()) }
}

impl ScopeModel {
    pub(crate) fn new(start: u64) -> Self {
        Self { next: start, ..Self::default() }
    }

    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The first position that the process holds.
    pub(crate) fn held_from(&self) -> Option<u64> {
        self.held.iter().map(|held| held.range.from()).min()
    }

    pub(crate) fn held(&self) -> &[HeldRange] {
        &self.held
    }

    /// The next free positions; adopted positions end the run unless the grant is for holding.
    fn expected(&self, purpose: GrantPurpose, count: u64, end: u64) -> Vec<u64> {
        let free = (self.next..end).filter(|position| !self.adopted.contains(position));
        let mut expected: Vec<u64> = Vec::new();
        for position in free.take(usize::try_from(count).unwrap_or(usize::MAX)) {
            let follows = expected.last().is_none_or(|last| last + 1 == position);
            if !follows && purpose != GrantPurpose::Hold {
                break;
            }
            expected.push(position);
        }
        expected
    }

    pub(crate) fn judge_grant(
        &mut self,
        purpose: GrantPurpose,
        count: u64,
        end: u64,
        answer: &Result<Grant, GrantError>,
    ) -> Verdict {
        let expected = self.expected(purpose, count, end);
        let is_granted =
            !expected.is_empty() && (!purpose.is_all_or_none() || expected.len() as u64 == count);
        let (grant, last) = match (answer, expected.last()) {
            (Ok(grant), Some(last)) if is_granted => (grant, *last),
            (Err(GrantError::Exhausted { left, .. }), _) if !is_granted => {
                return ensure(*left == expected.len() as u64, || {
                    format!("{left} left, not {}", expected.len())
                });
            }
            _ => return Err(format!("{purpose:?} of {count}: {answer:?}, expected {expected:?}")),
        };
        let adopted: BTreeSet<u64> = grant.adopted.iter().map(|position| position.value()).collect();
        let range = (grant.range.from()..grant.range.to()).filter(|at| !adopted.contains(at));
        ensure(range.clone().eq(expected.iter().copied()), || format!("{grant:?}, expected {expected:?}"))?;
        ensure(range.clone().all(|at| !self.fates.contains_key(&at)), || format!("{grant:?} came before"))?;
        let fate = match purpose {
            GrantPurpose::Hold => Fate::Held,
            GrantPurpose::Pool => Fate::Pooled,
            GrantPurpose::HandOut => Fate::HandedOut,
            GrantPurpose::Issue => Fate::Issued,
        };
        self.fates.extend(range.map(|at| (at, fate)));
        self.move_to(last + 1);
        if purpose == GrantPurpose::Hold {
            let held = HeldRange { range: grant.range, version: grant.version, write: self.writes };
            self.held.push(held);
        }
        Ok(())
    }

    /// Judges a release: `unused` is the end of the last held range; all other held ranges are lost.
    pub(crate) fn judge_release(&mut self, unused: PositionRange, answer: ReleaseOutcome) -> Verdict {
        let held = std::mem::take(&mut self.held);
        let Some((last, others)) = held.split_last() else { return Err("nothing was held".to_owned()) };
        let is_last_write = last.write == self.writes && unused.to() == self.next;
        let expected = if is_last_write { ReleaseOutcome::Returned } else { ReleaseOutcome::Gap };
        ensure(answer == expected, || format!("{unused} is {answer:?}, expected {expected:?}"))?;
        for other in others {
            self.set(other.range, Fate::Lost(GapReason::LeaseLost));
        }
        for at in last.range.from()..unused.from() {
            self.fates.insert(at, Fate::HandedOut);
        }
        match answer {
            ReleaseOutcome::Gap => self.set(unused, Fate::Lost(GapReason::LeaseLost)),
            ReleaseOutcome::Returned => {
                self.fates.retain(|at, _| *at < unused.from());
                self.move_to(unused.from());
            }
        }
        Ok(())
    }

    fn set(&mut self, range: PositionRange, fate: Fate) {
        let free = (range.from()..range.to()).filter(|at| !self.adopted.contains(at));
        self.fates.extend(free.map(|at| (at, fate)));
    }

    pub(crate) fn judge_floor(&mut self, floor: u64, answer: Cursor) -> Verdict {
        let expected = self.next.max(floor);
        ensure(answer.next == expected, || {
            format!("a floor of {floor} left the cursor at {}, expected {expected}", answer.next)
        })?;
        if let Some(passed) = PositionRange::new(self.next, floor) {
            self.set(passed, Fate::Lost(GapReason::FloorRaised));
            self.move_to(floor);
        }
        Ok(())
    }

    pub(crate) fn judge_adoption(&mut self, positions: &[u64], answer: u64) -> Verdict {
        let granted = positions.iter().filter(|position| **position < self.next).count() as u64;
        ensure(answer == granted, || format!("{answer} of {positions:?} were granted, expected {granted}"))?;
        self.adopted.extend(positions);
        self.move_to(self.next);
        Ok(())
    }

    fn judge_position(&mut self, position: u64, end: u64) -> Verdict {
        let expected = self.expected(GrantPurpose::Issue, 1, end);
        ensure(expected == [position], || format!("position {position}, expected {expected:?}"))?;
        ensure(!self.fates.contains_key(&position), || format!("{position} came before"))?;
        self.fates.insert(position, Fate::Issued);
        self.documents.insert(position, false);
        self.move_to(position + 1);
        Ok(())
    }

    fn move_to(&mut self, next: u64) {
        (self.next, self.writes) = (next, self.writes + 1);
    }

    /// All documents of the scope are abandoned. Whether they are also removed must not matter.
    pub(crate) fn judge_abandoned(&mut self, answer: u64) -> Verdict {
        let open = self.documents.values_mut().filter(|is_abandoned| !**is_abandoned);
        let count = open.map(|is_abandoned| *is_abandoned = true).count() as u64;
        ensure(answer == count, || format!("{answer} documents were abandoned, expected {count}"))
    }

    /// The process crashes.
    pub(crate) fn crash(&mut self) {
        self.held.clear();
        let held = self.fates.values_mut().filter(|fate| matches!(fate, Fate::Held | Fate::Pooled));
        held.for_each(|fate| *fate = Fate::Uncertain);
    }

    /// Judges the account of every position that the store gives.
    pub(crate) fn judge_account(&self, account: &ScopePositions) -> Verdict {
        ensure(account.next == self.next, || {
            format!("the cursor is at {}, expected {}", account.next, self.next)
        })?;
        let is_in = |ranges: &[PositionRange], at: u64| {
            ranges.iter().any(|range| (range.from()..range.to()).contains(&at))
        };
        for (at, fate) in &self.fates {
            let lost = account.lost.iter().filter(|lost| (lost.range.from()..lost.range.to()).contains(at));
            let lost: Vec<GapReason> = lost.map(|lost| lost.reason).collect();
            let (is_held, is_issued) = (is_in(&account.held, *at), is_in(&account.issued, *at));
            let is_expected = match fate {
                Fate::Held | Fate::Pooled => is_held && lost.is_empty(),
                Fate::Uncertain => is_held && lost.is_empty() || lost == [GapReason::CrashSkip],
                Fate::HandedOut => !is_held && lost.is_empty(),
                Fate::Issued => !is_held && lost.is_empty() && is_issued,
                Fate::Lost(reason) => !is_held && lost == [*reason],
            };
            ensure(is_expected && is_issued == (*fate == Fate::Issued), || {
                format!("{at} is {fate:?}; held: {is_held}, issued: {is_issued}, lost: {lost:?}")
            })?;
        }
        let abandoned = self.documents.iter().filter(|(_, is_abandoned)| **is_abandoned);
        let abandoned: Vec<MissingRange> = abandoned
            .filter_map(|(at, _)| {
                Some(MissingRange { range: PositionRange::new(*at, at + 1)?, reason: GapReason::Abandoned })
            })
            .collect();
        let (abandoned, found) =
            (MissingRange::disjoint(&abandoned), MissingRange::disjoint(&account.undelivered));
        ensure(abandoned == found, || format!("undelivered: {found:?}, expected {abandoned:?}"))?;
        let issued = self.fates.iter().filter(|(_, fate)| **fate == Fate::Issued).map(|(at, _)| *at);
        let issued = RangeSet::of(issued.filter_map(|at| PositionRange::new(at, at + 1)));
        let listed = RangeSet::of(account.issued.iter().copied());
        ensure(issued == listed, || format!("the ledger has {listed:?}, expected {issued:?}"))
    }
}

impl KeyModel {
    /// Judges the number of a document, or its refusal.
    pub(crate) fn judge(
        &mut self,
        key: Option<(u8, u8)>,
        document_id: Uuid,
        scope: &mut ScopeModel,
        end: u64,
        answer: &Result<Assignment, AssignError>,
    ) -> Verdict {
        if let Some((known, digest)) = key.and_then(|(key, digest)| Some((self.0.get(&key)?, digest))) {
            let expected = |answer: &Assignment| {
                !answer.is_new && (answer.document_id, answer.position.value()) == (known.1, known.2)
            };
            return match answer {
                Err(AssignError::KeyReused) if known.0 != digest => Ok(()),
                Ok(answer) if known.0 == digest && expected(answer) => Ok(()),
                answer => Err(format!("key {key:?} was used for {known:?}: {answer:?}")),
            };
        }
        match answer {
            Ok(assignment) => {
                ensure(assignment.is_new && assignment.document_id == document_id, || {
                    format!("{assignment:?} is not new")
                })?;
                scope.judge_position(assignment.position.value(), end)?;
                if let Some((key, digest)) = key {
                    self.0.insert(key, (digest, document_id, assignment.position.value()));
                }
                Ok(())
            }
            Err(AssignError::Grant(GrantError::Exhausted { .. })) => {
                let expected = scope.expected(GrantPurpose::Issue, 1, end);
                ensure(expected.is_empty(), || format!("exhausted, expected {expected:?}"))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}
