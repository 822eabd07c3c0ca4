//! Validating a text as an identifier, and tracing an identifier to its series.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Whether a text is a valid identifier of a series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Verdict {
    /// Whether the text is valid.
    pub valid: bool,
    /// Every reason why it is not; empty if it is valid.
    pub reasons: Vec<Reason>,
}

/// One reason why a text is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reason {
    /// The stable code of the reason.
    #[cfg_attr(feature = "schema", schema(example = "checksum"))]
    pub code: String,
    /// The reason in words.
    pub message: String,
}

/// The series and positions that an identifier matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Trace {
    /// The identifier.
    pub id: String,
    /// One match for each series that could have issued the identifier.
    pub matches: Vec<Match>,
}

/// A series, scope and position that an identifier matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Match {
    /// The series.
    #[cfg_attr(feature = "schema", schema(example = "document"))]
    pub series: String,
    /// The scope parameters that the identifier contains.
    #[cfg_attr(feature = "schema", schema(example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: BTreeMap<String, String>,
    /// The period that the identifier contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The position of the identifier; absent if the series is shuffled, unless the caller has the right `operate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Whether the position was granted; `null` if the identifier does not contain its whole scope.
    pub granted: Option<bool>,
}
