//! Moving everything from one store to another, so that numbering goes on there and nowhere else.
//!
//! What could go wrong, and why it does not: both serve. The old store is marked as left before anything is
//! copied, and the new one as arriving until everything is; a store with a mark is not served. A move that was
//! interrupted is begun again: what is copied twice is the same.

mod page;

use std::future::Future;

use uuid::Uuid;

use crate::audit::RecordFilter;
use crate::gap::GapFilter;
use crate::name::SeriesName;
use crate::place::ScopeKey;
use crate::pool::Pools;
use crate::store::{Definition, StoreError};

pub use page::{Adopted, Kept, Page, Request, SetAside};

/// Scopes, documents, keys, gaps, pools or records that are copied in one commit.
const PAGE_MAX: usize = 1_000;

/// Positions set aside that are copied in one commit: there may be millions, and each is one integer.
const ASIDE_MAX: usize = 10_000;

/// A page of documents ends when their bodies reach so many bytes. A body has up to a mebibyte, so it has less than two.
const PAGE_BYTES: usize = 1 << 20;

/// A store that can be moved: all that it knows can be read, and written as it was elsewhere.
pub trait Movable: Pools {
    /// Every series that was ever pinned, by name, with its permutation key.
    fn definitions(&self) -> impl Future<Output = Result<Vec<Pinning>, StoreError>> + Send;

