//! The port to the series: what decides how their numbers read, and whether the store can be trusted.

use uuid::Uuid;

use super::StoreResult;
use crate::series::{Definition, DescriptionChange, PinOutcome, Promise, PromiseChange, SeriesName};

/// A series that was retired keeps its definition and its cursors for ever.
#[trait_variant::make(Send)]
pub trait SeriesStore: Send + Sync + 'static {
    /// The id of the store: made with it, the same for all nodes and after a move.
    fn identity(&self) -> Uuid;

    /// Whether other nodes issue from the same cursors: then no lease in memory keeps an order.
    fn is_shared(&self) -> bool {
        false
    }

    /// Pins what decides the text of a series on its first use, and compares it from then on. Answers with the permutation
    /// key that the series was pinned with, which is `fresh_key` the first time.
    async fn pin(&self, definition: Definition, fresh_key: Option<Vec<u8>>) -> StoreResult<PinOutcome>;

    /// Keeps the description of a pinned series that was made at run time, or with `None` retires it: then it is no longer
    /// listed. Answers `false`, and changes nothing, unless the store has the description `before`, or this one already.
    async fn describe(
        &self,
        series: SeriesName,
        before: Option<Box<str>>,
        description: Option<Box<str>>,
    ) -> StoreResult<bool>;

    /// The series that were made at run time and not retired, by name, each with its description.
    async fn descriptions(&self) -> StoreResult<Vec<(SeriesName, Box<str>)>>;

    /// Changes the promise of a series, durably, if it is `change.from`; answers whether it is `change.to` now. A series
    /// becomes gapless from where each of its cursors stands, which is kept with the cursor. A series that was made at run
    /// time is described anew in the same commit; if its description is no longer the expected one, nothing changes.
    async fn change_promise(
        &self,
        series: SeriesName,
        change: PromiseChange,
        described: Option<DescriptionChange>,
    ) -> StoreResult<bool>;

    /// The pinned promise of each series, in the order of their names.
    async fn promises(&self) -> StoreResult<Vec<(SeriesName, Promise)>>;

    /// Checks the store: one that was restored from a backup, or lost commits in a failover, is poisoned. Answers with a
    /// number that changes whenever a series is described or retired.
    fn check_revision(&self) -> impl Future<Output = StoreResult<u64>> + Send {
        async { Ok(0) }
    }

    /// Changes when this process learns that the store was restored or lost commits, and no longer vouches for what it
    /// granted. Nothing of an earlier era may be handed out or given back.
    fn era(&self) -> u64 {
        0
    }

    /// Makes a durable write without meaning, to check that the store can be written.
    async fn probe(&self) -> StoreResult<()>;
}
