//! Gaps, and what a reconciliation found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::page::page;
use crate::scope::scope_text;

page! {
    /// Some gaps, in the order of their series, scopes and positions.
    #[cfg_attr(feature = "schema", schema(as = Gaps))]
    GapPage {
        /// The gaps.
        gaps: Gap
    }
}

/// Positions whose numbers no one has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = KnownGap))]
pub struct Gap {
    /// The series.
    pub series: String,
    /// The scope.
    #[cfg_attr(feature = "schema", schema(example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: BTreeMap<String, String>,
    /// Its period, if the series starts again by date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The first position.
    pub first: u64,
    /// The last position.
    pub last: u64,
    /// Why: `outbox_dlq`, `abandoned`, `voided`, `untracked_loss`, `crash_skip`, `lease_lost`, `burned`,
    /// `floor_raised`, `fill_fenced`, `pool_invalidated` or `delivery_unknown`.
    #[cfg_attr(feature = "schema", schema(example = "voided"))]
    pub reason: String,
    /// Whether the numbers may be in use all the same: their holder crashed, or forgot.
    pub uncertain: bool,
    /// When it was first seen.
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub seen: String,
}

impl Gap {
    /// The columns of a row of CSV.
    pub const CSV: &'static str = "series,scope,first,last,count,reason,uncertain,seen";

    /// A row of CSV. Of all columns only the scope may hold a comma or a quote, and it is quoted.
    pub fn csv(&self) -> String {
        let Self { series, first, last, reason, uncertain, seen, .. } = self;
        let scope = scope_text(&self.scope, self.period.as_deref()).replace('"', "\"\"");
        format!("{series},\"{scope}\",{first},{last},{},{reason},{uncertain},{seen}", last - first + 1)
    }
}

/// What a reconciliation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Reconciled))]
pub struct Reconciliation {
    /// Scopes that were looked at.
    pub scopes: u64,
    /// Gaps, each a range.
    pub gaps: u64,
    /// Positions in them.
    pub missing: u64,
    /// Positions that a crashed process may have used.
    pub uncertain: u64,
    /// Texts among the user's documents that are no numbers of their series.
    pub strangers: u64,
}
