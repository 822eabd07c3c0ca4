//! The decision for one scope: requests that wait together are served in their order, each as if it came alone.
//!
//! Invariant: no position is given to two requests.

use super::{
    AdoptedPositions, BatchState, Decision, Grant, GrantError, GrantPurpose, GrantRequest, Outcome,
    ReleaseOutcome, ReleaseRequest, Request, ScopeBefore, ScopeChange,
};
use crate::document::{AssignError, AssignRequest, Assignment, Search};
use crate::gap::GapReason;
use crate::operation::Operation;
use crate::range::{PositionRange, RangeSet};
use crate::scope::ScopeId;
use crate::series::Promise;
use crate::store::{Cursor, StoreError, StoreResult};
use bates_pattern::Position;

/// `batch` is the state of the whole batch: a key used here is known when later scopes are decided.
pub fn decide<'r>(
    before: &ScopeBefore,
    scope_id: &ScopeId,
    requests: impl IntoIterator<Item = &'r Request>,
    batch: &mut BatchState,
) -> Decision {
    let mut decider = Decider {
        scope_id,
        before,
        cursor: before.cursor,
        newly_adopted: None,
        change: ScopeChange { held_from: before.held_from, ..ScopeChange::default() },
    };
    let outcomes = requests.into_iter().map(|request| decider.decide(request, batch)).collect();
    Decision { outcomes, change: decider.change }
}

struct Decider<'b> {
    scope_id: &'b ScopeId,
    before: &'b ScopeBefore,
    cursor: Option<Cursor>,
    /// The adopted positions with those of this batch, if a request adopts any.
    newly_adopted: Option<AdoptedPositions>,
    change: ScopeChange,
}

