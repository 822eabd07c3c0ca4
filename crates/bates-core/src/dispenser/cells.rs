//! The cells of one shard. A table of places leads to chunks of cells, so a growing shard copies no cell, and an empty bucket
//! costs some bytes instead of a cell.

use hashbrown::HashTable;

use super::cell::Cell;

const CHUNK_LEN: usize = 64;

#[derive(Default)]
pub(super) struct Cells {
    table: HashTable<Place>,
    chunks: Vec<Vec<Option<Cell>>>,
    /// Places without a cell, in chunks before the end.
    free: Vec<Place>,
}

/// Where a cell stands, until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    #[inline]
    fn indexes(self) -> (usize, usize) {
        (self.0 as usize / CHUNK_LEN, self.0 as usize % CHUNK_LEN)
    }
}

impl Cells {
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, is: impl Fn(&Cell) -> bool) -> Option<Place> {
        let of = |place: &Place| {
            let (chunk, index) = place.indexes();
            self.chunks[chunk][index].as_ref().is_some_and(&is)
        };
        self.table.find(hash, of).copied()
    }

    #[inline]
    pub(super) fn at(&mut self, place: Place) -> &mut Cell {
        let (chunk, index) = place.indexes();
        self.chunks[chunk][index].as_mut().expect("a place has a cell until it is removed")
    }

    /// The caller made sure that there is no such cell.
    pub(super) fn insert(&mut self, hash: u64, cell: Cell, hash_of: impl Fn(&Cell) -> u64) -> Place {
        let place = self.free.pop().unwrap_or_else(|| self.next_place());
        let (chunk, index) = place.indexes();
        match self.chunks[chunk].get_mut(index) {
            Some(empty) => *empty = Some(cell),
            None => self.chunks[chunk].push(Some(cell)),
        }
        let chunks = &self.chunks;
        let rehash = |place: &Place| {
            let (chunk, index) = place.indexes();
            chunks[chunk][index].as_ref().map_or(0, &hash_of)
        };
        self.table.insert_unique(hash, place, rehash);
        place
    }

    /// The place behind the last one.
    fn next_place(&mut self) -> Place {
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK_LEN) {
            self.chunks.push(Vec::with_capacity(CHUNK_LEN));
        }
        let last = self.chunks.len() - 1;
        let place = u32::try_from(last * CHUNK_LEN + self.chunks[last].len());
        Place(place.expect("a shard has fewer than four billion cells"))
    }

    pub(super) fn remove(&mut self, hash: u64, place: Place) {
        if let Ok(entry) = self.table.find_entry(hash, |other| *other == place) {
            entry.remove();
            let (chunk, index) = place.indexes();
            self.chunks[chunk][index] = None;
            self.free.push(place);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Cell> {
        self.chunks.iter().flatten().flatten()
    }

    /// Removes the cells that `remove` selects, and the memory of many former ones.
    pub(super) fn sweep(
        &mut self,
        mut remove: impl FnMut(&mut Cell) -> bool,
        hash_of: impl Fn(&Cell) -> u64,
    ) {
        let mut is_any_removed = false;
        for cell in self.chunks.iter_mut().flatten() {
            if cell.as_mut().is_some_and(&mut remove) {
                (*cell, is_any_removed) = (None, true);
            }
        }
        if !is_any_removed {
            return;
        }
        let chunks = &self.chunks;
        let free = &mut self.free;
        self.table.retain(|place| {
            let (chunk, index) = place.indexes();
            let is_kept = chunks[chunk][index].is_some();
            if !is_kept {
                free.push(*place);
            }
            is_kept
        });
        if self.len() < self.chunks.len() * CHUNK_LEN / 4 {
            for cell in std::mem::take(self).chunks.into_iter().flatten().flatten() {
                self.insert(hash_of(&cell), cell, &hash_of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use bates_pattern::{Options, Pattern, Position};
    use proptest::prelude::*;

    use super::*;
    use crate::series::{Limits, Promise, Series};

    /// Few hashes, so that many cells share a bucket.
    fn hash(scope: &[u8]) -> u64 {
        u64::from(scope[0]) << 57 | u64::from(scope[0] % 4)
    }

    fn hash_of(cell: &Cell) -> u64 {
        hash(cell.scope())
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8),
        Remove(u8),
        /// Removes all cells from this one on.
        Sweep(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => any::<u8>().prop_map(Step::Insert),
            3 => any::<u8>().prop_map(Step::Remove),
            1 => any::<u8>().prop_map(Step::Sweep),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn each_cell_is_found_until_it_is_removed(steps in prop::collection::vec(step(), 1..800)) {
            let pattern = Pattern::compile("{seq}", Options::default()).unwrap();
            let start = Position::new(1).unwrap();
            let series = Series::new("a".parse().unwrap(), pattern, Promise::Unique, start, Limits::default());
            let (mut cells, mut model) = (Cells::default(), HashSet::new());
            let scope = |n: u8| format!("{}{n}", char::from(b'a' + n % 16));
            let find = |cells: &Cells, scope: &str| {
                cells.find(hash(scope.as_bytes()), |cell| cell.scope() == scope.as_bytes())
            };
            for step in steps {
                match step {
                    Step::Insert(n) => {
                        let scope = scope(n);
                        if model.insert(n) {
                            cells.insert(hash(scope.as_bytes()), Cell::new(series.clone(), &scope), hash_of);
                        }
                    }
                    Step::Remove(n) => {
                        let found = find(&cells, &scope(n));
                        prop_assert_eq!(found.is_some(), model.remove(&n));
                        if let Some(place) = found {
                            cells.remove(hash(scope(n).as_bytes()), place);
                        }
                    }
                    Step::Sweep(from) => {
                        let swept: HashSet<String> = model.extract_if(|n| *n >= from).map(scope).collect();
                        let is_swept = |cell: &mut Cell| {
                            swept.iter().any(|scope| scope.as_bytes() == cell.scope())
                        };
                        cells.sweep(is_swept, hash_of);
                    }
                }
                prop_assert_eq!((cells.len(), cells.iter().count()), (model.len(), model.len()));
                prop_assert!(cells.chunks.len() * CHUNK_LEN <= 256 + CHUNK_LEN, "places are used again");
            }
            for n in 0..=u8::MAX {
                let found = find(&cells, &scope(n)).map(|place| cells.at(place).scope().to_vec());
                prop_assert_eq!(found, model.contains(&n).then(|| scope(n).into_bytes()));
            }
        }
    }
}
