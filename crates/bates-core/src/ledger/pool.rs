//! The rules of shared pools: the epoch of a pool, and what becomes of the positions that were granted to it.
//!
//! Invariant: a position leaves the rows of a pool only if it was popped, or in the change that records it as lost.

use std::collections::BTreeMap;

use crate::gap::{GapReason, MissingRange};
use crate::range::{PositionRange, RangeSet};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Raised when the list may hold numbers that were already taken, or may lack some.
    pub epoch: u64,
    /// The server on which the epoch began; `None` before the first epoch, and if the pool must be renewed.
    pub server: Option<ServerIdentity>,
}

/// Identifies a Redis server together with its data: a restart, a failover or a restore gives it another identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerIdentity {
    /// `run_id`: another one after each start of the process.
    pub run: Box<str>,
    /// `master_replid`: another one after a replica took over, or began to follow another server.
    pub replication: Box<str>,
}

impl ServerIdentity {
    /// `None` unless both ids are there.
    pub fn from_ids(run: Option<&str>, replication: Option<&str>) -> Option<Self> {
        Some(Self { run: run?.into(), replication: replication?.into() })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewRequest {
    pub expected_epoch: u64,
    pub server: ServerIdentity,
}

/// What became of positions that were granted to a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolSettlement {
    pub epoch: u64,
    /// These are in the list, or were taken from it. If the pool was renewed since, they are lost.
    pub pushed: Option<PositionRange>,
    /// These were not pushed, and never will be: they become gaps, `fill_fenced`.
    pub unused: Option<PositionRange>,
    /// All pushed positions below this one were popped. Ignored if the pool was renewed since.
    pub popped_to: Option<u64>,
}

/// The rows of a pool that a store must load for a change: those that overlap `[from, to)`, those that begin below `below`,
/// and all that were popped. A pool may have thousands of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBounds {
    pub from: u64,
    pub to: u64,
    pub below: u64,
}

impl PoolSettlement {
    pub fn row_bounds(&self) -> RowBounds {
        let settled = || [self.pushed, self.unused].into_iter().flatten();
        let from = settled().map(PositionRange::from).min().unwrap_or(0);
        let to = settled().map(PositionRange::to).max().unwrap_or(0);
        RowBounds { from, to, below: self.popped_to.unwrap_or(0) }
    }
}

/// Where positions that were granted to a pool are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PooledState {
    /// With the process that fills the pool.
    Granted,
    /// In the list.
    Pushed,
    /// Taken by a program. The row is kept only while [`PoolBefore::held_from`] would make them look held.
    Popped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PooledRange<H> {
    pub range: PositionRange,
    pub state: PooledState,
    /// The process that they were granted to, as the store names it.
    pub holder: H,
}

/// A pool as the store has it before a change.
#[derive(Clone, Debug)]
pub struct PoolBefore<H> {
    pub pool: Pool,
    pub rows: Vec<PooledRange<H>>,
    /// From here to the cursor, positions count as held unless a row names them; only for a store that records it so.
    pub held_from: Option<u64>,
}

/// The changes that the store writes for a pool, all in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolChange<H> {
    pub pool: Pool,
    /// The first positions of rows to delete, before others are added.
    pub removed: Vec<u64>,
    pub added: Vec<PooledRange<H>>,
    pub lost: Vec<MissingRange>,
}

impl<H: Clone + PartialEq> PoolBefore<H> {
    /// Ends an epoch and begins the next: positions pushed before are lost. `None` if the pool has another epoch.
    ///
    /// Invariant: of all nodes that saw an epoch, only one ends it.
    pub fn renew(self, renewal: RenewRequest) -> Option<PoolChange<H>> {
        if self.pool.epoch != renewal.expected_epoch {
            return None;
        }
        let mut rows = Rows::of(&self.rows);
        let pushed = rows.take(PooledState::Pushed, &RangeSet::of(PositionRange::new(0, u64::MAX)));
        rows.lose(&pushed, GapReason::PoolInvalidated);
        let pool = Pool { epoch: renewal.expected_epoch + 1, server: Some(renewal.server) };
        Some(rows.change(&self.rows, pool))
    }

