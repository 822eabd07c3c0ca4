//! One shard of the buffer: a chunk of positions that threads take with one atomic subtraction and without the lock.
//!
//! The word of a shard holds the end of its chunk, as an offset from a base that never changes, and how many positions are
//! left. A thread subtracts one, and the value before gives its position, or none, however long the thread then sleeps.
//!
//! Invariant: a position leaves a chunk once, by a subtraction or by the swap in [`Shard::close`], which returns what no
//! subtraction took. Only the holder of the buffer's lock opens and closes.
//!
//! Invariant: a thread that subtracts from a used-up chunk must call [`Shard::close`] under the lock before it tries again.
//! So there are at most as many subtractions in vain as threads, and a word tolerates [`IN_VAIN_MAX`].

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The low bits of a word count the positions that are left; the others are the offset of the chunk's end.
const LEFT_BITS: u32 = 24;
const LEFT_MASK: u64 = (1 << LEFT_BITS) - 1;

/// Offsets are below this. Positions outside the window are taken under the lock.
const WINDOW: u64 = 1 << (u64::BITS - LEFT_BITS);

pub(crate) const CHUNK_MAX: u64 = 1 << 16;

/// Max subtractions in vain. Linux allows 2^22 threads.
const IN_VAIN_MAX: u64 = LEFT_MASK - CHUNK_MAX;
const _: () = assert!(IN_VAIN_MAX > 1 << 23);

const CLOSED: u64 = 0;

/// An atomic integer: the standard one, or loom's.
pub(crate) trait Word: From<u64> {
    fn load(&self) -> u64;
    fn subtract_one(&self) -> u64;
    fn swap(&self, value: u64) -> u64;
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    #[inline]
    fn subtract_one(&self) -> u64 {
        self.fetch_sub(1, Ordering::AcqRel)
    }

    fn swap(&self, value: u64) -> u64 {
        self.swap(value, Ordering::AcqRel)
    }
}

/// A chunk of positions, on cache lines of its own.
#[repr(align(128))]
pub(crate) struct Shard<W = AtomicU64> {
    word: W,
    /// Set by the first chunk. Invariant: written before the word that needs it, and never changed.
    base: W,
}

/// No base yet: positions are far below.
const NO_BASE: u64 = u64::MAX;

impl<W: Word> Shard<W> {
    pub(crate) fn new() -> Self {
        Self { word: W::from(CLOSED), base: W::from(NO_BASE) }
    }

    /// A position of the chunk, or `None` if the chunk is used up.
    #[inline]
    pub(crate) fn take(&self) -> Option<u64> {
        let word = self.word.subtract_one();
        let left = word & LEFT_MASK;
        (left.wrapping_sub(1) < CHUNK_MAX).then(|| self.position(word, left))
    }

    pub(crate) fn can_hold(&self, chunk: &Range<u64>) -> bool {
        let base = self.base_for(chunk.start);
        base <= chunk.start && chunk.end - base < WINDOW && chunk.end - chunk.start <= CHUNK_MAX
    }

    /// Gives a closed shard a chunk that it can hold. The caller has the lock.
    pub(crate) fn open(&self, chunk: &Range<u64>) {
        debug_assert!(self.can_hold(chunk) && self.left().is_none());
        let base = self.base_for(chunk.start);
        self.base.swap(base);
        self.word.swap((chunk.end - base) << LEFT_BITS | (chunk.end - chunk.start));
    }

    /// Closes the shard and takes out the rest of its chunk. The caller has the lock.
    pub(crate) fn close(&self) -> Option<Range<u64>> {
        self.rest_of(self.word.swap(CLOSED))
    }

    pub(crate) fn left(&self) -> Option<Range<u64>> {
        self.rest_of(self.word.load())
    }

    fn rest_of(&self, word: u64) -> Option<Range<u64>> {
        let left = word & LEFT_MASK;
        if left.wrapping_sub(1) >= CHUNK_MAX {
            return None;
        }
        let first = self.position(word, left);
        Some(first..first + left)
    }

    #[inline]
    fn position(&self, word: u64, left: u64) -> u64 {
        self.base.load() + (word >> LEFT_BITS) - left
    }

