//! Errors of the API, as `application/problem+json`.

use serde::{Deserialize, Serialize};

/// An error, in the format of RFC 9457.
// A client accepts a problem that has only `code` and `detail`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Problem {
    /// A URI for the kind of error, which never changes.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true, example = "urn:bates:error:exhausted"))]
    pub r#type: String,
    /// The meaning of the code.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub title: String,
    /// The HTTP status of the response.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub status: u16,
    /// What failed in this request.
    pub detail: String,
    /// The stable error code.
    #[cfg_attr(feature = "schema", schema(example = "exhausted"))]
    pub code: String,
    /// Whether a number may have been issued without reaching the caller.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub may_burn: bool,
}
