//! The scopes in memory, by place: sixty-four maps with a lock each, so that callers seldom meet.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap};
use parking_lot::RwLock;

use super::cell::Cell;
use crate::name::SeriesName;
use crate::place::{Place, ScopeKey};

const SHARDS: usize = 64;

pub(super) struct Shards {
    hasher: RandomState,
    shards: [RwLock<HashMap<Place, Arc<Cell>, RandomState>>; SHARDS],
}

/// A place that is asked for without being built.
#[derive(Clone, Copy)]
struct At<'a> {
    series: &'a SeriesName,
    scope: &'a str,
}

/// Invariant: hashes as [`Place`] does: its fields in their order.
impl Hash for At<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.series.hash(state);
        self.scope.hash(state);
    }
}

impl Equivalent<Place> for At<'_> {
    fn equivalent(&self, place: &Place) -> bool {
        *self.series == place.series && *self.scope == *place.scope.as_str()
    }
}

impl Shards {
    pub(super) fn new() -> Self {
        let hasher = RandomState::default();
        let shards = std::array::from_fn(|_| RwLock::new(HashMap::with_hasher(hasher.clone())));
        Self { hasher, shards }
    }

    pub(super) fn find(&self, series: &SeriesName, scope: &str) -> Option<Arc<Cell>> {
        self.look(series, scope, Arc::clone)
    }

    /// Looks at a cell under the shard's lock, without counting a reference to it: for the hot path.
    pub(super) fn look<R>(
        &self,
        series: &SeriesName,
        scope: &str,
        look: impl FnOnce(&Arc<Cell>) -> R,
    ) -> Option<R> {
        let at = At { series, scope };
        self.shard(&at).read().get(&at).map(look)
    }

    pub(super) fn find_or_insert(
        &self,
        series: &SeriesName,
        scope: &ScopeKey,
        new: impl FnOnce(Place) -> Cell,
    ) -> Arc<Cell> {
        let at = At { series, scope: scope.as_str() };
        let mut shard = self.shard(&at).write();
        if let Some(cell) = shard.get(&at) {
            return cell.clone();
        }
        let place = Place { series: series.clone(), scope: scope.clone() };
        let cell = Arc::new(new(place.clone()));
        shard.insert(place, cell.clone());
        cell
    }

    /// Removes the cell of a place if `remove` says so; it is asked under the shard's lock.
    pub(super) fn remove_if(&self, place: &Place, remove: impl FnOnce(&Cell) -> bool) {
        let at = At { series: &place.series, scope: place.scope.as_str() };
        let mut shard = self.shard(&at).write();
        if shard.get(&at).is_some_and(|cell| remove(cell)) {
            shard.remove(&at);
        }
    }

    /// Removes the cells for which `remove` says so; it is asked under the shard's lock.
    pub(super) fn sweep(&self, mut remove: impl FnMut(&Cell) -> bool) {
        for shard in &self.shards {
            shard.write().retain(|_, cell| !remove(cell));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().len()).sum()
    }

    fn shard(&self, at: &At<'_>) -> &RwLock<HashMap<Place, Arc<Cell>, RandomState>> {
        // The maps use the low bits of the hash for their own buckets; these are the high ones.
        &self.shards[(self.hasher.hash_one(at) >> 58) as usize % SHARDS]
    }
}
