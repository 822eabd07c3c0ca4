//! Gaps, and the result of a reconciliation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::csv::csv_cell;
use crate::page::page;
use crate::scope::scope_text;

page! {
    /// One page of gaps, ordered by series, scope and position.
    GapPage {
        /// The gaps.
        gaps: Gap
    }
}

/// A range of positions whose numbers are not in use, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Gap {
    /// The series.
    pub series: String,
    /// The parameters of the scope.
    #[cfg_attr(feature = "schema", schema(example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: BTreeMap<String, String>,
    /// The period of the scope, for a series that resets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The first position.
    pub first: u64,
    /// The last position.
    pub last: u64,
    /// The reason: `outbox_dlq`, `abandoned`, `voided`, `untracked_loss`, `crash_skip`, `lease_lost`, `burned`,
    /// `floor_raised`, `fill_fenced`, `pool_invalidated` or `delivery_unknown`.
    #[cfg_attr(feature = "schema", schema(example = "voided"))]
    pub reason: String,
    /// Whether the numbers may be in use after all, because their holder crashed or lost its records.
    pub uncertain: bool,
    /// When the gap was first found.
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub seen: String,
}

impl Gap {
    /// The header row of the CSV format.
    pub const CSV_HEADER: &'static str = "series,scope,first,last,count,reason,uncertain,seen";

    /// The gap as a CSV row. Only the scope may hold a comma or a quote, or begin like a formula.
    pub fn csv_row(&self) -> String {
        let Self { series, first, last, reason, uncertain, seen, .. } = self;
        let scope = csv_cell(&scope_text(&self.scope, self.period.as_deref()));
        format!("{series},{scope},{first},{last},{},{reason},{uncertain},{seen}", last - first + 1)
    }
}

/// The result of a reconciliation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reconciliation {
    /// Scopes compared.
    pub scopes: u64,
    /// Gaps found, each a range of positions.
    pub gaps: u64,
    /// Positions in these gaps.
    pub missing: u64,
    /// Positions that a crashed process may have used.
    pub uncertain: u64,
    /// Texts in your documents that are not numbers of their series.
    pub strangers: u64,
}
