//! Moving everything from one store to another, so that numbering goes on there and nowhere else.
//!
//! What could go wrong, and why it does not: both serve. The old store is marked as left before anything is
//! copied, and the new one as arriving until everything is; a store with a mark is not served. A move that was
//! interrupted is begun again: what is copied twice is the same.

use std::future::Future;

use crate::lease::Lease;
use crate::name::SeriesName;
use crate::place::{Place, ScopeKey};
use crate::store::{Cursor, Definition, Store, StoreError};

/// Scopes that are copied in one commit.
const BATCH: usize = 1_000;

/// A store that can be moved: all that it knows can be read, and written as it was elsewhere.
pub trait Movable: Store {
    /// Every series that was ever pinned, by name, with its permutation key.
    fn definitions(&self) -> impl Future<Output = Result<Vec<Pinning>, StoreError>> + Send;

    /// Writes scopes as they were elsewhere. A cursor that is here already never falls.
    fn adopt(
        &self,
        series: SeriesName,
        scopes: Vec<Adopted>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

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

/// A scope as it was in another store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// The scope.
    pub scope: ScopeKey,
    /// Its cursor.
    pub cursor: Cursor,
    /// What was issued in it one by one, if it is gapless.
    pub ledger: Vec<Lease>,
}

/// What was moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Series.
    pub series: u64,
    /// Scopes of all series.
    pub scopes: u64,
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
    let mut moved = Moved::default();
    for (definition, key) in from.definitions().await? {
        let series = definition.series.clone();
        let pinned = to.pin(definition, key.clone()).await?;
        if pinned.permutation_key != key {
            return Err(MoveError::NotEmpty(to_name.into()));
        }
        let mut after = None;
        loop {
            let page = from.scopes(series.clone(), after, BATCH).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            moved.scopes += page.len() as u64;
            to.adopt(series.clone(), read(from, &series, page).await?).await?;
            progress(moved);
        }
        moved.series += 1;
    }
    for (series, description) in from.descriptions().await? {
        to.describe(series, Some(description)).await?;
    }
    to.mark(None).await?;
    Ok(moved)
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

async fn read<A: Movable>(
    from: &A,
    series: &SeriesName,
    page: Vec<(ScopeKey, Cursor)>,
) -> Result<Vec<Adopted>, StoreError> {
    let mut adopted = Vec::with_capacity(page.len());
    for (scope, cursor) in page {
        let ledger = from.ledger(Place { series: series.clone(), scope: scope.clone() }).await?;
        adopted.push(Adopted { scope, cursor, ledger });
    }
    Ok(adopted)
}
