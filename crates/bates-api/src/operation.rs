//! The operations log: who changed what.

use serde::{Deserialize, Serialize};

use crate::csv::csv_cell;
use crate::page::page;

/// A change that a caller made, other than by taking numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Operation {
    /// When, by the clock of the server or command that did it.
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub at: String,
    /// The name of a token, an address, or the user of a command.
    #[cfg_attr(feature = "schema", schema(example = "ops"))]
    pub who: String,
    /// The channel: `http`, `library`, `command` or `server`.
    #[cfg_attr(feature = "schema", schema(example = "http"))]
    pub how: String,
    /// The kind of change, such as `series_changed`.
    #[cfg_attr(feature = "schema", schema(example = "series_changed"))]
    pub kind: String,
    /// The series; absent if none, or several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// The scope, document or token that was changed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// The state before, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The state afterwards, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The id of the operation.
    pub id: String,
    /// The chain that the record belongs to: the name of a host. This and the next fields are absent for a caller with
    /// limited rights: the numbers of a chain count the changes of all callers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// The number of the record in its chain, from 1 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The SHA-256 digest of the record before it in the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// The SHA-256 digest of this record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl Operation {
    /// The header row of the CSV format.
    pub const CSV_HEADER: &'static str =
        "at,who,how,kind,series,subject,before,after,id,chain,number,previous,digest";

    /// The operation as a CSV row. Columns that may hold a comma or a quote, or begin like a formula, are quoted.
    pub fn csv_row(&self) -> String {
        let Self { at, how, kind, id, .. } = self;
        let optional = |text: &Option<String>| csv_cell(text.as_deref().unwrap_or_default());
        let (who, series, subject) = (csv_cell(&self.who), optional(&self.series), csv_cell(&self.subject));
        let (before, after, chain) = (optional(&self.before), optional(&self.after), optional(&self.chain));
        let number = self.number.map_or_else(String::new, |number| number.to_string());
        let [previous, digest] = [&self.previous, &self.digest].map(|it| it.as_deref().unwrap_or_default());
        format!(
            "{at},{who},{how},{kind},{series},{subject},{before},{after},{id},{chain},{number},{previous},{digest}"
        )
    }
}

page! {
    /// One page of the operations log, oldest first.
    OperationPage {
        /// The operations.
        operations: Operation
    }
}

/// The end of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChainHead {
    /// The name of the chain.
    pub chain: String,
    /// The number of its last record.
    pub number: u64,
    /// The digest of that record.
    pub digest: String,
}

/// The ends of all chains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChainList {
    /// The chains, by name.
    pub chains: Vec<ChainHead>,
}
