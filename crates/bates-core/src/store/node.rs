//! The port to the processes that issue from a store: the ranges of each, and how the store recalls them.

use uuid::Uuid;

use super::StoreResult;
use crate::operation::Operation;
use crate::range::PositionRange;
use crate::recall::{Holder, Recall};
use crate::scope::ScopeKey;
use crate::series::SeriesName;

/// A store that is not shared has one process, and uses the defaults.
#[trait_variant::make(Send)]
pub trait NodeStore: Send + Sync + 'static {
    /// Raises the epoch of a series and returns it: every process then gives up earlier grants of the series.
    async fn recall(&self, _series: SeriesName) -> StoreResult<u64> {
        async { Ok(0) }
    }

    /// The recalls that this process has not answered with [`NodeStore::give_up`].
    async fn recalls(&self) -> StoreResult<Vec<Recall>> {
        async { Ok(Vec::new()) }
    }

    /// Reports ranges that this process gave up unused: those that it was granted are lost, `lease_lost`. With an epoch it
    /// also reports that it has handed out all its other earlier grants. A second call changes nothing.
    async fn give_up(
        &self,
        _series: SeriesName,
        _epoch: Option<u64>,
        _unused: Vec<(ScopeKey, PositionRange)>,
    ) -> StoreResult<()> {
        async { Ok(()) }
    }

    /// Reports, at a clean stop, that this process holds nothing any more: it has handed out, released or given up all.
    async fn leave(&self) -> StoreResult<()> {
        async { Ok(()) }
    }

    /// The processes that still hold ranges of a series granted before an epoch.
    async fn holders(&self, _series: SeriesName, _epoch: u64) -> StoreResult<Vec<Holder>> {
        async { Ok(Vec::new()) }
    }

    /// Counts these processes as crashed: ranges of a series that they were granted before an epoch and still hold
    /// become uncertain, and they can no longer release them.
    async fn write_off(
        &self,
        _series: SeriesName,
        _epoch: u64,
        _nodes: Vec<Uuid>,
        _operation: Option<Operation>,
    ) -> StoreResult<()> {
        async { Ok(()) }
    }
}