    /// Decides what becomes of positions that were granted to the pool. A repeated call changes nothing.
    pub fn settle(self, settlement: &PoolSettlement) -> PoolChange<H> {
        let is_current = self.pool.epoch == settlement.epoch;
        let mut rows = Rows::of(&self.rows);
        let pushed = rows.take(PooledState::Granted, &RangeSet::of(settlement.pushed));
        if is_current {
            rows.put(pushed, PooledState::Pushed);
        } else {
            rows.lose(&pushed, GapReason::PoolInvalidated);
        }
        let unused = rows.take(PooledState::Granted, &RangeSet::of(settlement.unused));
        rows.lose(&unused, GapReason::FillFenced);
        if let Some(to) = settlement.popped_to.filter(|_| is_current) {
            let popped = rows.take(PooledState::Pushed, &RangeSet::of(PositionRange::new(0, to)));
            if !popped.is_empty() {
                rows.put(popped, PooledState::Popped);
                rows.forget_popped(self.held_from);
            }
        }
        rows.change(&self.rows, self.pool)
    }
}

struct Rows<H> {
    rows: Vec<PooledRange<H>>,
    lost: Vec<MissingRange>,
}

impl<H: Clone + PartialEq> Rows<H> {
    fn of(rows: &[PooledRange<H>]) -> Self {
        Self { rows: rows.to_vec(), lost: Vec::new() }
    }

    /// Removes the wanted positions that are in this state, and returns them. Other parts of their rows stay.
    fn take(&mut self, state: PooledState, wanted: &RangeSet) -> Vec<PooledRange<H>> {
        let (mut taken, mut kept) = (Vec::new(), Vec::new());
        for row in self.rows.drain(..) {
            let all = RangeSet::of([row.range]);
            let rest = if row.state == state { all.difference(wanted) } else { all.clone() };
            let part = |range| PooledRange { range, ..row.clone() };
            taken.extend(all.difference(&rest).iter().map(part));
            kept.extend(rest.iter().map(part));
        }
        self.rows = kept;
        taken
    }

    fn put(&mut self, rows: Vec<PooledRange<H>>, state: PooledState) {
        self.rows.extend(rows.into_iter().map(|row| PooledRange { state, ..row }));
    }

    fn lose(&mut self, rows: &[PooledRange<H>], reason: GapReason) {
        let ranges = RangeSet::of(rows.iter().map(|row| row.range));
        self.lost.extend(MissingRange::all(ranges.iter(), reason));
    }

    /// Joins popped ranges, so that there are few rows, and forgets those below the first held position.
    fn forget_popped(&mut self, held_from: Option<u64>) {
        let popped = self.take(PooledState::Popped, &RangeSet::of(PositionRange::new(0, u64::MAX)));
        let Some(first) = popped.first() else { return };
        let joined = RangeSet::of(popped.iter().map(|row| row.range));
        let needed = joined.iter().filter(|range| held_from.is_some_and(|from| range.to() > from));
        self.rows.extend(needed.map(|range| PooledRange { range, ..first.clone() }));
    }

