//! What went wrong, as `application/problem+json`.

use serde::{Deserialize, Serialize};

/// An error, as RFC 9457 describes it.
// Of what a server leaves out, a client needs none: it reads a problem that has a code and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Problem {
    /// The kind of problem, a name that never changes.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true, example = "urn:bates:error:exhausted"))]
    pub r#type: String,
    /// What happened, in general.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub title: String,
    /// The status of the answer.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub status: u16,
    /// What happened, in particular.
    pub detail: String,
    /// The stable code.
    #[cfg_attr(feature = "schema", schema(example = "exhausted"))]
    pub code: String,
    /// Whether a number may have been taken without reaching a caller.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub may_burn: bool,
}
