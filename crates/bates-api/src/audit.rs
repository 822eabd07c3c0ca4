//! The audit: which caller took which numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::csv::csv_cell;
use crate::page::page;
use crate::scope::scope_text;

page! {
    /// One page of audit entries, oldest first.
    AuditPage {
        /// The entries.
        entries: AuditEntry
    }
}

/// The numbers that one call took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditEntry {
    /// The series.
    pub series: String,
    /// The parameters of the scope.
    #[cfg_attr(feature = "schema", schema(example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: BTreeMap<String, String>,
    /// The period of the scope, for a series that resets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The first position taken; absent if the series is shuffled, unless the caller has the right `operate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// One past the last position taken; absent as `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// The first number.
    #[cfg_attr(feature = "schema", schema(example = "PROJ-9012-1001"))]
    pub first: String,
    /// The last number.
    #[cfg_attr(feature = "schema", schema(example = "PROJ-9012-2000"))]
    pub last: String,
    /// How many numbers were taken. Less than `to - from` if rejection rules skip positions.
    pub count: u64,
    /// The caller: the name of its token, its address if it has no token, or `pool` and the key of a list.
    #[cfg_attr(feature = "schema", schema(example = "registry"))]
    pub who: String,
    /// The channel: `http`, `resp`, `pool`, `document`, `reservation` or `library`.
    #[cfg_attr(feature = "schema", schema(example = "http"))]
    pub how: String,
    /// When the numbers were taken, by the clock of the server that issued them.
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub at: String,
}

impl AuditEntry {
    /// The header row of the CSV format.
    pub const CSV_HEADER: &'static str = "series,scope,from,to,first,last,count,who,how,at";

    /// The entry as a CSV row. Columns that may hold a comma or a quote, or begin like a formula, are quoted.
    pub fn csv_row(&self) -> String {
        let Self { series, count, how, at, .. } = self;
        let position = |position: Option<u64>| position.map_or_else(String::new, |it| it.to_string());
        let (from, to) = (position(self.from), position(self.to));
        let scope = csv_cell(&scope_text(&self.scope, self.period.as_deref()));
        let (first, last, who) = (csv_cell(&self.first), csv_cell(&self.last), csv_cell(&self.who));
        format!("{series},{scope},{from},{to},{first},{last},{count},{who},{how},{at}")
    }
}
