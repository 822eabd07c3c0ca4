//! The series of a store: what decides how their numbers read, and whether the store can be trusted.

use uuid::Uuid;

use super::StoreResult;
use crate::series::{Definition, Pinned, Promise, PromiseChange, Redescription, SeriesName};

/// Keeps series, for ever: a series that was retired keeps its definition and its cursors.
#[trait_variant::make(Send)]
pub trait SeriesStore: Send + Sync + 'static {
    /// Which store this is: made with it, the same after a move, and for all nodes.
    fn identity(&self) -> Uuid;

    /// Whether other nodes issue from the same cursors: then no lease in memory keeps an order.
    fn is_shared(&self) -> bool {
        false
    }

    /// Pins what decides the text of a series on its first use, and compares it ever after. Answers with the
    /// permutation key that the series was pinned with, which is `fresh_key` the first time.
    async fn pin(&self, definition: Definition, fresh_key: Option<Vec<u8>>) -> StoreResult<Pinned>;

    /// Keeps the description of a series that was made at run time, or with `None` retires it: then it is no
    /// longer listed, and its pin and its cursors stay for ever. Answers `false`, and changes nothing, unless the store
    /// has the description `before`, or this one already. The series must have been pinned.
    async fn describe(
        &self,
        series: SeriesName,
        before: Option<Box<str>>,
        description: Option<Box<str>>,
    ) -> StoreResult<bool>;

    /// The series that were made at run time and not retired, by name, each with its description.
    async fn descriptions(&self) -> StoreResult<Vec<(SeriesName, Box<str>)>>;

    /// Changes the promise of a series, durably, if it is `change.from`; answers whether it is `change.to` now. A series that becomes
    /// gapless is so from where each of its cursors stands; that is kept with the cursor. A series that was made at run
    /// time is described anew in the same commit, and nothing is changed if its description is another one by now.
    async fn change_promise(
        &self,
        series: SeriesName,
        change: PromiseChange,
        described: Option<Redescription>,
    ) -> StoreResult<bool>;

    /// What each series promises, by name, where that was pinned.
    async fn promises(&self) -> StoreResult<Vec<(SeriesName, Promise)>>;

    /// Looks whether the store still is what it was: one that was taken back is poisoned. Answers with a number that
    /// changes whenever a series is described or retired. What is not shared has no others.
    fn watch(&self) -> impl Future<Output = StoreResult<u64>> + Send {
        async { Ok(0) }
    }

    /// A number that changes whenever the store, as far as this process knows, no longer vouches for what it granted
    /// before: it was taken back. Nothing of an earlier era may be handed out or given back.
    fn era(&self) -> u64 {
        0
    }

    /// Writes something that means nothing, durably: whether the store can be written just now.
    async fn probe(&self) -> StoreResult<()>;
}
