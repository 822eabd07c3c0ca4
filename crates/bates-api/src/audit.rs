//! Who took which numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::page::page;
use crate::scope::scope_text;

page! {
    /// Some entries, the oldest first.
    AuditPage {
        /// The entries.
        entries: AuditEntry
    }
}

/// Numbers that one call took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditEntry {
    /// The series.
    pub series: String,
    /// The scope.
    #[cfg_attr(feature = "schema", schema(example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: BTreeMap<String, String>,
    /// Its period, if the series starts again by date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The first position.
    pub from: u64,
    /// The first position past them.
    pub to: u64,
    /// The first number.
    #[cfg_attr(feature = "schema", schema(example = "PROJ-9012-1001"))]
    pub first: String,
    /// The last number.
    #[cfg_attr(feature = "schema", schema(example = "PROJ-9012-2000"))]
    pub last: String,
    /// How many numbers: fewer than positions where rules reject some.
    pub count: u64,
    /// The name of a token, the address of a client that has none, or `pool` and the key of a list.
    #[cfg_attr(feature = "schema", schema(example = "registry"))]
    pub who: String,
    /// `http`, `resp`, `pool`, `document`, `reservation` or `library`.
    #[cfg_attr(feature = "schema", schema(example = "http"))]
    pub how: String,
    /// When, by the clock of the server that gave them.
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub at: String,
}

impl AuditEntry {
    /// The columns of a row of CSV.
    pub const CSV: &'static str = "series,scope,from,to,first,last,count,who,how,at";

    /// A row of CSV. Columns that may hold a comma or a quote are quoted.
    pub fn csv(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let Self { series, from, to, count, how, at, .. } = self;
        let scope = quoted(&scope_text(&self.scope, self.period.as_deref()));
        let (first, last, who) = (quoted(&self.first), quoted(&self.last), quoted(&self.who));
        format!("{series},{scope},{from},{to},{first},{last},{count},{who},{how},{at}")
    }
}
