//! Shared pools: lists of numbers in Redis, and the marker beside each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::number::one;
use crate::scope::Parameters;

/// The key of the marker of a list: a hash that names the epoch and the store. The braces are a hash tag: in a cluster,
/// it has the slot of its list, whose own key holds no braces.
pub fn marker_key(list: &str) -> String {
    format!("{{{list}}}:bates")
}

/// A pool that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = AskPool))]
#[serde(deny_unknown_fields)]
pub struct PoolRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
}

/// A program is about to take from a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = AskAttach))]
#[serde(deny_unknown_fields)]
pub struct AttachRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
    /// `run_id` of the Redis server that you see.
    pub run_id: Box<str>,
    /// Its `master_replid`.
    pub replication_id: Box<str>,
}

/// Numbers that are wanted in the place of those of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = AskValues))]
#[serde(deny_unknown_fields)]
pub struct PoolNumberRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
    /// How many; 1 unless said.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 100_000))]
    pub count: u64,
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = KnownPool))]
pub struct PoolStatus {
    /// The series.
    pub series: String,
    /// The scope.
    #[cfg_attr(feature = "schema", schema(example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: BTreeMap<String, String>,
    /// The key of its list.
    #[cfg_attr(feature = "schema", schema(example = "id-pool:PROJ:9012"))]
    pub key: String,
    /// Numbers in it when it was last looked at; missing if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u64>,
    /// Raised whenever Redis forgot.
    pub epoch: u64,
}

/// Pools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = KnownPools))]
pub struct PoolList {
    /// Each pool that was ever asked for.
    pub pools: Vec<PoolStatus>,
}

/// What a program needs that takes from a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Attached))]
pub struct Attachment {
    /// The key of the list. Its marker is the hash `{KEY}:bates`.
    #[cfg_attr(feature = "schema", schema(example = "id-pool:PROJ:9012"))]
    pub key: String,
    /// The epoch that the marker must have.
    pub epoch: u64,
    /// The store that the marker must name: the field `store`.
    #[cfg_attr(feature = "schema", schema(example = "6f0c1f3e-8f1d-4f43-9c41-2b6f2b7f1a55"))]
    pub store: String,
}

/// Numbers as the list of a pool holds them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Values))]
pub struct PoolNumbers {
    /// As many as were asked for; fewer where the scope ends.
    pub values: Vec<String>,
}
