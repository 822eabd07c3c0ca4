//! Adopted positions: another system has issued their numbers, so every grant skips them.

use bates_pattern::Position;

use super::Request;
use crate::document::{AssignError, AssignRequest, Search};
use crate::range::PositionRange;
use crate::store::{Cursor, StoreError, StoreResult};

/// Rows of the first page; each later page has ten times as many, up to `PAGE_MAX`.
const PAGE_MIN: usize = 1_000;
const PAGE_MAX: usize = 100_000;

/// Free positions to know ahead of documents: more than a batch needs, unless rules reject nearly everything.
const FREE_MIN: u64 = 100_000;

/// Max adopted positions inside one held range: each is kept in memory.
const SKIPPED_MAX: usize = 16_384;

/// Invariant: complete from the lowest position where the cursor may stand during the batch, also after a release.
#[derive(Clone, Debug)]
pub struct AdoptedPositions {
    /// Ascending.
    positions: Vec<u64>,
    /// Every adopted position below this one is known.
    known_to: u64,
    /// The lowest position where the cursor may stand during the batch.
    from: u64,
    free_needed: u64,
    page_rows: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdoptedPage {
    pub from: u64,
    pub limit: usize,
}

impl Default for AdoptedPositions {
    fn default() -> Self {
        Self { positions: Vec::new(), known_to: u64::MAX, from: 0, free_needed: 0, page_rows: PAGE_MIN }
    }
}

impl AdoptedPositions {
    /// For these requests, with no page read yet. `adopted_to` is the first position past all adopted ones.
    pub fn for_requests<'r>(
        cursor: Cursor,
        adopted_to: u64,
        requests: impl IntoIterator<Item = &'r Request>,
    ) -> Self {
        let (mut from, mut free) = (cursor.next, 0_u64);
        for request in requests {
            match request {
                Request::Grant(request) => free = free.saturating_add(request.count),
                // Whether the cursor goes back is not known yet.
                Request::Release(release) => from = from.min(release.range.from()),
                Request::Assign(_) => free = free.max(FREE_MIN),
                Request::RaiseFloor(..)
                | Request::Adopt(..)
                | Request::GiveUp(_)
                | Request::WriteOff
                | Request::Fence => {}
            }
        }
        if adopted_to <= from {
            return Self::default();
        }
        // More requests may join the batch before it is decided.
        let free_needed = free.saturating_mul(4).max(FREE_MIN / 10).saturating_add(cursor.next - from);
        Self { known_to: from, from, free_needed, ..Self::default() }
    }

    /// The page to read next; `None` once enough is known.
    pub fn missing_page(&self) -> Option<AdoptedPage> {
        let is_enough = || self.known_to - self.from >= self.free_needed + self.positions.len() as u64;
        let is_missing = self.known_to != u64::MAX && (self.positions.is_empty() || !is_enough());
        is_missing.then_some(AdoptedPage { from: self.known_to, limit: self.page_rows })
    }

    /// Adds the page that [`AdoptedPositions::missing_page`] asked for.
    pub fn add_page(&mut self, page: Vec<Position>) {
        let is_last = page.len() < self.page_rows;
        self.positions.extend(page.into_iter().map(Position::value));
        self.known_to = match self.positions.last() {
            Some(last) if !is_last => last + 1,
            _ => u64::MAX,
        };
        self.page_rows = (self.page_rows * 10).min(PAGE_MAX);
    }

    pub(super) fn insert(&mut self, positions: &[Position]) {
        self.positions.extend(positions.iter().map(|position| position.value()));
        self.positions.sort_unstable();
        self.positions.dedup();
    }

    /// The first run of free positions from `next` on: at most `count`, below `end`. `None` if none is free.
    pub(super) fn free_run(&self, mut next: u64, count: u64, end: u64) -> StoreResult<Option<PositionRange>> {
        let known_end = end.min(self.known_to);
        let mut ahead = self.at_or_after(next).iter().copied().peekable();
        while ahead.next_if_eq(&next).is_some() {
            next += 1;
        }
        let to = next.saturating_add(count).min(known_end).min(ahead.next().unwrap_or(u64::MAX));
        known(PositionRange::new(next, to), known_end, end)
    }

    /// A range from `next` on, below `end`, with at most `count` free positions, the last one free; and those not free.
    pub(super) fn free_span(
        &self,
        next: u64,
        count: u64,
        end: u64,
    ) -> StoreResult<Option<(PositionRange, Vec<Position>)>> {
        let known_end = end.min(self.known_to);
        let (mut at, mut to, mut free, mut between) = (next, next, 0, Vec::new());
        let mut adopted = self.at_or_after(next).iter().copied();
        loop {
            let ahead = adopted.next().unwrap_or(known_end).min(known_end);
            let run = ahead.saturating_sub(at).min(count - free);
            if run > 0 {
                (free, to) = (free + run, at + run);
            }
            if free == count || ahead >= known_end || free > 0 && between.len() >= SKIPPED_MAX {
                between.retain(|position: &Position| position.value() < to);
                let span = PositionRange::new(next, to).filter(|_| free > 0).map(|range| (range, between));
                return known(span, known_end, end);
            }
            between.extend(Position::new(ahead));
            at = ahead + 1;
        }
    }

