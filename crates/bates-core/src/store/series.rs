//! The port to the series: their definitions and descriptions, and whether the store can be trusted.

use uuid::Uuid;

use super::StoreResult;
use crate::operation::Operation;
use crate::series::{Definition, DescriptionChange, PinOutcome, Promise, PromiseChange, SeriesName};

/// With more scopes, it would take seconds to add up their numbers.
pub const COUNTED_SCOPES_MAX: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreTotals {
    /// With those that are retired.
    pub series: u64,
    pub scopes: u64,
    /// The positions granted so far. `None`: there are more than [`COUNTED_SCOPES_MAX`] scopes.
    pub granted: Option<u64>,
}

/// A series that was retired keeps its definition and its cursors for ever.
#[trait_variant::make(Send)]
pub trait SeriesStore: Send + Sync + 'static {
    /// The id of the store: made with it, the same for all nodes and after a move.
    fn identity(&self) -> Uuid;

    /// Whether other nodes issue from the same cursors: then positions in memory have no order between nodes.
    fn is_shared(&self) -> bool {
        false
    }

    /// How much the store holds. In a store of many scopes, their numbers are not added up.
    async fn totals(&self) -> StoreResult<StoreTotals>;

    /// Pins the definition of a series on its first use, and compares it from then on. Answers with the permutation key
    /// that the series was pinned with, which is `fresh_key` the first time.
    async fn pin(&self, definition: Definition, fresh_key: Option<Vec<u8>>) -> StoreResult<PinOutcome>;

    /// The definition that a series was pinned with, also if it is retired.
    async fn definition(&self, series: SeriesName) -> StoreResult<Option<Definition>>;

    /// Writes the description of a pinned series that was created at run time, or retires the series: then it is no
    /// longer listed. Answers `false`, and changes nothing, unless [`DescriptionChange::fits`].
    async fn describe(
        &self,
        series: SeriesName,
        change: DescriptionChange,
        operation: Option<Operation>,
    ) -> StoreResult<bool>;

    /// The series that were created at run time and not retired, by name, each with its description.
    async fn descriptions(&self) -> StoreResult<Vec<(SeriesName, Box<str>)>>;

    /// Changes the promise of a series, durably, as [`PromiseChange::decide`] says; answers whether it is `change.to` now.
    /// A series becomes gapless from the position of each cursor on, which is kept with the cursor. For a series created
    /// at run time, the same commit changes the description; if that does not fit, nothing changes.
    async fn change_promise(
        &self,
        series: SeriesName,
        change: PromiseChange,
        described: Option<DescriptionChange>,
        operation: Option<Operation>,
    ) -> StoreResult<bool>;

    /// The pinned promise of each series, in the order of their names.
    async fn promises(&self) -> StoreResult<Vec<(SeriesName, Promise)>>;

    /// The floors of series above 0: no scope that is created from now on begins below that of its series.
    async fn series_floors(&self) -> StoreResult<Vec<(SeriesName, u64)>>;

    /// Raises the floor of a series, never lowers it.
    async fn raise_series_floor(&self, series: SeriesName, floor: u64) -> StoreResult<()>;

    /// Checks the store: one that was restored from a backup, or lost commits in a failover, is poisoned. Answers with a
    /// number that changes whenever a series is described or retired.
    async fn check_revision(&self) -> StoreResult<u64> {
        async { Ok(0) }
    }

    /// Changes when this process learns that the store was restored or lost commits: earlier grants are no longer valid.
    /// Nothing of an earlier era may be handed out or released.
    fn era(&self) -> u64 {
        0
    }

    /// Checks that the store can be written, with a durable write that changes nothing.
    async fn probe(&self) -> StoreResult<()>;
}
