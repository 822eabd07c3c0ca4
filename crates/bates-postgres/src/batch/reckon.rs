//! What becomes of calls that wait together for one scope: each is served as if it were alone, in the order in which
//! they came. Pure: knows no database. Must never give a position to two of them.

use bates_core::{Cursor, Grant, GrantError, Lease, Purpose, StoreError, Surrendered, Tail, Want};

/// What somebody asked for.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Grant(Want),
    Surrender(Tail),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Grant(Result<Grant, GrantError>),
    Surrender(Result<Surrendered, StoreError>),
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
    /// From where on the node holds nothing any more.
    pub(crate) returned: Vec<u64>,
}

/// Reckons the calls of one scope.
pub(crate) fn reckon<'a>(found: Found, asks: impl IntoIterator<Item = &'a Ask>) -> Reckoned {
    let mut reckoned = Reckoned::default();
    let mut cursor = if let Found::Cursor(cursor) = found { Some(cursor) } else { None };
    for ask in asks {
        let outcome = match ask {
            Ask::Grant(want) => Outcome::Grant(reckoned.grant(found, &mut cursor, want)),
            Ask::Surrender(tail) => Outcome::Surrender(Ok(reckoned.surrender(&mut cursor, tail))),
        };
        reckoned.outcomes.push(outcome);
    }
    reckoned
}

impl Reckoned {
    fn grant(&mut self, found: Found, cursor: &mut Option<Cursor>, want: &Want) -> Result<Grant, GrantError> {
        let Cursor { next, version } = match (*cursor, found) {
            (Some(cursor), _) => cursor,
            (None, Found::New { scopes }) if scopes >= want.scopes_max => {
                return Err(GrantError::TooManyScopes(want.scopes_max));
            }
            (None, Found::NoSeries) => {
                return Err(StoreError::UnknownSeries(want.place.series.as_str().into()).into());
            }
            (None, _) => Cursor { next: want.start, version: 0 },
        };
        let left = want.end.saturating_sub(next);
        let fits = !want.purpose.is_all_or_none() || want.count <= left;
        let lease = Lease::new(next, next + want.count.min(left)).filter(|_| fits);
        let lease = lease.ok_or(GrantError::Exhausted { left })?;
        // Invariant: every grant has a version of its own, so that only the last one can be given back.
        let moved = Cursor { next: lease.to(), version: version + 1 };
        (*cursor, self.moved) = (Some(moved), Some(moved));
        match want.purpose {
            Purpose::Lease => self.leased.push(lease),
            Purpose::Issue => self.issue(lease),
            Purpose::HandOut => {}
        }
        Ok(Grant { lease, version: moved.version })
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
        if *cursor != Some(expected) {
            return Surrendered::Gap;
        }
        let moved = Cursor { next: tail.lease.from(), version: expected.version + 1 };
        (*cursor, self.moved) = (Some(moved), Some(moved));
        self.returned.push(tail.lease.from());
        Surrendered::Returned
    }
}

#[cfg(test)]
mod tests {
    use bates_core::{Place, ScopeKey};

    use super::*;

    fn place() -> Place {
        Place { series: "invoice".parse().unwrap(), scope: ScopeKey::new([], None).unwrap() }
    }

    fn ask(count: u64, purpose: Purpose) -> Ask {
        Ask::Grant(Want {
            place: place(),
            count,
            start: 1,
            end: 101,
            scopes_max: 2,
            purpose,
            held_from: None,
        })
    }

    fn lease(from: u64, to: u64) -> Lease {
        Lease::new(from, to).unwrap()
    }

    #[test]
    fn calls_that_wait_together_are_served_one_behind_the_other() {
        let asks = [
            ask(3, Purpose::Issue),
            ask(2, Purpose::Issue),
            ask(5, Purpose::HandOut),
            ask(32, Purpose::Lease),
        ];
        let reckoned = reckon(Found::New { scopes: 0 }, &asks);
        let granted = |from, to, version| Outcome::Grant(Ok(Grant { lease: lease(from, to), version }));
        let expected = [granted(1, 4, 1), granted(4, 6, 2), granted(6, 11, 3), granted(11, 43, 4)];
        assert_eq!(reckoned.outcomes, expected);
        assert_eq!(reckoned.moved, Some(Cursor { next: 43, version: 4 }));
        assert_eq!((reckoned.issued, reckoned.leased), (vec![lease(1, 6)], vec![lease(11, 43)]));
    }

    #[test]
    fn who_does_not_fit_is_refused_and_who_comes_behind_still_served() {
        let found = Found::Cursor(Cursor { next: 95, version: 7 });
        let asks =
            [ask(7, Purpose::Issue), ask(4, Purpose::Issue), ask(9, Purpose::Lease), ask(1, Purpose::Lease)];
        let reckoned = reckon(found, &asks);
        let refused = |left| Outcome::Grant(Err(GrantError::Exhausted { left }));
        assert_eq!((&reckoned.outcomes[0], &reckoned.outcomes[3]), (&refused(6), &refused(0)));
        assert_eq!((reckoned.issued, reckoned.leased), (vec![lease(95, 99)], vec![lease(99, 101)]));
        assert_eq!(reckoned.moved, Some(Cursor { next: 101, version: 9 }), "a refusal writes nothing");
    }

    #[test]
    fn a_scope_too_many_and_a_series_never_pinned_write_nothing() {
        let full = reckon(Found::New { scopes: 2 }, &[ask(1, Purpose::Lease)]);
        assert_eq!(full.outcomes, [Outcome::Grant(Err(GrantError::TooManyScopes(2)))]);
        let unknown = reckon(Found::NoSeries, &[ask(1, Purpose::Lease)]);
        assert!(matches!(unknown.outcomes[0], Outcome::Grant(Err(GrantError::Store(_)))));
        assert_eq!((full.moved, unknown.moved), (None, None));
    }

    #[test]
    fn a_tail_goes_back_only_where_its_holder_left_the_cursor() {
        let tail = |from, to, version| {
            Ask::Surrender(Tail { place: place(), lease: lease(from, to), version, lost: vec![] })
        };
        let found = Found::Cursor(Cursor { next: 33, version: 1 });
        let reckoned = reckon(found, &[tail(10, 33, 1), tail(10, 33, 1), ask(5, Purpose::Lease)]);
        let surrendered = |outcome| Outcome::Surrender(Ok(outcome));
        assert_eq!(reckoned.outcomes[0], surrendered(Surrendered::Returned));
        assert_eq!(reckoned.outcomes[1], surrendered(Surrendered::Gap), "not twice");
        assert_eq!(reckoned.moved, Some(Cursor { next: 15, version: 3 }), "what came back is granted again");
        assert_eq!((reckoned.returned, reckoned.leased), (vec![10], vec![lease(10, 15)]));
    }
}
