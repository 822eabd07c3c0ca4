//! The decision for one scope: requests that wait together are served in their order, each as if it came alone.
//!
//! Invariant: no position is given to two requests.

use super::{
    AdoptedPositions, Decision, Grant, GrantError, Keys, Outcome, Purpose, Request, ScopeBefore, ScopeChange,
    Surrendered, Tail, Want,
};
use crate::document::{Assign, AssignError, Assigned};
use crate::gap::Reason;
use crate::range::{Lease, Ranges};
use crate::scope::Place;
use crate::series::Promise;
use crate::store::{Cursor, StoreError};
use bates_pattern::Position;

/// `keys` are those of the whole batch: a key that a request uses here is known to the scopes that are decided later.
pub fn decide<'r>(
    before: &ScopeBefore,
    place: &Place,
    requests: impl IntoIterator<Item = &'r Request>,
    keys: &mut Keys,
) -> Decision {
    let mut scope = Scope {
        place,
        before,
        cursor: before.cursor,
        newly_adopted: None,
        change: ScopeChange { held_from: before.held_from, ..ScopeChange::default() },
    };
    let outcomes = requests.into_iter().map(|request| scope.decide(request, keys)).collect();
    Decision { outcomes, change: scope.change }
}

struct Scope<'b> {
    place: &'b Place,
    before: &'b ScopeBefore,
    cursor: Option<Cursor>,
    /// The adopted positions with those of this batch, if a request adopts any.
    newly_adopted: Option<AdoptedPositions>,
    change: ScopeChange,
}

