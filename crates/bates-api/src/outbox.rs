//! Documents that are not delivered yet, or never will be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::document::KnownDocument;
use crate::page::page;

page! {
    /// Some documents, by their event ids.
    #[cfg_attr(feature = "schema", schema(as = Documents))]
    OutboxPage {
        /// The documents.
        documents: KnownDocument
    }
}

/// How many documents of each series are in each state.
pub type OutboxCounts = BTreeMap<String, BTreeMap<String, u64>>;

/// About how many documents was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Count))]
pub struct DecisionCount {
    /// How many.
    pub count: u64,
}
