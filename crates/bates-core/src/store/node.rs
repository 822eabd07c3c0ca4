//! The port to the processes that issue from a store: what each holds, and how the store recalls it.

use std::future::Future;

use uuid::Uuid;

use super::StoreResult;
use crate::range::PositionRange;
use crate::recall::{Holder, Recall};
use crate::scope::ScopeKey;
use crate::series::SeriesName;

/// A store that is not shared has one process, and keeps the defaults.
pub trait NodeStore: Send + Sync + 'static {
    /// Raises the epoch of a series and returns it: every process then gives up what it was granted of the series before.
    fn recall(&self, _series: SeriesName) -> impl Future<Output = StoreResult<u64>> + Send {
        async { Ok(0) }
    }

    /// The recalls that this process has not answered with [`NodeStore::give_up`].
    fn recalls(&self) -> impl Future<Output = StoreResult<Vec<Recall>>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Reports ranges that this process gave up unused: those that it was granted are lost, `lease_lost`. With an epoch it
    /// also reports that it has handed out all else that it was granted before that epoch. A second call changes nothing.
    fn give_up(
        &self,
        _series: SeriesName,
        _epoch: Option<u64>,
        _unused: Vec<(ScopeKey, PositionRange)>,
    ) -> impl Future<Output = StoreResult<()>> + Send {
        async { Ok(()) }
    }

    /// Reports that this process holds nothing any more: it has handed out the rest of its ranges.
    fn leave(&self) -> impl Future<Output = StoreResult<()>> + Send {
        async { Ok(()) }
    }

    /// The processes that still hold ranges of a series granted before an epoch.
    fn holders(
        &self,
        _series: SeriesName,
        _epoch: u64,
    ) -> impl Future<Output = StoreResult<Vec<Holder>>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Counts these processes as crashed: what they were granted of a series before an epoch and still hold becomes
    /// uncertain, and they can no longer give it back.
    fn write_off(
        &self,
        _series: SeriesName,
        _epoch: u64,
        _nodes: Vec<Uuid>,
    ) -> impl Future<Output = StoreResult<()>> + Send {
        async { Ok(()) }
    }
}