    fn change(self, before: &[PooledRange<H>], pool: Pool) -> PoolChange<H> {
        let by_first = |rows: &[PooledRange<H>]| -> BTreeMap<u64, PooledRange<H>> {
            rows.iter().map(|row| (row.range.from(), row.clone())).collect()
        };
        let (old, new) = (by_first(before), by_first(&self.rows));
        let gone = old.iter().filter(|(first, row)| new.get(first) != Some(row));
        let removed = gone.map(|(first, _)| *first).collect();
        let added = new.iter().filter(|(first, row)| old.get(first) != Some(row));
        PoolChange { pool, removed, added: added.map(|(_, row)| row.clone()).collect(), lost: self.lost }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const END: u64 = 30;

    /// Where each position is: in a row, or lost.
    type Positions = BTreeMap<u64, Result<PooledState, GapReason>>;

    fn rows() -> impl Strategy<Value = Vec<PooledRange<u8>>> {
        let states = [PooledState::Granted, PooledState::Pushed, PooledState::Popped];
        let row = (0_u64..4, 1_u64..6, prop::sample::select(states.to_vec()), 0_u8..3);
        prop::collection::vec(row, 0..6).prop_map(|rows| {
            let mut next = 0;
            let placed = rows.into_iter().map(|(pause, count, state, holder)| {
                let range = PositionRange::new(next + pause, next + pause + count).unwrap();
                next = range.to();
                PooledRange { range, state, holder }
            });
            placed.collect()
        })
    }

    fn range() -> impl Strategy<Value = Option<PositionRange>> {
        (0..END, 0..END).prop_map(|(from, to)| PositionRange::new(from, to))
    }

    fn positions(rows: &[PooledRange<u8>], lost: &[MissingRange]) -> Positions {
        let kept = rows.iter().map(|row| (row.range, Ok(row.state)));
        let all = kept.chain(lost.iter().map(|lost| (lost.range, Err(lost.reason))));
        let mut found = Positions::new();
        for (range, is) in all {
            for position in range.from()..range.to() {
                assert_eq!(found.insert(position, is), None, "{position} is in two places");
            }
        }
        found
    }

    fn applied(mut rows: Vec<PooledRange<u8>>, change: &PoolChange<u8>) -> Vec<PooledRange<u8>> {
        rows.retain(|row| !change.removed.contains(&row.range.from()));
        rows.extend(change.added.iter().cloned());
        rows
    }

    fn pool(epoch: u64) -> Pool {
        Pool { epoch, server: None }
    }

    proptest! {
        #[test]
        fn each_position_gets_its_settled_state_and_a_second_call_changes_nothing(
            rows in rows(), pushed in range(), unused in range(), popped_to in prop::option::of(0..END),
            epoch in 1_u64..3, held_from in prop::option::of(0..END),
        ) {
            let settlement = PoolSettlement { epoch, pushed, unused, popped_to };
            let is_in = |range: Option<PositionRange>, at| range.is_some_and(|range| range.from() <= at && at < range.to());
            let expected: Positions = positions(&rows, &[]).into_iter().filter_map(|(at, is)| Some((at, match is {
                Ok(PooledState::Granted) if is_in(pushed, at) && epoch != 1 => Err(GapReason::PoolInvalidated),
                Ok(PooledState::Granted) if is_in(pushed, at) && popped_to.is_some_and(|to| at < to) => return None,
                Ok(PooledState::Granted) if is_in(pushed, at) => Ok(PooledState::Pushed),
                Ok(PooledState::Granted) if is_in(unused, at) => Err(GapReason::FillFenced),
                Ok(PooledState::Pushed) if epoch == 1 && popped_to.is_some_and(|to| at < to) => return None,
                Ok(PooledState::Popped) => return None,
                other => other,
            }))).collect();
            let before = PoolBefore { pool: pool(1), rows: rows.clone(), held_from };
            let RowBounds { from, to, below } = settlement.row_bounds();
            let is_needed = |row: &&PooledRange<u8>| {
                row.range.from() < to && row.range.to() > from
                    || row.range.from() < below
                    || row.state == PooledState::Popped
            };
            let needed = rows.iter().filter(is_needed).cloned().collect();
            let change = before.settle(&settlement);
            let of_needed = PoolBefore { pool: pool(1), rows: needed, held_from }.settle(&settlement);
            prop_assert_eq!(&of_needed, &change, "the other rows do not matter");
            let after = applied(rows.clone(), &change);
            let mut found = positions(&after, &change.lost);
            let popped: Vec<u64> =
                found.iter().filter(|(_, is)| **is == Ok(PooledState::Popped)).map(|(at, _)| *at).collect();
            found.retain(|at, _| !popped.contains(at));
            prop_assert_eq!(found, expected);
            let again = PoolBefore { pool: pool(1), rows: after, held_from }.settle(&settlement);
            prop_assert_eq!((again.removed, again.added, again.lost), (vec![], vec![], vec![]));
        }

        #[test]
        fn a_new_epoch_loses_pushed_positions_and_no_others(rows in rows()) {
            let server = ServerIdentity { run: "run".into(), replication: "replication".into() };
            let before = PoolBefore { pool: pool(1), rows: rows.clone(), held_from: None };
            prop_assert_eq!(before.clone().renew(RenewRequest { expected_epoch: 0, server: server.clone() }), None);
            let change = before.renew(RenewRequest { expected_epoch: 1, server: server.clone() }).unwrap();
            prop_assert_eq!(&change.pool, &Pool { epoch: 2, server: Some(server) });
            let mut expected = positions(&rows, &[]);
            for is in expected.values_mut().filter(|is| **is == Ok(PooledState::Pushed)) {
                *is = Err(GapReason::PoolInvalidated);
            }
            prop_assert_eq!(positions(&applied(rows, &change), &change.lost), expected);
        }
    }

    /// The store knows only the first position that a process holds, so popped positions after it must stay known.
    #[test]
    fn popped_positions_stay_known_while_a_process_holds_earlier_ones() {
        let range = |from, to| PositionRange::new(from, to).unwrap();
        let row = |from, to, state| PooledRange { range: range(from, to), state, holder: 0 };
        let (pushed, popped) = (PooledState::Pushed, PooledState::Popped);
        let rows = vec![row(2, 4, popped), row(10, 20, pushed), row(20, 22, popped)];
        let settled = |held_from| {
            let before = PoolBefore { pool: pool(1), rows: rows.clone(), held_from };
            before.settle(&PoolSettlement { epoch: 1, popped_to: Some(20), ..PoolSettlement::default() })
        };
        let change = settled(Some(5));
        assert_eq!((change.removed, change.added), (vec![2, 10, 20], vec![row(10, 22, popped)]));
        assert_eq!(settled(None).added, []);
    }
}
