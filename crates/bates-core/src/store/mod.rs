//! The port to the database, one trait per feature. The conformance suite of `bates-testkit` tests every store.

mod audit;
mod caller;
mod cursor;
mod document;
mod error;
mod gap;
mod lease;
mod measured;
mod moving;
mod node;
mod operation;
mod pool;
mod series;

pub use audit::AuditStore;
pub use caller::CallerStore;
pub use cursor::{Cursor, CursorStore};
pub use document::DocumentStore;
pub use error::{StoreError, StoreResult};
pub use gap::GapStore;
pub use lease::LeaseStore;
pub(crate) use measured::MeasuredStore;
pub use moving::MoveStore;
pub use node::NodeStore;
pub use operation::OperationStore;
pub use pool::PoolStore;
pub use series::{COUNTED_SCOPES_MAX, SeriesStore, StoreTotals};

macro_rules! store {
    ($($part:ident),*) => {
        /// All parts of the port. Implemented by every type that implements each of them.
        pub trait Store: $($part +)* {}

        impl<S: $($part +)*> Store for S {}
    };
}

store!(
    SeriesStore,
    CursorStore,
    NodeStore,
    DocumentStore,
    GapStore,
    AuditStore,
    OperationStore,
    CallerStore,
    LeaseStore,
    PoolStore,
    MoveStore
);

/// The methods of a store, for code that names its type: `use bates_core::store::prelude::*`.
pub mod prelude {
    pub use super::{
        AuditStore as _, CallerStore as _, CursorStore as _, DocumentStore as _, GapStore as _,
        LeaseStore as _, MoveStore as _, NodeStore as _, OperationStore as _, PoolStore as _,
        SeriesStore as _,
    };
}
