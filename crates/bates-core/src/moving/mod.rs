//! Moving everything from one store to another. Must never let both stores serve.
//!
//! The old store is marked as left before the new one is made, and the new one as arriving until it has everything; a
//! store with a mark is not served. Both marks hold the id of the move and are set by compare-and-set, so the second of
//! two moves from one store is refused. After an interruption a new run writes its own id into both marks, copying
//! twice changes nothing, and the new store takes no page of an earlier run, nor any once it serves.

mod copy;
mod mark;
mod page;

use std::time::Duration;

use uuid::Uuid;

use crate::audit::{Actor, AuditStamp};
use crate::operation::{Operation, OperationKind};
use crate::recall::{Holder, POLL_INTERVAL, live_holders};
use crate::runtime::Runtime;
use crate::series::{Definition, SeriesName};
use crate::store::{Store, StoreError, StoreResult};

use copy::StoreCopy;
pub use mark::{MarkChange, Move, MoveMark};
pub use page::{MovePage, MovedAdoptions, MovedDocument, MovedKey, MovedScope};

/// A series and its permutation key.
pub type PinnedSeries = (Definition, Option<Vec<u8>>);

/// An old store that is marked as left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    pub id: Uuid,
    pub run: Uuid,
    /// Whether this run marked it, and not an earlier one.
    pub is_new: bool,
    /// Who moves it, and when this run began.
    pub stamp: AuditStamp,
}

impl Departure {
    pub fn to_move(&self, other: &str) -> Move {
        Move { id: self.id, run: self.run, other: other.into() }
    }

    /// The record in the log of the new store: one for the whole move, whichever run ends it.
    fn operation(&self, from: &str, to: &str) -> Operation {
        let AuditStamp { caller, channel, at } = self.stamp.clone();
        Operation {
            id: self.id,
            at,
            caller,
            channel,
            kind: OperationKind::StoreMoved,
            series: None,
            subject: "store".into(),
            before: Some(from.into()),
            after: Some(to.into()),
        }
    }
}

/// A store, and its name in the mark of the other one.
#[derive(Debug)]
pub struct NamedStore<'s, S> {
    pub store: &'s S,
    pub name: &'s str,
}

impl<'s, S> NamedStore<'s, S> {
    pub fn new(store: &'s S, name: &'s str) -> Self {
        Self { store, name }
    }
}

impl<S> Clone for NamedStore<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for NamedStore<'_, S> {}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveProgress {
    pub series: u64,
    pub scopes: u64,
    /// Including reservations.
    pub documents: u64,
    /// Idempotency keys.
    pub keys: u64,
    /// Audit records.
    pub records: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    #[error("{from} was left for {to} before")]
    LeftBefore { from: Box<str>, to: Box<str> },
    #[error("{store} is being filled from {from}: finish that first")]
    Arriving { store: Box<str>, from: Box<str> },
    #[error("{0} takes no more pages of this move: another run has finished it, or another move has begun")]
    Overtaken(Box<str>),
    #[error("{0} has series of its own: numbers could come twice")]
    NotEmpty(Box<str>),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Marks the old store as left, or takes over from an earlier run. From then on it grants nothing.
pub async fn mark_left<A: Store>(
    runtime: &dyn Runtime,
    actor: Actor<'_>,
    NamedStore { store: from, name: from_name }: NamedStore<'_, A>,
    to_name: &str,
) -> Result<Departure, MoveError> {
    let (id, run, stamp) = (runtime.new_id(), runtime.new_id(), actor.stamp(runtime.now()));
    let departure = Departure { id, run, is_new: true, stamp };
    if from.change_mark(None, Some(MoveMark::Left(departure.to_move(to_name)))).await? {
        return Ok(departure);
    }
    let from_name = from_name.into();
    Err(match from.mark().await? {
        Some(MoveMark::Left(found)) if *found.other == *to_name => {
            let departure = Departure { id: found.id, is_new: false, ..departure };
            let ours = MoveMark::Left(departure.to_move(to_name));
            if from.change_mark(Some(MoveMark::Left(found)), Some(ours)).await? {
                return Ok(departure);
            }
            MoveError::Overtaken(from_name)
        }
        Some(MoveMark::Left(found)) => MoveError::LeftBefore { from: from_name, to: found.other },
        Some(MoveMark::Arriving(found)) => MoveError::Arriving { store: from_name, from: found.other },
        None => MoveError::Overtaken(from_name),
    })
}