    /// The scopes of a series in the order of their keys, after `after`, at most `limit`, as another store adopts them.
    fn leaving(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Adopted>, StoreError>> + Send;

    /// The positions of a series that were set aside, in the order of their scopes and ascending, after `after`, at
    /// most `limit` of all scopes together.
    fn all_aside(
        &self,
        series: SeriesName,
        after: Option<(ScopeKey, u64)>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<SetAside>, StoreError>> + Send;

    /// Documents by their ids, ascending, after `after`, at most `limit`, until `bytes` of bodies are reached: one more
    /// than fits, so that a large one is read too.
    fn kept(
        &self,
        after: Option<Uuid>,
        limit: usize,
        bytes: usize,
    ) -> impl Future<Output = Result<Vec<Kept>, StoreError>> + Send;

    /// Requests by their keys, in an order that is the store's own, after `after`, at most `limit`.
    fn requests(
        &self,
        after: Option<Request>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Request>, StoreError>> + Send;

    /// Writes a page as it was elsewhere. A cursor that is here already never falls; of all else, what was written
    /// before is written over.
    fn adopt(&self, page: Page) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The mark of the store.
    fn marked(&self) -> impl Future<Output = Result<Option<Mark>, StoreError>> + Send;

    /// Marks the store, durably; with `None` it may be served.
    fn mark(&self, mark: Option<Mark>) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// What a series was pinned with, and its permutation key.
pub type Pinning = (Definition, Option<Vec<u8>>);

/// Why a store is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It was left for another one, of this name.
    Left(Box<str>),
    /// It is being filled from another one, of this name.
    Arriving(Box<str>),
}

/// What was moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Series.
    pub series: u64,
    /// Scopes of all series.
    pub scopes: u64,
    /// Documents and reservations.
    pub documents: u64,
    /// Idempotency keys.
    pub keys: u64,
    /// Records of the audit.
    pub records: u64,
}

/// A move that was refused, or failed on the way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// The old store went elsewhere before.
    #[error("{from} was left for {to} before")]
    LeftBefore {
        /// The old store.
        from: Box<str>,
        /// Where it went.
        to: Box<str>,
    },
    /// The old store is itself not complete.
    #[error("{store} is being filled from {from}: finish that first")]
    Arriving {
        /// The old store.
        store: Box<str>,
        /// What it is filled from.
        from: Box<str>,
    },
    /// The new store is in use.
    #[error("{0} has series of its own: numbers could come twice")]
    NotEmpty(Box<str>),
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Moves everything from a store to another one, each with the name that the marks will have. Both must be open
/// for nobody else. Tells `progress` how far it has come.
pub async fn move_store<A: Movable, B: Movable>(
    (from, from_name): (&A, &str),
    (to, to_name): (&B, &str),
    mut progress: impl FnMut(Moved),
) -> Result<Moved, MoveError> {
    check((from, from_name), (to, to_name)).await?;
    // Invariant: the old store is left before anything of it is read, so nothing is granted from it behind the copy.
    to.mark(Some(Mark::Arriving(from_name.into()))).await?;
    from.mark(Some(Mark::Left(to_name.into()))).await?;
    let mut copying = Copying { from, to, moved: Moved::default(), progress: &mut progress };
    for (definition, key) in from.definitions().await? {
        let series = definition.series.clone();
        let pinned = to.pin(definition, key.clone()).await?;
        if pinned.permutation_key != key {
            return Err(MoveError::NotEmpty(to_name.into()));
        }
        copying.scopes(&series).await?;
        copying.aside(&series).await?;
        copying.pools(&series).await?;
        copying.moved.series += 1;
    }
    copying.documents().await?;
    copying.requests().await?;
    copying.gaps().await?;
    copying.records().await?;
    let moved = copying.moved;
    for (series, description) in from.descriptions().await? {
        to.describe(series, Some(description)).await?;
    }
    to.mark(None).await?;
    Ok(moved)
}

/// A move under way: each kind page by page, in the order of the old store.
struct Copying<'m, A, B> {
    from: &'m A,
    to: &'m B,
    moved: Moved,
    progress: &'m mut dyn FnMut(Moved),
}

impl<A: Movable, B: Movable> Copying<'_, A, B> {
    async fn scopes(&mut self, series: &SeriesName) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.from.leaving(series.clone(), after, PAGE_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.scope.clone());
            self.moved.scopes += page.len() as u64;
            self.write(Page::Scopes(series.clone(), page)).await?;
        }
    }

    /// Behind the scopes: each of them has a cursor by then, which is told where they end.
    async fn aside(&mut self, series: &SeriesName) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.from.all_aside(series.clone(), after, ASIDE_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.positions.last().map(|position| (last.scope.clone(), *position));
            self.write(Page::Aside(series.clone(), page)).await?;
        }
    }

    /// Without their servers: what a list holds is lost, and the new store begins it anew.
    async fn pools(&mut self, series: &SeriesName) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.from.pools(series.clone(), after, PAGE_MAX).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            let epochs = page.into_iter().map(|(scope, pool)| (scope, pool.epoch)).collect();
            self.write(Page::Pools(series.clone(), epochs)).await?;
        }
    }

    async fn documents(&mut self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.from.kept(after, PAGE_MAX, PAGE_BYTES).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.document.event);
            self.moved.documents += page.len() as u64;
            self.write(Page::Documents(page)).await?;
        }
    }

    async fn requests(&mut self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.from.requests(after, PAGE_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            self.moved.keys += page.len() as u64;
            self.write(Page::Requests(page)).await?;
        }
    }

    async fn gaps(&mut self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.from.gaps(GapFilter::default(), after, PAGE_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some((last.place.clone(), last.missing.range.from()));
            self.write(Page::Gaps(page)).await?;
        }
    }

    async fn records(&mut self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.from.records(RecordFilter::default(), after, PAGE_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some((last.taking.at, last.id));
            self.moved.records += page.len() as u64;
            self.write(Page::Records(page)).await?;
        }
    }

    async fn write(&mut self, page: Page) -> Result<(), StoreError> {
        self.to.adopt(page).await?;
        (self.progress)(self.moved);
        Ok(())
    }
}

async fn check<A: Movable, B: Movable>(
    (from, from_name): (&A, &str),
    (to, to_name): (&B, &str),
) -> Result<(), MoveError> {
    let is_resumed = match from.marked().await? {
        Some(Mark::Arriving(source)) => {
            return Err(MoveError::Arriving { store: from_name.into(), from: source });
        }
        Some(Mark::Left(target)) if *target != *to_name => {
            return Err(MoveError::LeftBefore { from: from_name.into(), to: target });
        }
        Some(Mark::Left(_)) => true,
        None => false,
    };
    let is_arriving = to.marked().await? == Some(Mark::Arriving(from_name.into()));
    if is_arriving || to.definitions().await?.is_empty() {
        Ok(())
    } else if is_resumed {
        // Everything had arrived: the new store may have issued since, and nothing of it may be written over.
        Err(MoveError::LeftBefore { from: from_name.into(), to: to_name.into() })
    } else {
        Err(MoveError::NotEmpty(to_name.into()))
    }
}
