//! Tokens: callers that are made at run time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::page::page;
use crate::whole::whole_or_null;

/// What a caller may do. Without `series` and `scope` its rights cover all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenGrant {
    /// Its rights: `read`, `take`, `define`, `operate`, `admin`.
    #[cfg_attr(feature = "schema", schema(example = json!(["read", "take"]), min_items = 1))]
    pub may: Vec<String>,
    /// Names of series, or prefixes such as `acme.*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(example = json!(["acme.*"]), min_items = 1))]
    pub series: Option<Vec<String>>,
    /// For each parameter of a scope, the values that the caller may use.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schema(example = json!({"project": ["PROJ"]})))]
    pub scope: BTreeMap<String, Vec<String>>,
    /// How many series its patterns may cover, if its series are limited. Defaults to 100.
    #[serde(default, deserialize_with = "whole_or_null", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(maximum = 100_000))]
    pub series_max: Option<u64>,
    /// How many scopes a series that it defines may have, if its series are limited. Defaults to 10,000,000.
    #[serde(default, deserialize_with = "whole_or_null", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 4_503_599_627_370_495_u64))]
    pub scopes_max: Option<u64>,
    /// How many restricted words and entries of `not_start_with` a series that it defines may have, if its series are limited.
    /// Defaults to 1,000.
    #[serde(default, deserialize_with = "whole_or_null", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(maximum = 10_000))]
    pub words_max: Option<u64>,
    /// How many numbers it may take per second, on each node. Unlimited by default.
    #[serde(default, deserialize_with = "whole_or_null", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 1_000_000_000_u64))]
    pub rate: Option<u64>,
    /// How many numbers it may take per day (UTC), on all nodes together. Unlimited by default.
    #[serde(default, deserialize_with = "whole_or_null", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 1_000_000_000_000_u64))]
    pub quota: Option<u64>,
}

/// A request for a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// The name of the caller: a lower-case letter, then up to 63 of `a-z`, `0-9`, `_`, `-` and `.`.
    #[cfg_attr(
        feature = "schema",
        schema(example = "acme", pattern = "^[a-z][a-z0-9_.-]*$", max_length = 64)
    )]
    pub name: String,
    /// What it may do.
    pub grant: TokenGrant,
    /// After how many seconds it expires; never by default.
    #[serde(default, deserialize_with = "whole_or_null", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 3_153_600_000_u64))]
    pub expires_in_s: Option<u64>,
}

/// A request for a new secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RotationRequest {
    /// For how many seconds the secret before is accepted too: 0 to 30 days; a day by default.
    #[serde(default, deserialize_with = "whole_or_null", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(maximum = 2_592_000))]
    pub overlap_s: Option<u64>,
}

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Token {
    /// The name of the caller.
    #[cfg_attr(feature = "schema", schema(example = "acme"))]
    pub name: String,
    /// What it may do.
    pub grant: TokenGrant,
    /// Where the token is kept, and therefore where it can be changed: `file` or `store`.
    pub origin: String,
    /// When it was made; not for a token of the configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub created: Option<String>,
    /// When it expires; absent if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub expires: Option<String>,
    /// During a rotation: when the secret before ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(format = DateTime))]
    pub previous_ends: Option<String>,
}

/// A token with its new secret, which is shown only here.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct IssuedToken {
    #[expect(missing_docs, reason = "flattened: the JSON object has its fields")]
    #[serde(flatten)]
    pub token: Token,
    /// The secret, with 256 random bits. The server keeps only its digest.
    pub secret: String,
}

impl std::fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A secret must not appear in a log.
        f.debug_struct("IssuedToken").field("token", &self.token).finish_non_exhaustive()
    }
}

page! {
    /// One page of tokens, ordered by name.
    TokenPage {
        /// The tokens.
        tokens: Token
    }
}
