//! Shared pools: lists of numbers in Redis, and the marker of each list.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::number::default_count;
use crate::scope::Parameters;
use crate::whole::whole;

/// The Redis key of the marker of a list: a hash with the epoch and the store. The braces are a hash tag, so that a Redis
/// cluster puts the marker into the slot of its list, whose key has no braces.
pub fn marker_key(list: &str) -> String {
    format!("{{{list}}}:bates")
}

/// A pool to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PoolRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
}

/// A program that is about to take numbers from a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AttachRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
    /// The `run_id` of the Redis server that the program is connected to.
    pub run_id: Box<str>,
    /// The `master_replid` of that server.
    pub replication_id: Box<str>,
}

/// Numbers to take from Bates instead of from a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PoolNumberRequest {
    /// A value for each parameter of the series.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, String>, example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: Parameters,
    /// How many numbers.
    #[serde(default = "default_count", deserialize_with = "whole")]
    #[cfg_attr(feature = "schema", schema(default = 1, minimum = 1, maximum = 100_000))]
    pub count: u64,
}

/// A pool and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PoolStatus {
    /// The series.
    pub series: String,
    /// The parameters of the scope.
    #[cfg_attr(feature = "schema", schema(example = json!({"project": "PROJ", "type": "9012"})))]
    pub scope: BTreeMap<String, String>,
    /// The Redis key of the list.
    #[cfg_attr(feature = "schema", schema(example = "id-pool:PROJ:9012"))]
    pub key: String,
    /// How many numbers the list had when the server last checked; absent before the first check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u64>,
    /// The epoch, which the server raises whenever Redis has lost data.
    pub epoch: u64,
}

/// The pools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PoolList {
    /// Every pool that was ever requested.
    pub pools: Vec<PoolStatus>,
}

/// What a program needs in order to take numbers from a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Attachment {
    /// The Redis key of the list. The marker of the list is the hash `{KEY}:bates`.
    #[cfg_attr(feature = "schema", schema(example = "id-pool:PROJ:9012"))]
    pub key: String,
    /// The epoch that the marker must have.
    pub epoch: u64,
    /// The value that the field `store` of the marker must have.
    #[cfg_attr(feature = "schema", schema(example = "6f0c1f3e-8f1d-4f43-9c41-2b6f2b7f1a55"))]
    pub store: String,
}

/// Numbers in the form in which the list of the pool holds them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PoolNumbers {
    /// As many numbers as requested, or fewer if the scope ends.
    pub values: Vec<String>,
}
