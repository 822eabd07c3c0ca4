//! What becomes of calls that wait together for one scope: each is served as if it were alone, in the order in which
//! they came. Pure: knows no database. Must never give a position to two of them.

use bates_core::{
    Assign, AssignError, Assigned, Cursor, Grant, GrantError, Lease, Place, Promise, Purpose, StoreError,
    Surrendered, Tail, Want,
};

use super::aside::Aside;
use super::keys::Keys;

/// What somebody asked for.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Grant(Want),
    Surrender(Tail),
    Assign(Box<Assign>),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Grant(Result<Grant, GrantError>),
    Surrender(Result<Surrendered, StoreError>),
    Assign(Result<Assigned, AssignError>),
}

/// What is known of a scope before it is reckoned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    /// It has a cursor.
    Cursor(Cursor),
    /// It has none, and its series has so many others.
    New { scopes: u64 },
    /// Its series was never pinned.
    NoSeries,
}

/// What has to be written for one scope, and who is told what.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reckoned {
    /// In the order of the calls.
    pub(crate) outcomes: Vec<Outcome>,
    /// Where the cursor stands afterwards; `None` if it stays as it was.
    pub(crate) moved: Option<Cursor>,
    /// Ranges that go to the ledger; neighbours are joined.
    pub(crate) issued: Vec<Lease>,
    /// Ranges that this node holds from now on.
    pub(crate) leased: Vec<Lease>,
    /// Ranges that this node has for a pool, apart from what it holds.
    pub(crate) pooled: Vec<Lease>,
    /// Below this the node has handed out all that it was granted before.
    pub(crate) used_to: Option<u64>,
    /// Below this the node has handed out all that it was granted before, and is granted no more.
    pub(crate) spent_to: Option<u64>,
    /// Below this the node lets go of all that it was granted before. What it was granted since belongs to whoever asked
    /// for the scope meanwhile.
    pub(crate) lets_go: Option<u64>,
    /// Ranges that were held and are nobody's.
    pub(crate) lost: Vec<Lease>,
}

/// Reckons the calls of one scope, of which some positions were set aside. The keys are those of the whole batch.
pub(crate) fn reckon<'a>(
    (found, pinned): (Found, Option<Promise>),
    aside: &Aside,
    asks: impl IntoIterator<Item = &'a Ask>,
    keys: &mut Keys,
) -> Reckoned {
    let mut reckoned = Reckoned::default();
    let mut cursor = if let Found::Cursor(cursor) = found { Some(cursor) } else { None };
    for ask in asks {
        if let Some(outcome) = outdated(ask, pinned) {
            reckoned.outcomes.push(outcome);
            continue;
        }
        let outcome = match ask {
            Ask::Grant(want) => Outcome::Grant(reckoned.grant((found, aside), &mut cursor, want)),
            Ask::Surrender(tail) => Outcome::Surrender(Ok(reckoned.surrender(&mut cursor, tail))),
            Ask::Assign(assign) => {
                Outcome::Assign(reckoned.assign((found, aside), &mut cursor, keys, assign))
            }
        };
        reckoned.outcomes.push(outcome);
    }
    reckoned
}

/// The refusal of a call by a node that does not know yet what the series promises.
fn outdated(ask: &Ask, pinned: Option<Promise>) -> Option<Outcome> {
    let pinned = pinned?;
    let refused = |place: &Place, asked: Option<Promise>| {
        let series = place.series.as_str().into();
        asked.filter(|asked| *asked != pinned).map(|_| StoreError::PromiseChanged { series, pinned })
    };
    match ask {
        Ask::Grant(want) => refused(&want.place, want.promise).map(|error| Outcome::Grant(Err(error.into()))),
        Ask::Assign(assign) => refused(&assign.place, assign.promise)
            .map(|error| Outcome::Assign(Err(GrantError::from(error).into()))),
        Ask::Surrender(_) => None,
    }
}

impl Reckoned {
    fn grant(
        &mut self,
        (found, aside): (Found, &Aside),
        cursor: &mut Option<Cursor>,
        want: &Want,
    ) -> Result<Grant, GrantError> {
        let first = (&want.place, want.scopes_max, want.start);
        let Cursor { next, version } = stands(found, *cursor, first)?;
        let found = match want.purpose {
            Purpose::Lease => aside.span(next, want.at_most(next), want.end)?,
            _ => aside.run(next, want.count, want.end)?.map(|run| (run, vec![])),
        };
        let left = found.as_ref().map_or(0, |(lease, _)| lease.count());
        let fits = !want.purpose.is_all_or_none() || want.count == left;
        let Some((lease, between)) = found.filter(|_| fits) else {
            if want.purpose == Purpose::Lease {
                self.spent_to = Some(want.held_from.unwrap_or(next));
            }
            return Err(GrantError::Exhausted { left, elsewhere: false });
        };
        // Invariant: every grant has a version of its own, so that only the last one can be given back.
        let moved = Cursor { next: lease.to(), version: version + 1 };
        (*cursor, self.moved) = (Some(moved), Some(moved));
        match want.purpose {
            Purpose::Lease => {
                self.leased.push(lease);
                self.used_to = Some(want.held_from.unwrap_or(lease.from()));
            }
            Purpose::Issue => self.issue(lease),
            Purpose::Pool => self.pooled.push(lease),
            Purpose::HandOut => {}
        }
        Ok(Grant { lease, version: moved.version, aside: between })
    }

