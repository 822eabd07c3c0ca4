//! The shared pools of a series: how they are configured, and what a process knows of them.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{FillError, Filled, SharedPool};
use crate::scope::{KeyTemplate, ScopeKey, is_value};
use crate::series::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    pub key: KeyTemplate,
    pub value: Value,
    /// A pool at or below this level is filled.
    pub low: u64,
    pub amount: Amount,
    /// The scopes that have a pool without being asked for.
    pub scopes: Vec<ScopeMatch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    UpTo(u64),
    /// This many more, whatever the level.
    Batch(u64),
}

impl PoolSettings {
    /// How many numbers a pool at this level lacks; 0 unless it is low.
    pub fn lacks(&self, level: u64) -> u64 {
        match self.amount {
            _ if level > self.low => 0,
            Amount::UpTo(size) => size.saturating_sub(level),
            Amount::Batch(count) => count,
        }
    }
}

/// Scopes that have a pool: parameters by name, each a value or `*` for any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeMatch(Vec<(Box<str>, Box<str>)>);

const ANY: &str = "*";

impl ScopeMatch {
    pub fn new(parameters: impl IntoIterator<Item = (Box<str>, Box<str>)>) -> Self {
        Self(parameters.into_iter().collect())
    }

    /// The parameters, if it matches exactly one scope.
    pub fn one(&self) -> Option<Vec<(&str, &str)>> {
        let is_one = self.0.iter().all(|(_, value)| **value != *ANY);
        is_one.then(|| self.names_and_values().collect())
    }

    pub fn matches(&self, scope: &ScopeKey) -> bool {
        let (parameters, _) = scope.parts();
        let parameters: Vec<(&str, &str)> = parameters.collect();
        let is_met = |(name, value): (&str, &str)| {
            parameters.iter().any(|(other, found)| *other == name && (value == ANY || *found == value))
        };
        parameters.len() == self.0.len() && self.names_and_values().all(is_met)
    }

    /// The first value that no key of a list could hold.
    pub fn strange(&self) -> Option<&str> {
        let is_strange = |value: &str| value != ANY && !is_value(value);
        self.names_and_values().map(|(_, value)| value).find(|value| is_strange(value))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    fn names_and_values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

pub struct KeptPools {
    pub(crate) list: Box<dyn SharedPool>,
    pub(crate) settings: PoolSettings,
    pub(crate) under_way: Mutex<HashSet<ScopeKey>>,
    pub(crate) asked: Notify,
    pub(crate) levels: Mutex<BTreeMap<ScopeKey, u64>>,
    pub(crate) is_up: AtomicBool,
    pushed: AtomicU64,
    renewed: AtomicU64,
    failed: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolTally {
    pub pools: u64,
    /// Numbers in all of them.
    pub level: u64,
    /// Pools at or below their watermark.
    pub low: u64,
    /// Numbers that this process pushed.
    pub pushed: u64,
    /// Pools that this process renewed.
    pub renewed: u64,
    pub failed: u64,
    /// Whether the server answered the last request.
    pub is_up: bool,
}

impl KeptPools {
    pub fn new(list: Box<dyn SharedPool>, settings: PoolSettings) -> Self {
        Self {
            list,
            settings,
            under_way: Mutex::default(),
            asked: Notify::new(),
            levels: Mutex::default(),
            is_up: AtomicBool::new(false),
            pushed: AtomicU64::new(0),
            renewed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    pub fn settings(&self) -> &PoolSettings {
        &self.settings
    }

    pub fn describe(&self) -> String {
        self.list.describe()
    }

    /// `None` if a parameter holds what keys cannot.
    pub fn key(&self, scope: &ScopeKey) -> Option<Box<str>> {
        let value_of =
            |wanted: &str| scope.parts().0.find(|(name, _)| *name == wanted).map(|(_, value)| value);
        self.settings.key.write(value_of).map(Into::into)
    }

    pub fn tally(&self) -> PoolTally {
        let levels = self.levels.lock();
        PoolTally {
            pools: levels.len() as u64,
            level: levels.values().sum(),
            low: levels.values().filter(|level| **level <= self.settings.low).count() as u64,
            pushed: self.pushed.load(Ordering::Relaxed),
            renewed: self.renewed.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            is_up: self.is_up.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn count_pushed(&self, numbers: u64) {
        self.pushed.fetch_add(numbers, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, filled: &Result<Filled, FillError>) {
        let is_renewed = matches!(filled, Ok(Filled::Done { renewed: true, .. }));
        self.renewed.fetch_add(is_renewed.into(), Ordering::Relaxed);
        self.failed.fetch_add(filled.is_err().into(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(low: u64, amount: Amount) -> PoolSettings {
        let key = KeyTemplate::parse("pool").unwrap();
        PoolSettings { key, value: Value::Id, low, amount, scopes: vec![] }
    }

    #[test]
    fn a_pool_is_filled_at_its_watermark_and_not_before() {
        let up_to = settings(250, Amount::UpTo(1_000));
        assert_eq!([0, 250, 251, 2_000].map(|level| up_to.lacks(level)), [1_000, 750, 0, 0]);
        let batch = settings(20, Amount::Batch(50));
        assert_eq!([0, 20, 21].map(|level| batch.lacks(level)), [50, 50, 0]);
    }

    #[test]
    fn a_match_means_scopes_with_exactly_its_parameters() {
        let of = |pairs: &[(&str, &str)]| {
            ScopeMatch::new(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())))
        };
        let key = |text| ScopeKey::from_store(text);
        let any = of(&[("type", "*"), ("project", "P")]);
        assert!(any.matches(&key("project=P type=1")) && any.one().is_none());
        for other in ["project=Q type=1", "project=P", "project=P type=1 tenant=x", ""] {
            assert!(!any.matches(&key(other)), "{other}");
        }
        assert_eq!(of(&[("a", "1")]).one(), Some(vec![("a", "1")]));
        assert!(of(&[]).matches(&key("")) && of(&[]).one().is_some());
    }
}