    /// Searches the first free position from `next` on that the rules accept. Takes what it passes from `search_left`.
    pub(super) fn search(
        &self,
        assign: &AssignRequest,
        mut next: u64,
        search_left: &mut u64,
    ) -> Result<Search, AssignError> {
        loop {
            let found = assign.search(next, *search_left)?;
            let at = match &found {
                Search::Accepted(position, _) => position.value(),
                Search::RejectedTo(to) => *to,
            };
            *search_left = search_left.saturating_sub(at - next);
            match found {
                Search::Accepted(position, _) if position.value() >= self.known_to => {
                    return Err(too_many().into());
                }
                Search::Accepted(position, _) if self.positions.binary_search(&at).is_ok() => {
                    next = position.value() + 1;
                }
                found => return Ok(found),
            }
        }
    }

    fn at_or_after(&self, next: u64) -> &[u64] {
        &self.positions[self.positions.partition_point(|position| *position < next)..]
    }
}

/// An error if none is known to be free, and adopted positions before `end` were not all read. A later batch reads on.
fn known<T>(free: Option<T>, known_end: u64, end: u64) -> StoreResult<Option<T>> {
    if free.is_none() && known_end < end { Err(too_many()) } else { Ok(free) }
}

fn too_many() -> StoreError {
    StoreError::Unavailable("too many adopted positions lie ahead for one batch: try again".into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn adopted(positions: &BTreeSet<u64>) -> AdoptedPositions {
        AdoptedPositions { positions: positions.iter().copied().collect(), ..AdoptedPositions::default() }
    }

    fn free(adopted: &BTreeSet<u64>) -> Vec<u64> {
        (3..40).filter(|position| !adopted.contains(position)).collect()
    }

    proptest! {
        #[test]
        fn runs_cover_each_free_position_once(all in prop::collection::btree_set(0_u64..40, 0..30), count in 1_u64..9) {
            let (mut next, mut seen) = (3, Vec::new());
            while let Some(run) = adopted(&all).free_run(next, count, 40).unwrap() {
                prop_assert!(run.count() <= count);
                seen.extend(run.from()..run.to());
                next = run.to();
            }
            prop_assert_eq!(seen, free(&all));
        }

        #[test]
        fn spans_cover_each_free_position_once_with_the_requested_count(
            all in prop::collection::btree_set(0_u64..40, 0..30),
            count in 1_u64..9,
        ) {
            let (mut next, mut seen, mut last) = (3, Vec::new(), count);
            while let Some((range, between)) = adopted(&all).free_span(next, count, 40).unwrap() {
                prop_assert_eq!(range.from(), next);
                prop_assert_eq!(last, count, "only the last one is shorter");
                let between: BTreeSet<u64> = between.iter().map(|position| position.value()).collect();
                prop_assert!(between.is_subset(&all));
                let within: Vec<u64> = (range.from()..range.to()).filter(|at| !between.contains(at)).collect();
                prop_assert_eq!(within.last(), Some(&(range.to() - 1)));
                last = within.len() as u64;
                prop_assert!(last <= count);
                seen.extend(within);
                next = range.to();
            }
            prop_assert_eq!(seen, free(&all));
        }
    }

    /// A million adopted positions ahead of the cursor, with every tenth one free.
    #[test]
    fn pages_are_read_until_enough_free_positions_are_known() {
        let all: Vec<u64> = (0..1_000_000).filter(|position| position % 10 != 0).collect();
        let cursor = Cursor { next: 500, version: 1 };
        let mut adopted = AdoptedPositions::for_requests(cursor, 1_000_000, []);
        let mut rows = 0;
        while let Some(AdoptedPage { from, limit }) = adopted.missing_page() {
            let first = all.partition_point(|position| *position < from);
            let page: Vec<u64> = all[first..].iter().take(limit).copied().collect();
            rows += page.len();
            adopted.add_page(page.into_iter().filter_map(Position::new).collect());
        }
        // 10,000 free positions need 90,000 adopted ones, in pages of 1,000, 10,000 and 100,000.
        assert_eq!(rows, 111_000);
        assert_eq!(adopted.free_run(500, 5, 1_000_000), Ok(PositionRange::new(500, 501)));
        assert!(adopted.free_run(999_999, 1, 2_000_000).is_err(), "the end is not known");
        let passed = AdoptedPositions::for_requests(cursor, 500, []);
        assert!(passed.missing_page().is_none(), "the cursor has passed all of them");
    }
}
