//! The cells, one for each scope in memory: 64 tables with a lock each, so that callers seldom wait for each other.
//!
//! Invariant: a cell is only seen under the lock of its shard, so no caller holds one that was removed.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::fast::FixedState;
use parking_lot::{Mutex, MutexGuard};

use super::cell::Cell;
use super::cells::{Cells, Place};
use crate::series::Series;

const SHARDS: usize = 64;

pub(super) struct Shards {
    hasher: FixedState,
    tables: Box<[Shard]>,
    /// Max cells of one shard. Scopes spread evenly, so together they are about 64 times as many.
    cells_max: AtomicUsize,
}

/// Why a missing cell was not created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoCell {
    /// The caller forbids it.
    Forbidden,
    /// As many scopes are in memory as may be.
    Full,
}

/// On its own cache line, to avoid false sharing.
#[derive(Default)]
#[repr(align(64))]
struct Shard(Mutex<Cells>);

/// The identity of a cell, borrowed.
#[derive(Clone, Copy)]
pub(super) struct CellId<'a> {
    pub(super) series: &'a Series,
    pub(super) scope: &'a str,
}

impl CellId<'_> {
    #[inline]
    fn matches(&self, cell: &Cell) -> bool {
        cell.scope() == self.scope.as_bytes() && cell.series.has_name_of(self.series)
    }
}

impl Shards {
    /// The seed keeps callers from choosing scopes that share a shard.
    pub(super) fn new(seed: u64) -> Self {
        let tables = (0..SHARDS).map(|_| Shard::default()).collect();
        let cells_max = AtomicUsize::new(usize::MAX);
        Self { hasher: FixedState::with_seed(seed), tables, cells_max }
    }

