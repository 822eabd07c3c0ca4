//! The shared pools of a series: their settings, and their state in this process.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{FillError, FillOutcome, FillResult, PoolServer};
use crate::scope::{KeyTemplate, KeyTemplateError, ScopeKey, is_value};
use crate::series::{ListValue, SeriesName};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    pub key: KeyTemplate,
    pub value: ListValue,
    /// A pool at or below this level is filled.
    pub low: u64,
    pub amount: FillAmount,
    /// The scopes that have a pool even if no client requests one.
    pub scopes: Vec<ScopeMatcher>,
    /// How many lists the series may have.
    pub lists_max: usize,
}

/// The key of the lists of a series that names a pool which its operator offers, `acme:pool:acme.invoice:{project}`.
///
/// Invariant: two series never share a list: a name has no colon, and is the third part of the key.
pub fn offered_pool_key(series: &SeriesName, parameters: &[String]) -> Result<KeyTemplate, KeyTemplateError> {
    let tenant = series.as_str().split('.').next().unwrap_or_default();
    let mut key = format!("{tenant}:pool:{series}");
    for name in parameters {
        key.extend([":{", name, "}"]);
    }
    KeyTemplate::parse(&key)
}

/// The default of [`PoolSettings::lists_max`].
pub const LISTS_MAX: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillAmount {
    UpTo(u64),
    /// This many more, at any level.
    Batch(u64),
}

impl PoolSettings {
    /// How many numbers to push to a pool at this level; 0 unless it is low.
    pub fn refill_count(&self, level: u64) -> u64 {
        match self.amount {
            _ if level > self.low => 0,
            FillAmount::UpTo(size) => size.saturating_sub(level),
            FillAmount::Batch(count) => count,
        }
    }
}

/// Matches scopes by their parameters: each has a value, or `*` for any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeMatcher(Vec<(Box<str>, Box<str>)>);

const ANY: &str = "*";

impl ScopeMatcher {
    pub fn new(parameters: impl IntoIterator<Item = (Box<str>, Box<str>)>) -> Self {
        Self(parameters.into_iter().collect())
    }

