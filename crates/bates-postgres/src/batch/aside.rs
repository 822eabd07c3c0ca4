//! Positions whose numbers somebody else gave out, as far as a batch has to know them.

use std::convert::Infallible;

use bates_core::{Assign, AssignError, Lease, Place, StoreError, free_run};

use crate::error::Failed;
use crate::read;
use crate::session::Session;

/// Rows that are read together.
const PAGE: usize = 10_000;

/// So many positions from the cursor on that are free are known, or all that there are: more than the calls of a
/// batch take, unless rules reject nearly everything.
const FREE_MIN: u64 = 100_000;

/// The positions of a scope that were set aside, from where its cursor stands.
///
/// Invariant: what a holder gives back holds none of them, because no grant did; so a cursor that goes back within a
/// batch needs no others.
#[derive(Debug)]
pub(crate) struct Aside {
    /// Ascending.
    positions: Vec<u64>,
    /// Below this, all are known.
    known_to: u64,
}

impl Default for Aside {
    /// There are none.
    fn default() -> Self {
        Self { positions: Vec::new(), known_to: u64::MAX }
    }
}

impl Aside {
    /// Reads them, under the lock of the cursor, which stands at `next`.
    pub(crate) async fn read(session: &Session, place: &Place, next: u64) -> Result<Self, Failed> {
        let mut aside = Self { positions: Vec::new(), known_to: next };
        loop {
            let page = read::aside(session, place, aside.known_to, PAGE).await?;
            let is_last = page.len() < PAGE;
            aside.positions.extend(page);
            if is_last {
                return Ok(Self { known_to: u64::MAX, ..aside });
            }
            aside.known_to = aside.positions.last().map_or(next, |last| last + 1);
            if aside.known_to - next >= FREE_MIN + aside.positions.len() as u64 {
                return Ok(aside);
            }
        }
    }

    /// The first positions from `next` on that are free.
    pub(crate) fn run(&self, next: u64, count: u64, end: u64) -> Result<Option<Lease>, StoreError> {
        let known = end.min(self.known_to);
        let mut rest = self.positions[self.positions.partition_point(|position| *position < next)..].iter();
        let Ok(run) = free_run(next, count, known, || Ok::<_, Infallible>(rest.next().copied()));
        if run.is_none() && known < end { Err(too_far()) } else { Ok(run) }
    }

    /// The first position from `next` on that is free and accepted by the rules, and its number.
    pub(crate) fn first_accepted(
        &self,
        assign: &Assign,
        mut next: u64,
    ) -> Result<(u64, Box<str>), AssignError> {
        loop {
            let (position, number) = assign.first_accepted(next)?;
            if position >= self.known_to {
                return Err(too_far().into());
            }
            if self.positions.binary_search(&position).is_err() {
                return Ok((position, number));
            }
            next = position + 1;
        }
    }
}

/// Whoever asks again finds the cursor further on.
fn too_far() -> StoreError {
    StoreError::Unavailable("too many numbers of an earlier system lie ahead for one batch".into())
}