    pub(super) fn limit_len(&self, len_max: usize) {
        self.cells_max.store(len_max.div_ceil(SHARDS).max(1), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn with_cell<R>(&self, id: CellId<'_>, visit: impl FnOnce(&mut Cell) -> R) -> Option<R> {
        let hash = hash(&self.hasher, id.series, id.scope.as_bytes());
        let mut cells = self.shard(hash).lock();
        let place = cells.find(hash, |cell| id.matches(cell))?;
        Some(visit(cells.at(place)))
    }

    /// Visits a cell, created if it is missing, and prunes it; fails if `may_create`, called under the lock, forbids it.
    pub(super) fn with_cell_or_new<R>(
        &self,
        id: CellId<'_>,
        may_create: impl FnOnce() -> bool,
        visit: impl FnOnce(&mut Cell) -> R,
    ) -> Result<R, NoCell> {
        let hash_value = hash(&self.hasher, id.series, id.scope.as_bytes());
        let mut cells = self.shard(hash_value).lock();
        if !may_create() {
            return Err(NoCell::Forbidden);
        }
        let place = match cells.find(hash_value, |cell| id.matches(cell)) {
            Some(place) => place,
            None if cells.len() >= self.cells_max.load(Ordering::Relaxed) => return Err(NoCell::Full),
            None => {
                let cell = Cell::new(id.series.clone(), id.scope);
                cells.insert(hash_value, cell, |cell| self.hash_of(cell))
            }
        };
        Ok(visit_then_prune(cells, hash_value, place, visit))
    }

    /// Visits a cell if it exists, and removes it if it is removable afterwards.
    pub(super) fn visit_then_prune<R>(
        &self,
        id: CellId<'_>,
        visit: impl FnOnce(&mut Cell) -> R,
    ) -> Option<R> {
        let hash = hash(&self.hasher, id.series, id.scope.as_bytes());
        let cells = self.shard(hash).lock();
        let place = cells.find(hash, |cell| id.matches(cell))?;
        Some(visit_then_prune(cells, hash, place, visit))
    }

    pub(super) fn each(&self, mut visit: impl FnMut(&Cell)) {
        for shard in &self.tables {
            shard.0.lock().iter().for_each(&mut visit);
        }
    }

    pub(super) fn any(&self, matches: impl Fn(&Cell) -> bool) -> bool {
        self.tables.iter().any(|shard| shard.0.lock().iter().any(&matches))
    }

    /// Removes the cells that `remove` selects; called under the shard's lock.
    pub(super) fn sweep(&self, mut remove: impl FnMut(&mut Cell) -> bool) {
        for shard in &self.tables {
            shard.0.lock().sweep(&mut remove, |cell| self.hash_of(cell));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.tables.iter().map(|shard| shard.0.lock().len()).sum()
    }

    fn hash_of(&self, cell: &Cell) -> u64 {
        hash(&self.hasher, &cell.series, cell.scope())
    }

    #[inline]
    fn shard(&self, hash: u64) -> &Mutex<Cells> {
        // The tables use the low bits for buckets and the highest seven to tell cells apart; these lie between.
        &self.tables[(hash >> 48) as usize % SHARDS].0
    }
}

fn visit_then_prune<R>(
    mut cells: MutexGuard<'_, Cells>,
    hash: u64,
    place: Place,
    visit: impl FnOnce(&mut Cell) -> R,
) -> R {
    let cell = cells.at(place);
    let output = visit(cell);
    if cell.is_removable() {
        cells.remove(hash, place);
    }
    output
}

#[inline]
fn hash(hasher: &FixedState, series: &Series, scope: &[u8]) -> u64 {
    let mut hash = hasher.build_hasher();
    hash.write(series.name().as_str().as_bytes());
    hash.write(scope);
    hash.finish()
}

#[cfg(test)]
mod tests {
    use bates_pattern::{Options, Pattern, Position};

    use super::*;
    use crate::dispenser::TakeRequest;
    use crate::series::{Limits, Promise};

    fn series(name: &str) -> Series {
        let pattern = Pattern::compile("{seq}", Options::default()).unwrap();
        let start = Position::new(1).unwrap();
        Series::new(name.parse().unwrap(), pattern, Promise::Unique, start, Limits::default())
    }

    #[test]
    fn each_scope_has_one_cell_of_its_own() {
        let shards = Shards::new(1);
        let scopes: Vec<String> = (0..2_000).map(|n| format!("name={}{n}", "x".repeat(n % 40))).collect();
        for name in ["a", "b", "a"] {
            let take = |cell: &mut Cell| cell.take(TakeRequest::Any(1), false).map(drop);
            // A changed series has the scopes of its name.
            let series = series(name);
            for scope in &scopes {
                let made = shards.with_cell_or_new(CellId { series: &series, scope }, || true, take);
                assert!(made.is_ok());
            }
        }
        assert_eq!(shards.len(), 4_000);
        shards.sweep(|cell| cell.series.name().as_str() == "b");
        let a = series("a");
        assert!(scopes.iter().all(|scope| shards.with_cell(CellId { series: &a, scope }, |_| ()).is_some()));
        assert_eq!(shards.len(), 2_000);
    }

    #[test]
    fn an_unused_cell_is_removed_and_none_is_made_without_permission() {
        let (shards, series) = (Shards::new(1), series("a"));
        let id = CellId { series: &series, scope: "name=a" };
        assert_eq!(shards.with_cell_or_new(id, || false, |_| ()), Err(NoCell::Forbidden));
        assert_eq!(shards.with_cell_or_new(id, || true, |_| ()), Ok(()), "made, and then removed unused");
        assert_eq!(shards.len(), 0);
    }

    #[test]
    fn scopes_beyond_the_limit_are_refused_and_those_in_memory_go_on() {
        let (shards, series) = (Shards::new(1), series("a"));
        shards.limit_len(640);
        let take = |scope: &str| {
            let take = |cell: &mut Cell| cell.take(TakeRequest::Any(1), false).map(drop);
            shards.with_cell_or_new(CellId { series: &series, scope }, || true, take).map(drop)
        };
        let scopes: Vec<String> = (0..10_000).map(|n| format!("name={n}")).collect();
        let made: Vec<&String> = scopes.iter().filter(|scope| take(scope).is_ok()).collect();
        assert_eq!((made.len(), shards.len()), (640, 640), "each shard is full");
        assert!(made.iter().all(|scope| take(scope).is_ok()));
        shards.sweep(|cell| cell.scope() == made[0].as_bytes());
        assert_eq!((take(made[0]), shards.len()), (Ok(()), 640), "one left, one may come");
    }

    #[test]
    fn a_cell_fits_one_and_a_half_cache_lines() {
        assert_eq!(size_of::<Cell>(), 96);
    }
}
