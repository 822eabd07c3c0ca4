//! What an identifier is, and what speaks against it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Whether a text could be an identifier of a series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Verdict {
    /// Whether nothing speaks against it.
    pub valid: bool,
    /// Everything that does.
    pub reasons: Vec<Reason>,
}

/// One thing that speaks against a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reason {
    /// Its stable code.
    #[cfg_attr(feature = "schema", schema(example = "checksum"))]
    pub code: String,
    /// A sentence.
    pub message: String,
}

/// What an identifier could be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Trace {
    /// The identifier.
    pub id: String,
    /// Each series that it could be of.
    pub matches: Vec<Match>,
}

/// A series and scope that an identifier could be of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Match {
    /// The series.
    #[cfg_attr(feature = "schema", schema(example = "document"))]
    pub series: String,
    /// The parameters that the identifier shows.
    #[cfg_attr(feature = "schema", schema(example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: BTreeMap<String, String>,
    /// The period that it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// Its position.
    pub position: u64,
    /// Whether the position was granted; `null` if the identifier does not show its whole scope.
    pub granted: Option<bool>,
}
