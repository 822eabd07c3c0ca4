//! The description of the pools of a series in a configuration.

use std::collections::BTreeMap;

use bates_core::{
    FillAmount, KeyTemplate, KeyTemplateError, LISTS_MAX, ListValue, PoolServer as _, PoolSettings,
    ScopeMatcher,
};
use serde::Deserialize;
use uuid::Uuid;

use crate::RedisPool;

const SIZE_MAX: u64 = 100_000_000;
const LISTS_MAX_HIGHEST: usize = 1_000_000;

/// Default of `refill_at`, in percent of `size`.
const REFILL_AT: u8 = 25;

/// Either `size` with `refill_at`, or `low` with `batch`. Without `key` and `scopes`, several series may name it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolDescription {
    redis: Box<str>,
    key: Option<Box<str>>,
    size: Option<u64>,
    refill_at: Option<Share>,
    low: Option<u64>,
    batch: Option<u64>,
    value: Option<Box<str>>,
    lists_max: Option<usize>,
    #[serde(default)]
    scopes: Vec<BTreeMap<Box<str>, Box<str>>>,
}

/// `25%`, or 25.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Share {
    Percent(u64),
    Text(Box<str>),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolDescriptionError {
    #[error("redis: {0}")]
    Address(Box<str>),
    #[error(transparent)]
    Key(#[from] KeyTemplateError),
    #[error("key: expected the key of a list for each scope, such as keys:{{project}}")]
    NoKey,
    #[error("lists_max: expected 1 to 1,000,000, not {0}")]
    ListsMax(usize),
    #[error("{0}")]
    Size(&'static str),
    #[error("refill_at: invalid share {0:?}: expected 1% to 99%")]
    Share(Box<str>),
    #[error("value: unknown value {0:?}: expected id or seq")]
    Value(Box<str>),
}

impl PoolDescription {
    /// The address without its password, if it is valid.
    pub fn address(&self) -> Result<String, PoolDescriptionError> {
        self.open(Uuid::nil()).map(|pool| pool.describe())
    }

    /// Does not connect yet.
    pub fn open(&self, store: Uuid) -> Result<RedisPool, PoolDescriptionError> {
        RedisPool::new(&self.redis, store)
    }

    /// Whether both addresses name the same server and database.
    pub fn has_same_address(&self, other: &Self) -> bool {
        let address = |one: &Self| one.open(Uuid::nil()).map(|pool| pool.address()).ok();
        address(self) == address(other)
    }

    pub fn names_lists(&self) -> bool {
        self.key.is_some() || !self.scopes.is_empty()
    }

    /// `value` is the default for whether a list holds whole numbers or their sequence parts.
    pub fn settings(&self, value: ListValue) -> Result<PoolSettings, PoolDescriptionError> {
        let key = self.key.as_deref().ok_or(PoolDescriptionError::NoKey)?;
        self.settings_with_key(value, KeyTemplate::parse(key)?)
    }

    /// For lists that the description does not name.
    pub fn settings_with_key(
        &self,
        value: ListValue,
        key: KeyTemplate,
    ) -> Result<PoolSettings, PoolDescriptionError> {
        let (low, amount) = self.sizes()?;
        let value = match self.value.as_deref() {
            None => value,
            Some("id") => ListValue::Id,
            Some("seq") => ListValue::Seq,
            Some(other) => return Err(PoolDescriptionError::Value(other.into())),
        };
        let scopes = self.scopes.iter().map(|scope| ScopeMatcher::new(scope.clone())).collect();
        let lists_max = self.lists_max.unwrap_or(LISTS_MAX);
        if !(1..=LISTS_MAX_HIGHEST).contains(&lists_max) {
            return Err(PoolDescriptionError::ListsMax(lists_max));
        }
        Ok(PoolSettings { key, value, low, amount, scopes, lists_max })
    }

    /// At which level a list is filled, and how.
    pub fn sizes(&self) -> Result<(u64, FillAmount), PoolDescriptionError> {
        let (is_bad, wrong) = (|size| size == 0 || size > SIZE_MAX, PoolDescriptionError::Size);
        match (self.size, self.low, self.batch) {
            (Some(size), None, None) if is_bad(size) => Err(wrong("size: expected 1 to 100,000,000")),
            (Some(size), None, None) => Ok((size * self.share()? / 100, FillAmount::UpTo(size))),
            (None, Some(low), Some(batch)) if is_bad(batch) || low.saturating_add(batch) > SIZE_MAX => {
                Err(wrong("low and batch: expected at most 100,000,000 together"))
            }
            (None, Some(low), Some(batch)) if self.refill_at.is_none() => Ok((low, FillAmount::Batch(batch))),
            _ => Err(wrong("expected size, with or without refill_at, or low and batch")),
        }
    }

    fn share(&self) -> Result<u64, PoolDescriptionError> {
        let (percent, text) = match &self.refill_at {
            None => (Some(REFILL_AT.into()), "".into()),
            Some(Share::Percent(percent)) => (Some(*percent), percent.to_string().into()),
            Some(Share::Text(text)) => {
                (text.strip_suffix('%').and_then(|n| n.trim().parse().ok()), text.clone())
            }
        };
        percent.filter(|percent| (1..100).contains(percent)).ok_or(PoolDescriptionError::Share(text))
    }
}

impl std::fmt::Debug for PoolDescription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        f.debug_struct("PoolDescription").field("key", &self.key).finish_non_exhaustive()
    }
}
