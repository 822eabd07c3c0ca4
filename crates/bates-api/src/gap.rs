//! Gaps, and the result of a reconciliation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::csv::csv_cell;
use crate::page::Page;
use crate::scope::scope_text;

/// One page of gaps, ordered by series, scope and position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GapPage {
    /// The gaps.
    pub gaps: Vec<Gap>,
    /// The `after` parameter of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// When the last reconciliation of the series began: later losses are not listed yet. For several series, the earliest;
    /// null if one of them was never reconciled, so that its gaps are unknown.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required, format = DateTime))]
    pub reconciled_at: Option<String>,
}

impl Page for GapPage {
    type Item = Gap;

    fn reconciled_at(&self) -> Option<&str> {
        self.reconciled_at.as_deref()
    }

    fn into_parts(self) -> (Vec<Gap>, Option<String>) {
        (self.gaps, self.after)
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
    /// The number at the first position. Absent if the series is shuffled, unless the caller has the right `operate`; and
    /// where the number cannot be told: the series was retired, or its numbers show a day within a longer period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(example = "PROJ-9012-1001"))]
    pub first_number: Option<String>,
    /// The number at the last position; absent as `first_number`. In a shuffled series the numbers between have no order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(example = "PROJ-9012-1003"))]
    pub last_number: Option<String>,
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
    pub const CSV_HEADER: &'static str =
        "series,scope,first,last,count,reason,uncertain,seen,first_number,last_number";

    /// The gap as a CSV row. Columns that may hold a comma or a quote, or begin like a formula, are quoted.
    pub fn csv_row(&self) -> String {
        let Self { series, first, last, reason, uncertain, seen, .. } = self;
        let scope = csv_cell(&scope_text(&self.scope, self.period.as_deref()));
        let number = |number: &Option<String>| number.as_deref().map(csv_cell).unwrap_or_default();
        let (count, numbers) =
            (last - first + 1, [number(&self.first_number), number(&self.last_number)].join(","));
        format!("{series},{scope},{first},{last},{count},{reason},{uncertain},{seen},{numbers}")
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