impl Decider<'_> {
    fn decide(&mut self, request: &Request, batch: &mut BatchState) -> Outcome {
        match request {
            Request::Grant(request) => Outcome::Grant(self.grant(request)),
            Request::Release(release) => Outcome::Release(self.release(release)),
            Request::Assign(assign) => Outcome::Assign(self.assign(assign, batch)),
            Request::RaiseFloor(floor, operation) => {
                Outcome::RaiseFloor(self.raise_floor(*floor, operation.as_deref()))
            }
            Request::Adopt(positions, operation) => {
                Outcome::Adopt(self.adopt(positions, operation.as_deref()))
            }
            Request::GiveUp(unused) => {
                self.give_up(unused);
                Outcome::Change(Ok(()))
            }
            Request::WriteOff => Outcome::Change(self.write_off()),
            Request::Fence => Outcome::Change(self.fence().map(drop)),
        }
    }

    fn grant(&mut self, request: &GrantRequest) -> Result<Grant, GrantError> {
        self.check_promise(request.promise)?;
        let next = self.next(request.scopes_max, request.start)?;
        let free = match request.purpose {
            GrantPurpose::Hold => self.adopted().free_span(next, request.hold_count(next), request.end)?,
            _ => self.adopted().free_run(next, request.count, request.end)?.map(|run| (run, vec![])),
        };
        let left = free.as_ref().map_or(0, |(range, _)| range.count());
        let fits = !request.purpose.is_all_or_none() || request.count == left;
        let Some((range, adopted)) = free.filter(|_| fits) else {
            if request.purpose == GrantPurpose::Hold {
                self.change.used_to_if_exhausted = Some(request.held_from.unwrap_or(next));
                self.change.held_from = self.change.held_from.and(request.held_from);
            }
            return Err(GrantError::Exhausted { left, held_elsewhere: false });
        };
        let version = self.move_to(range.to()).version;
        match request.purpose {
            GrantPurpose::Hold => {
                self.change.held.push(range);
                self.change.used_to = request.held_from.or(Some(range.from()));
                self.change.held_from = self.change.used_to;
            }
            GrantPurpose::Issue => self.change.issue(range),
            GrantPurpose::Pool => self.change.pooled.push(range),
            GrantPurpose::HandOut => self.change.handed_out.push(range),
        }
        Ok(Grant { range, version, adopted })
    }

    /// Invariant: the cursor goes back only if it stands where the holder left it *and* was not written since: another
    /// release may have brought it back to the same position.
    fn release(&mut self, release: &ReleaseRequest) -> StoreResult<ReleaseOutcome> {
        if self.cursor.is_none() && self.before.series.is_none() {
            return Err(self.unknown_series());
        }
        let expected = Cursor { next: release.range.to(), version: release.version };
        self.change.released_to = self.change.released_to.max(Some(release.range.to()));
        // Ranges that were granted since belong to a later holder of the scope.
        self.change.held_from = self.change.held_from.filter(|from| *from >= release.range.to());
        self.change.lose(release.lost.iter().copied(), GapReason::LeaseLost);
        if self.cursor != Some(expected) {
            self.change.lose([release.range], GapReason::LeaseLost);
            return Ok(ReleaseOutcome::Gap);
        }
        self.move_to(release.range.from());
        Ok(ReleaseOutcome::Returned)
    }

    /// A request whose key was used before gets the same answer, even if the scope is exhausted now, and no position.
    fn assign(&mut self, of: &AssignRequest, batch: &mut BatchState) -> Result<Assignment, AssignError> {
        self.check_promise(of.promise)?;
        if let Some(known) = batch.answer(of) {
            return known;
        }
        if of.only_repeats {
            return Err(AssignError::KeyUnused);
        }
        let next = self.next(of.scopes_max, of.start)?;
        let (position, number) = match self.adopted().search(of, next, &mut batch.search_left)? {
            Search::Accepted(position, number) => (position, number),
            Search::RejectedTo(to) => {
                // These positions are rejected for all callers, so the next attempt need not look at them again.
                self.move_to(to);
                return Err(AssignError::Rejected { positions: to - next });
            }
        };
        let range = PositionRange::one(position);
        self.move_to(range.to());
        self.change.issue(range);
        let (document_id, state) = (of.document_id, of.content.state());
        let assignment = Assignment { document_id, position, number, state, is_new: true };
        batch.note_assignment(of, &assignment);
        Ok(assignment)
    }

    /// Also an operation that leaves a higher cursor is recorded: an operator asked for it.
    fn raise_floor(&mut self, floor: u64, operation: Option<&Operation>) -> StoreResult<Cursor> {
        self.change.resets_pool_server = true;
        let next = self.next_for_operator()?;
        self.record(operation, &next.to_string(), &next.max(floor).to_string());
        if let Some(cursor) = self.cursor.filter(|cursor| cursor.next >= floor) {
            return Ok(cursor);
        }
        // A new scope does not begin below the floor of its series.
        let floor = floor.max(next);
        self.change.lose(PositionRange::new(next, floor), GapReason::FloorRaised);
        Ok(self.move_to(floor))
    }

    /// Invariant: the version rises, so a range that was granted before and may hold adopted positions is not released.
    fn adopt(&mut self, positions: &[Position], operation: Option<&Operation>) -> StoreResult<u64> {
        self.change.resets_pool_server = true;
        let next = self.fence()?.next;
        self.record(operation, "", &describe_positions(positions));
        self.change.adopted.extend(positions);
        let adopted = self.newly_adopted.get_or_insert_with(|| self.before.adopted.clone());
        adopted.insert(positions);
        Ok(positions.iter().filter(|position| position.value() < next).count() as u64)
    }

    fn record(&mut self, operation: Option<&Operation>, before: &str, after: &str) {
        let before = Some(before).filter(|before| !before.is_empty());
        let of_scope = |operation: &Operation| {
            operation.clone().on(self.scope_id.scope.as_str()).between(before, Some(after))
        };
        self.change.operations.extend(operation.map(of_scope));
    }

    /// Invariant: only positions that the holder holds are lost: a restored store may have granted the others again.
    fn give_up(&mut self, unused: &[PositionRange]) {
        let held = &self.before.held;
        let kept = held.difference(&RangeSet::of(unused.iter().copied()));
        self.change.given_up = held.difference(&kept);
        self.change.lose(self.change.given_up.clone().iter(), GapReason::LeaseLost);
    }

    /// A scope without a cursor has no range that could be released.
    fn write_off(&mut self) -> StoreResult<()> {
        if self.cursor.is_some() {
            self.fence()?;
        }
        self.change.given_up = self.before.held.clone();
        self.change.lose(self.before.held.iter(), GapReason::CrashSkip);
        Ok(())
    }

    /// Raises the version of the cursor, which a release compares.
    fn fence(&mut self) -> StoreResult<Cursor> {
        let next = self.next_for_operator()?;
        Ok(self.move_to(next))
    }

    fn adopted(&self) -> &AdoptedPositions {
        self.newly_adopted.as_ref().unwrap_or(&self.before.adopted)
    }

    /// Refuses a node that does not know the current promise yet.
    fn check_promise(&self, asked: Option<Promise>) -> Result<(), GrantError> {
        match (asked, self.before.promise) {
            (Some(asked), Some(pinned)) if asked != pinned => {
                let series = self.scope_id.series.as_str().into();
                Err(StoreError::PromiseChanged { series, pinned }.into())
            }
            _ => Ok(()),
        }
    }

    /// The first position that is not granted; a new scope begins at `start`.
    fn next(&self, scopes_max: u64, start: u64) -> Result<u64, GrantError> {
        match (self.cursor, self.before.series) {
            (None, Some(series)) if series.scopes >= scopes_max => Err(GrantError::TooManyScopes(scopes_max)),
            (None, Some(series)) => Ok(start.max(series.floor)),
            _ => Ok(self.next_for_operator()?),
        }
    }

    /// As `next`, for operators: without a limit of scopes, and a new scope begins at the pinned start of the series.
    fn next_for_operator(&self) -> StoreResult<u64> {
        match (self.cursor, self.before.series) {
            (Some(cursor), _) => Ok(cursor.next),
            (None, Some(series)) => Ok(series.start.max(series.floor)),
            (None, None) => Err(self.unknown_series()),
        }
    }

    fn unknown_series(&self) -> StoreError {
        StoreError::UnknownSeries(self.scope_id.series.as_str().into())
    }

    /// Invariant: every move of a cursor has a version of its own, so only the range of the last one can be released.
    fn move_to(&mut self, next: u64) -> Cursor {
        let moved = Cursor { next, version: self.cursor.map_or(0, |cursor| cursor.version) + 1 };
        if self.change.cursor.is_none() {
            self.change.is_new = self.cursor.is_none();
            self.change.lose(self.before.crashed.iter(), GapReason::CrashSkip);
            if let (None, Some(series)) = (self.cursor, self.before.series) {
                self.change.lose(PositionRange::new(series.start, series.floor), GapReason::FloorRaised);
            }
        }
        (self.cursor, self.change.cursor) = (Some(moved), Some(moved));
        moved
    }
}

fn describe_positions(positions: &[Position]) -> String {
    let values = || positions.iter().map(|position| position.value());
    let (first, last) = (values().min().unwrap_or_default(), values().max().unwrap_or_default());
    format!("{} positions from {first} to {last}", positions.len())
}

#[cfg(test)]
mod tests;
