//! The shared pools of a series as a process knows them.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{FillError, Filled, PoolSettings, SharedPool};
use crate::scope::ScopeKey;

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
