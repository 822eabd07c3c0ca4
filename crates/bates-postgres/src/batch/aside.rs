//! Positions whose numbers somebody else gave out, as far as a batch has to know them.

use std::convert::Infallible;

use bates_core::{Assign, AssignError, Lease, Place, StoreError, free_run, free_span};

use crate::error::Failed;
use crate::read;
use crate::session::Session;

/// Rows that are read first; then ten times as many, and so on.
const PAGE: usize = 1_000;

/// The most that are read together.
const PAGE_MAX: usize = 100_000;

/// So many positions from the cursor on that are free are known, or all that there are: more than documents take,
/// unless rules reject nearly everything.
pub(super) const FREE_MIN: u64 = 100_000;

/// The positions of a scope that were set aside, from where its cursor stands.
///
/// Invariant: all are known from where the cursor may stand within the batch, also after what a holder gives back.
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
    /// Reads them, under the lock of the cursor, from where it stands or may come to stand, until `free` positions
    /// between them are known.
    pub(crate) async fn read(session: &Session, place: &Place, from: u64, free: u64) -> Result<Self, Failed> {
        let mut aside = Self { positions: Vec::new(), known_to: from };
        let mut rows = PAGE;
        loop {
            let page = read::aside(session, place, aside.known_to, rows).await?;
            let is_last = page.len() < rows;
            aside.positions.extend(page);
            if is_last {
                return Ok(Self { known_to: u64::MAX, ..aside });
            }
            aside.known_to = aside.positions.last().map_or(from, |last| last + 1);
            if aside.known_to - from >= free + aside.positions.len() as u64 {
                return Ok(aside);
            }
            rows = (rows * 10).min(PAGE_MAX);
        }
    }

    /// The first positions from `next` on that are free.
    pub(crate) fn run(&self, next: u64, count: u64, end: u64) -> Result<Option<Lease>, StoreError> {
        let known = end.min(self.known_to);
        let mut rest = self.from(next);
        let Ok(run) = free_run(next, count, known, || Ok::<_, Infallible>(rest.next().copied()));
        if run.is_none() && known < end { Err(too_far()) } else { Ok(run) }
    }

    /// Positions from `next` on, of which at most `count` are free; and the others.
    pub(crate) fn span(
        &self,
        next: u64,
        count: u64,
        end: u64,
    ) -> Result<Option<(Lease, Vec<u64>)>, StoreError> {
        let known = end.min(self.known_to);
        let mut rest = self.from(next);
        let Ok(span) = free_span(next, count, known, || Ok::<_, Infallible>(rest.next().copied()));
        if span.is_none() && known < end { Err(too_far()) } else { Ok(span) }
    }

    fn from(&self, next: u64) -> std::slice::Iter<'_, u64> {
        self.positions[self.positions.partition_point(|position| *position < next)..].iter()
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