    /// A key that was used is answered whatever became of the scope since, and takes nothing.
    fn assign(
        &mut self,
        (found, aside): (Found, &Aside),
        cursor: &mut Option<Cursor>,
        keys: &mut Keys,
        assign: &Assign,
    ) -> Result<Assigned, AssignError> {
        if let Some(known) = keys.known(assign) {
            return known;
        }
        let first = (&assign.place, assign.scopes_max, assign.start);
        let Cursor { next, version } = stands(found, *cursor, first)?;
        let (position, number) = aside.first_accepted(assign, next)?;
        let moved = Cursor { next: position + 1, version: version + 1 };
        (*cursor, self.moved) = (Some(moved), Some(moved));
        if let Some(lease) = Lease::new(position, moved.next) {
            self.issue(lease);
        }
        let state = assign.content.state();
        let assigned = Assigned { event: assign.event, position, number, state, is_new: true };
        keys.take(assign, &assigned);
        Ok(assigned)
    }

    fn issue(&mut self, lease: Lease) {
        match self.issued.last_mut() {
            Some(last) if last.to() == lease.from() => {
                *last = Lease::new(last.from(), lease.to()).unwrap_or(*last);
            }
            _ => self.issued.push(lease),
        }
    }

    /// Invariant: the cursor goes back only if it stands where the holder left it *and* was not written since: it
    /// may have come back to the same place after another holder's give-back.
    fn surrender(&mut self, cursor: &mut Option<Cursor>, tail: &Tail) -> Surrendered {
        let expected = Cursor { next: tail.lease.to(), version: tail.version };
        self.lets_go = self.lets_go.max(Some(tail.lease.to()));
        self.lost.extend(&tail.lost);
        if *cursor != Some(expected) {
            self.lost.push(tail.lease);
            return Surrendered::Gap;
        }
        let moved = Cursor { next: tail.lease.from(), version: expected.version + 1 };
        (*cursor, self.moved) = (Some(moved), Some(moved));
        Surrendered::Returned
    }

    /// Whether there is anything to write.
    pub(crate) fn is_nothing(&self) -> bool {
        self.moved.is_none() && self.lets_go.is_none() && self.used_to.is_none()
    }

    /// Whether somebody was told that nothing is left.
    pub(crate) fn is_exhausted(&self) -> bool {
        let is_told = |outcome: &Outcome| {
            matches!(
                outcome,
                Outcome::Grant(Err(GrantError::Exhausted { .. }))
                    | Outcome::Assign(Err(AssignError::Grant(GrantError::Exhausted { .. })))
            )
        };
        self.outcomes.iter().any(is_told)
    }

    /// What the leases say of a scope of which nothing is left to grant: whether this node counts as a holder of what it
    /// has spent, and whether others may still hold some.
    pub(crate) fn learn_holders(&mut self, is_spent: bool, elsewhere: bool) {
        self.used_to = self.used_to.max(self.spent_to.filter(|_| is_spent));
        for outcome in &mut self.outcomes {
            if let Outcome::Grant(Err(GrantError::Exhausted { elsewhere: told, .. }))
            | Outcome::Assign(Err(AssignError::Grant(GrantError::Exhausted {
                elsewhere: told, ..
            }))) = outcome
            {
                *told = elsewhere;
            }
        }
    }
}

/// Where the cursor stands; one that is made now, where the scope begins.
fn stands(
    found: Found,
    cursor: Option<Cursor>,
    (place, scopes_max, start): (&Place, u64, u64),
) -> Result<Cursor, GrantError> {
    match (cursor, found) {
        (Some(cursor), _) => Ok(cursor),
        (None, Found::New { scopes }) if scopes >= scopes_max => Err(GrantError::TooManyScopes(scopes_max)),
        (None, Found::NoSeries) => Err(StoreError::UnknownSeries(place.series.as_str().into()).into()),
        (None, _) => Ok(Cursor { next: start, version: 0 }),
    }
}

#[cfg(test)]
mod tests;