    /// The base; a first chunk at `first` sets it half a window below.
    fn base_for(&self, first: u64) -> u64 {
        match self.base.load() {
            NO_BASE => first.saturating_sub(WINDOW / 2),
            base => base,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Word for loom::sync::atomic::AtomicU64 {
        fn load(&self) -> u64 {
            self.load(Ordering::Relaxed)
        }

        fn subtract_one(&self) -> u64 {
            self.fetch_sub(1, Ordering::AcqRel)
        }

        fn swap(&self, value: u64) -> u64 {
            self.swap(value, Ordering::AcqRel)
        }
    }

    /// A shard, and the positions behind its lock.
    struct Model {
        shard: Shard<loom::sync::atomic::AtomicU64>,
        behind: loom::sync::Mutex<Vec<Range<u64>>>,
    }

    impl Model {
        fn new(chunks: &[Range<u64>]) -> loom::sync::Arc<Self> {
            let behind = loom::sync::Mutex::new(chunks.to_vec());
            loom::sync::Arc::new(Self { shard: Shard::new(), behind })
        }

        fn take(&self) -> Option<u64> {
            if let Some(position) = self.shard.take() {
                return Some(position);
            }
            let mut chunks = self.behind.lock().expect("no thread panicked");
            chunks.extend(self.shard.close());
            let mut chunk = chunks.pop()?;
            let position = chunk.start;
            chunk.start += 1;
            if chunk.start < chunk.end {
                self.shard.open(&chunk);
            }
            Some(position)
        }

        /// A thread does this when everything else is empty.
        fn steal(&self) -> Option<Range<u64>> {
            let _behind = self.behind.lock().expect("no thread panicked");
            self.shard.close()
        }
    }

    fn assert_each_once(model: &Model, mut taken: Vec<u64>, expected: std::ops::RangeInclusive<u64>) {
        taken.extend(model.steal().into_iter().flatten());
        let behind = model.behind.lock().expect("no thread panicked");
        taken.extend(behind.iter().cloned().flatten());
        taken.sort_unstable();
        assert_eq!(taken, expected.collect::<Vec<_>>());
    }

    #[test]
    fn two_threads_take_every_position_once_while_chunks_are_exchanged() {
        loom::model(|| {
            let model = Model::new(&[5..7, 3..5, 1..3]);
            let other = model.clone();
            let thread = loom::thread::spawn(move || [other.take(), other.take()]);
            let mine = [model.take(), model.take()];
            let taken = mine.into_iter().chain(thread.join().unwrap()).flatten().collect();
            assert_each_once(&model, taken, 1..=6);
        });
    }

    #[test]
    fn a_stolen_rest_is_not_taken_as_well() {
        loom::model(|| {
            let model = Model::new(std::slice::from_ref(&(1..5)));
            let first = model.take();
            let other = model.clone();
            let thread = loom::thread::spawn(move || {
                let stolen = other.steal();
                other.behind.lock().unwrap().extend(stolen);
                other.take()
            });
            let mine = [first, model.take(), model.take()];
            let taken = mine.into_iter().chain([thread.join().unwrap()]).flatten().collect();
            assert_each_once(&model, taken, 1..=4);
        });
    }

    /// A thread may sleep after its subtraction while the chunk is exchanged any number of times.
    #[test]
    fn a_position_that_was_taken_stays_taken_through_ten_thousand_exchanges() {
        let shard = Shard::<AtomicU64>::new();
        shard.open(&(10..20));
        let word = shard.word.subtract_one();
        let mut others = shard.close().expect("nine are left");
        for _ in 0..10_000 {
            shard.open(&others);
            others = shard.close().expect("none of them was taken");
        }
        let left = word & LEFT_MASK;
        assert_eq!((left, shard.position(word, left), others), (10, 10, 11..20));
    }

    #[test]
    fn subtractions_in_vain_yield_nothing_and_are_forgotten_when_the_shard_is_closed() {
        let shard = Shard::<AtomicU64>::new();
        shard.open(&(10..12));
        assert_eq!([shard.take(), shard.take()], [Some(10), Some(11)]);
        for _ in 0..IN_VAIN_MAX {
            assert_eq!((shard.take(), shard.left()), (None, None));
        }
        assert_eq!(shard.close(), None);
        shard.open(&(20..22));
        assert_eq!([shard.take(), shard.take(), shard.take()], [Some(20), Some(21), None]);
    }

    #[test]
    fn a_shard_holds_positions_up_to_half_a_window_away_from_its_first() {
        let shard = Shard::<AtomicU64>::new();
        let first = WINDOW * 3;
        shard.open(&(first..first + 1));
        assert_eq!((shard.take(), shard.close()), (Some(first), None));
        let (lowest, highest) = (first - WINDOW / 2, first + WINDOW / 2 - 1);
        assert!(!shard.can_hold(&(lowest - 1..lowest)) && !shard.can_hold(&(highest..highest + 1)));
        for chunk in [lowest..lowest + 2, highest - 2..highest] {
            assert!(shard.can_hold(&chunk));
            shard.open(&chunk);
            assert_eq!((shard.take(), shard.close()), (Some(chunk.start), Some(chunk.start + 1..chunk.end)));
        }
    }
}