/// Has every node give up its ranges of a store that was left, and waits for them, at most `wait`. Answers with the
/// nodes that stayed silent: they may hand out numbers until they see that the store was left.
pub async fn recall_from_nodes<A: Store>(
    runtime: &dyn Runtime,
    from: &A,
    wait: Duration,
) -> StoreResult<Vec<(SeriesName, Holder)>> {
    let mut recalled = Vec::new();
    for (definition, _) in from.definitions().await? {
        let series = definition.series;
        if !from.holders(series.clone(), u64::MAX).await?.is_empty() {
            recalled.push((series.clone(), from.recall(series).await?));
        }
    }
    let deadline = runtime.elapsed() + wait;
    loop {
        let mut silent = Vec::new();
        for (series, epoch) in &recalled {
            let holders = live_holders(from, series, *epoch).await?;
            silent.extend(holders.into_iter().map(|holder| (series.clone(), holder)));
        }
        if silent.is_empty() || runtime.elapsed() >= deadline {
            return Ok(silent);
        }
        runtime.sleep(POLL_INTERVAL).await;
    }
}

/// Removes the mark of a departure, if this run made it: the new store was refused and is empty.
pub async fn cancel_departure<A: Store>(from: &A, to: &str, departure: &Departure) -> StoreResult<()> {
    if departure.is_new {
        from.change_mark(Some(MoveMark::Left(departure.to_move(to))), None).await?;
    }
    Ok(())
}

/// Moves everything from a store that was left to another one.
pub async fn move_store<A: Store, B: Store>(
    NamedStore { store: from, name: from_name }: NamedStore<'_, A>,
    NamedStore { store: to, name: to_name }: NamedStore<'_, B>,
    departure: &Departure,
    mut progress: impl FnMut(MoveProgress),
) -> Result<MoveProgress, MoveError> {
    let arriving = MoveMark::Arriving(departure.to_move(from_name));
    mark_arriving(from_name, NamedStore::new(to, to_name), departure, &arriving).await?;
    let (run, done) = (departure.run, MoveProgress::default());
    let mut copy = StoreCopy { from, to, to_name, run, done, progress: &mut progress };
    copy.write(MovePage::Identity(from.identity())).await?;
    for (definition, key) in from.definitions().await? {
        let series = definition.series.clone();
        copy.write(MovePage::Definition(definition, key)).await?;
        copy.series(&series).await?;
    }
    for (series, floor) in from.series_floors().await? {
        to.raise_series_floor(series, floor).await?;
    }
    copy.documents().await?;
    copy.gaps_and_records().await?;
    copy.write(MovePage::Descriptions(from.descriptions().await?)).await?;
    copy.write(MovePage::Arrival(departure.operation(from_name, to_name))).await?;
    let done = copy.done;
    let is_arrived = to.change_mark(Some(arriving), None).await?;
    is_arrived.then_some(done).ok_or_else(|| MoveError::Overtaken(to_name.into()))
}

/// Marks the new store, or takes it over from an earlier run of the same move.
async fn mark_arriving<B: Store>(
    from_name: &str,
    NamedStore { store: to, name: to_name }: NamedStore<'_, B>,
    departure: &Departure,
    arriving: &MoveMark,
) -> Result<(), MoveError> {
    if to.change_mark(None, Some(arriving.clone())).await? {
        return Ok(());
    }
    if let Some(MoveMark::Arriving(found)) = to.mark().await?
        && found.id == departure.id
        && to.change_mark(Some(MoveMark::Arriving(found)), Some(arriving.clone())).await?
    {
        return Ok(());
    }
    Err(match to.mark().await? {
        Some(MoveMark::Arriving(found)) => MoveError::Arriving { store: to_name.into(), from: found.other },
        // Everything had arrived: the new store may have issued since, and must not be overwritten.
        None if !departure.is_new => MoveError::LeftBefore { from: from_name.into(), to: to_name.into() },
        Some(MoveMark::Left(_)) | None => MoveError::NotEmpty(to_name.into()),
    })
}