    /// The parameters, if it matches exactly one scope.
    pub fn single_scope(&self) -> Option<Vec<(&str, &str)>> {
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

    /// The first value that the key of a list cannot hold.
    pub fn invalid_value(&self) -> Option<&str> {
        let is_invalid = |value: &str| value != ANY && !is_value(value);
        self.names_and_values().map(|(_, value)| value).find(|value| is_invalid(value))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    fn names_and_values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

pub struct PoolSet {
    pub(crate) server: Box<dyn PoolServer>,
    pub(crate) settings: PoolSettings,
    pub(crate) filling: Mutex<HashSet<ScopeKey>>,
    pub(crate) wake_filler: Notify,
    pub(crate) levels: Mutex<BTreeMap<ScopeKey, u64>>,
    pub(crate) is_up: AtomicBool,
    pushed: AtomicU64,
    renewed: AtomicU64,
    failed: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounts {
    pub pools: u64,
    /// Numbers in all of them.
    pub level: u64,
    /// Pools at or below `low`.
    pub low: u64,
    /// Numbers that this process pushed.
    pub pushed: u64,
    /// Pools that this process renewed.
    pub renewed: u64,
    pub failed: u64,
    /// Whether the server answered the last request.
    pub is_up: bool,
}

impl PoolSet {
    pub fn new(server: Box<dyn PoolServer>, settings: PoolSettings) -> Self {
        Self {
            server,
            settings,
            filling: Mutex::default(),
            wake_filler: Notify::new(),
            levels: Mutex::default(),
            is_up: AtomicBool::default(),
            pushed: AtomicU64::default(),
            renewed: AtomicU64::default(),
            failed: AtomicU64::default(),
        }
    }

    pub fn settings(&self) -> &PoolSettings {
        &self.settings
    }

    pub fn describe(&self) -> String {
        self.server.describe()
    }

    /// The key of the list; `None` if a parameter has a value that a key cannot hold.
    pub fn key(&self, scope: &ScopeKey) -> Option<Box<str>> {
        let value = |of: &str| scope.parts().0.find(|(name, _)| *name == of).map(|(_, value)| value);
        self.settings.key.write(value).map(Into::into)
    }

    /// Empties the list of a scope. Returns the first position past those pushed in its epoch.
    pub(super) async fn empty_list(&self, scope: &ScopeKey) -> Result<Option<u64>, FillError> {
        let Some(key) = self.key(scope) else { return Ok(None) };
        let status = self.server.status(std::slice::from_ref(&key)).await.map_err(FillError::Server)?;
        let Some(list) = status.lists.first().filter(|list| !list.is_of_other_store) else { return Ok(None) };
        // Bates did not fill a list without a marker.
        if let Some(epoch) = list.epoch {
            self.server.discard(&[(key, epoch)], &status.server).await.map_err(FillError::Server)?;
        }
        Ok(list.pushed_to)
    }

    pub fn counts(&self) -> PoolCounts {
        let levels = self.levels.lock();
        PoolCounts {
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

    pub(crate) fn count_outcome(&self, filled: &FillResult) {
        let is_renewed = matches!(filled, Ok(FillOutcome::Done { renewed: true, .. }));
        self.renewed.fetch_add(is_renewed.into(), Ordering::Relaxed);
        self.failed.fetch_add(filled.is_err().into(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(low: u64, amount: FillAmount) -> PoolSettings {
        let key = KeyTemplate::parse("pool").unwrap();
        PoolSettings { key, value: ListValue::Id, low, amount, scopes: vec![], lists_max: LISTS_MAX }
    }

    #[test]
    fn a_pool_is_filled_at_its_watermark_and_not_before() {
        let up_to = settings(250, FillAmount::UpTo(1_000));
        assert_eq!([0, 250, 251, 2_000].map(|level| up_to.refill_count(level)), [1_000, 750, 0, 0]);
        let batch = settings(20, FillAmount::Batch(50));
        assert_eq!([0, 20, 21].map(|level| batch.refill_count(level)), [50, 50, 0]);
    }

    #[test]
    fn lists_of_two_series_never_meet() {
        let names = ["pool", "pool.pool", "pool.y", "acme", "acme.pool", "acme.y", "acme.pool.y", "y"];
        let parameters: [&[&str]; 4] = [&[], &["a"], &["a", "b"], &["b"]];
        let key = |name: &str, parameters: &[&str]| {
            let parameters: Vec<String> = parameters.iter().map(|&name| name.to_owned()).collect();
            offered_pool_key(&name.parse().unwrap(), &parameters).unwrap()
        };
        for one in names {
            for other in names.into_iter().filter(|other| *other != one) {
                for (first, second) in parameters.iter().flat_map(|it| parameters.map(|other| (it, other))) {
                    let (first, second) = (key(one, first), key(other, second));
                    assert!(!first.may_overlap(&second), "{first} and {second}");
                }
            }
        }
        assert_eq!(key("acme.invoice", &["project"]).to_string(), "acme:pool:acme.invoice:{project}");
    }

    #[test]
    fn a_matcher_matches_scopes_with_exactly_its_parameters() {
        let of = |pairs: &[(&str, &str)]| {
            ScopeMatcher::new(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())))
        };
        let key = |text| ScopeKey::from_store(text);
        let any = of(&[("type", "*"), ("project", "P")]);
        assert!(any.matches(&key("project=P type=1")) && any.single_scope().is_none());
        for other in ["project=Q type=1", "project=P", "project=P type=1 tenant=x", ""] {
            assert!(!any.matches(&key(other)), "{other}");
        }
        assert_eq!(of(&[("a", "1")]).single_scope(), Some(vec![("a", "1")]));
        assert!(of(&[]).matches(&key("")) && of(&[]).single_scope().is_some());
    }
}