impl Scope<'_> {
    fn decide(&mut self, request: &Request, keys: &mut Keys) -> Outcome {
        match request {
            Request::Grant(want) => Outcome::Grant(self.grant(want)),
            Request::Release(tail) => Outcome::Release(self.release(tail)),
            Request::Assign(assign) => Outcome::Assign(self.assign(assign, keys)),
            Request::RaiseFloor(floor) => Outcome::RaiseFloor(self.raise_floor(*floor)),
            Request::Adopt(positions) => Outcome::Adopt(self.adopt(positions)),
            Request::GiveUp(unused) => {
                self.give_up(unused);
                Outcome::Change(Ok(()))
            }
            Request::WriteOff => Outcome::Change(self.write_off()),
            Request::Fence => Outcome::Change(self.fence().map(drop)),
        }
    }

    fn grant(&mut self, want: &Want) -> Result<Grant, GrantError> {
        self.check_promise(want.promise)?;
        let next = self.next(want.scopes_max, want.start)?;
        let free = match want.purpose {
            Purpose::Lease => self.adopted().free_span(next, want.lease_count(next), want.end)?,
            _ => self.adopted().free_run(next, want.count, want.end)?.map(|run| (run, vec![])),
        };
        let left = free.as_ref().map_or(0, |(range, _)| range.count());
        let fits = !want.purpose.is_all_or_none() || want.count == left;
        let Some((range, adopted)) = free.filter(|_| fits) else {
            if want.purpose == Purpose::Lease {
                self.change.spent_to = Some(want.held_from.unwrap_or(next));
                self.change.held_from = self.change.held_from.and(want.held_from);
            }
            return Err(GrantError::Exhausted { left, elsewhere: false });
        };
        let version = self.move_to(range.to()).version;
        match want.purpose {
            Purpose::Lease => {
                let used_to = want.held_from.unwrap_or(range.from());
                self.change.leased.push(range);
                self.change.used_to = Some(used_to);
                self.change.held_from = Some(used_to);
            }
            Purpose::Issue => self.change.issue(range),
            Purpose::Pool => self.change.pooled.push(range),
            Purpose::HandOut => self.change.handed_out.push(range),
        }
        Ok(Grant { lease: range, version, aside: adopted })
    }

    /// Invariant: the cursor goes back only if it stands where the holder left it *and* was not written since: another
    /// release may have brought it back to the same place.
    fn release(&mut self, tail: &Tail) -> Result<Surrendered, StoreError> {
        if self.cursor.is_none() && self.before.series.is_none() {
            return Err(self.unknown_series());
        }
        let expected = Cursor { next: tail.lease.to(), version: tail.version };
        self.change.released_to = self.change.released_to.max(Some(tail.lease.to()));
        // Ranges that were granted since belong to a later holder of the scope.
        self.change.held_from = self.change.held_from.filter(|from| *from >= tail.lease.to());
        self.change.lose(tail.lost.iter().copied(), Reason::LeaseLost);
        if self.cursor != Some(expected) {
            self.change.lose([tail.lease], Reason::LeaseLost);
            return Ok(Surrendered::Gap);
        }
        self.move_to(tail.lease.from());
        Ok(Surrendered::Returned)
    }

    /// A request whose key was used before gets the same answer, even if the scope is exhausted now, and no position.
    fn assign(&mut self, assign: &Assign, keys: &mut Keys) -> Result<Assigned, AssignError> {
        self.check_promise(assign.promise)?;
        if let Some(known) = keys.answer(assign) {
            return known;
        }
        let next = self.next(assign.scopes_max, assign.start)?;
        let (position, number) = self.adopted().first_accepted(assign, next)?;
        let range = Lease::one(position);
        self.move_to(range.to());
        self.change.issue(range);
        let state = assign.content.state();
        let assigned = Assigned { event: assign.event, position, number, state, is_new: true };
        keys.put(assign, &assigned);
        Ok(assigned)
    }

    fn raise_floor(&mut self, floor: u64) -> Result<Cursor, StoreError> {
        self.change.forgets_pool_server = true;
        let next = self.next_of_pinned()?;
        if let Some(cursor) = self.cursor.filter(|cursor| cursor.next >= floor) {
            return Ok(cursor);
        }
        self.change.lose(Lease::new(next, floor), Reason::FloorRaised);
        Ok(self.move_to(floor))
    }

    /// Invariant: the version rises, so a range that was granted before and may hold adopted positions is not released.
    fn adopt(&mut self, positions: &[Position]) -> Result<u64, StoreError> {
        self.change.forgets_pool_server = true;
        let next = self.fence()?.next;
        self.change.adopted.extend(positions);
        let adopted = self.newly_adopted.get_or_insert_with(|| self.before.adopted.clone());
        adopted.insert(positions);
        Ok(positions.iter().filter(|position| position.value() < next).count() as u64)
    }

    /// Invariant: only positions that the holder holds are lost. In a store that was restored from a backup, another
    /// holder may have been granted the others.
    fn give_up(&mut self, unused: &[Lease]) {
        let held = &self.before.held;
        let kept = held.without(&Ranges::of(unused.iter().copied()));
        self.change.given_up = held.without(&kept);
        self.change.lose(self.change.given_up.clone().iter(), Reason::LeaseLost);
    }

    /// A scope without a cursor has no range that could be released.
    fn write_off(&mut self) -> Result<(), StoreError> {
        if self.cursor.is_some() {
            self.fence()?;
        }
        self.change.given_up = self.before.held.clone();
        self.change.lose(self.before.held.iter(), Reason::CrashSkip);
        Ok(())
    }

    /// Raises the version of the cursor, which a release compares.
    fn fence(&mut self) -> Result<Cursor, StoreError> {
        let next = self.next_of_pinned()?;
        Ok(self.move_to(next))
    }

    fn adopted(&self) -> &AdoptedPositions {
        self.newly_adopted.as_ref().unwrap_or(&self.before.adopted)
    }

    /// Refuses a node that does not know yet what the series promises.
    fn check_promise(&self, asked: Option<Promise>) -> Result<(), GrantError> {
        match (asked, self.before.promise) {
            (Some(asked), Some(pinned)) if asked != pinned => {
                let series = self.place.series.as_str().into();
                Err(StoreError::PromiseChanged { series, pinned }.into())
            }
            _ => Ok(()),
        }
    }

    /// The first position that is not granted; a new scope begins at `start`.
    fn next(&self, scopes_max: u64, start: u64) -> Result<u64, GrantError> {
        match (self.cursor, self.before.series) {
            (None, Some(series)) if series.scopes >= scopes_max => Err(GrantError::TooManyScopes(scopes_max)),
            (None, Some(_)) => Ok(start),
            _ => Ok(self.next_of_pinned()?),
        }
    }

    /// As `next`, for operators: no limit of scopes, and a new scope begins where the series was pinned to begin.
    fn next_of_pinned(&self) -> Result<u64, StoreError> {
        match (self.cursor, self.before.series) {
            (Some(cursor), _) => Ok(cursor.next),
            (None, Some(series)) => Ok(series.start),
            (None, None) => Err(self.unknown_series()),
        }
    }

    fn unknown_series(&self) -> StoreError {
        StoreError::UnknownSeries(self.place.series.as_str().into())
    }

    /// Invariant: every move of a cursor has a version of its own, so only the range of the last one can be released.
    fn move_to(&mut self, next: u64) -> Cursor {
        let moved = Cursor { next, version: self.cursor.map_or(0, |cursor| cursor.version) + 1 };
        if self.change.cursor.is_none() {
            self.change.is_new = self.cursor.is_none();
            self.change.lose(self.before.crashed.iter(), Reason::CrashSkip);
        }
        (self.cursor, self.change.cursor) = (Some(moved), Some(moved));
        moved
    }
}

#[cfg(test)]
mod tests;
