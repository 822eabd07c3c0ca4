//! The part of the buffer that a thread takes from: one atomic addition a position, and no lock.
//!
//! A shard holds a chunk of positions at a time. Whoever adds one to its word has claimed an index of the chunk; which
//! position that is, `end` and `delta` say, as long as they are of the same generation as the word. A chunk is exchanged
//! by whoever has the lock of the buffer, who moves the generation on. A claim that was made before and looked up after
//! is not lost: the one who exchanged the chunk remembers it, see [`Desk::recover`].
//!
//! What could go wrong, and why it does not. A position twice: an index of a generation is claimed once, by an addition,
//! and what is taken out of a closed shard begins behind the last claim, which the closing itself read. The wrong
//! position for an index: `end` is written before `delta` and read after it, so that who sees the `delta` of another
//! generation sees its `end` too, and turns to the desk. Loom walks all interleavings of it in the tests.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The low bits of a word are an index, the others a generation.
const INDEX_BITS: u32 = 20;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

/// Positions in a chunk. A closed word stands here, so that indexes above are claims of nothing; there are as many of
/// them as threads that find it closed at the same time.
pub(crate) const CHUNK_MAX: u64 = 1 << 16;

/// Generations that are remembered: a claim is looked up some nanoseconds after it was made.
const REMEMBERED: usize = 64;

/// An atomic integer: the standard one, or loom's.
pub(crate) trait Word {
    fn new(value: u64) -> Self;
    fn load(&self) -> u64;
    fn store(&self, value: u64);
    fn add_one(&self) -> u64;
    fn swap(&self, value: u64) -> u64;
}

impl Word for AtomicU64 {
    fn new(value: u64) -> Self {
        Self::new(value)
    }

    #[inline]
    fn load(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    fn store(&self, value: u64) {
        self.store(value, Ordering::Release);
    }

    #[inline]
    fn add_one(&self) -> u64 {
        self.fetch_add(1, Ordering::AcqRel)
    }

    fn swap(&self, value: u64) -> u64 {
        self.swap(value, Ordering::AcqRel)
    }
}

/// What a thread takes from. On cache lines of its own.
#[repr(align(128))]
pub(crate) struct Shard<W = AtomicU64> {
    /// The generation, and the first index that nobody has claimed.
    word: W,
    /// The generation, and how many indexes there are.
    end: W,
    /// What makes a position of a word.
    delta: W,
}

/// An index of a generation that may be somebody's, or past the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim(u64);

/// What the holder of the lock knows of a shard.
#[derive(Default)]
pub(crate) struct Desk {
    generation: u64,
    /// The chunk that the shard has, if it is open.
    open: Option<Range<u64>>,
    /// Generations that ended, and what was claimed of each.
    ended: VecDeque<(u64, Range<u64>)>,
}

impl<W: Word> Shard<W> {
    /// One without positions.
    pub(crate) fn new() -> Self {
        Self { word: W::new(CHUNK_MAX), end: W::new(0), delta: W::new(0) }
    }

    /// A position, or a claim to bring to the desk.
    #[inline]
    pub(crate) fn take(&self) -> Result<u64, Claim> {
        let word = self.word.add_one();
        let delta = self.delta.load();
        let end = self.end.load();
        // From 1 to the length of the chunk: an end of another generation is below the word, or further away.
        let left = end.wrapping_sub(word);
        if left.wrapping_sub(1) < CHUNK_MAX { Ok(word.wrapping_add(delta)) } else { Err(Claim(word)) }
    }
}

impl Desk {
    /// Gives a closed shard a chunk, of [`CHUNK_MAX`] positions at the most.
    pub(crate) fn open<W: Word>(&mut self, shard: &Shard<W>, chunk: Range<u64>) {
        debug_assert!(self.open.is_none() && chunk.start < chunk.end && chunk.end - chunk.start <= CHUNK_MAX);
        self.generation += 1;
        let word = self.generation << INDEX_BITS;
        shard.end.store(word | (chunk.end - chunk.start));
        shard.delta.store(chunk.start.wrapping_sub(word));
        shard.word.swap(word);
        self.open = Some(chunk);
    }

    /// Closes a shard, if it is open, and takes what nobody has claimed out of it.
    pub(crate) fn close<W: Word>(&mut self, shard: &Shard<W>) -> Option<Range<u64>> {
        let closed = self.generation << INDEX_BITS | CHUNK_MAX;
        let Some(chunk) = self.open.take() else {
            // So that those who come in vain never count up to the next generation.
            shard.word.swap(closed);
            return None;
        };
        let claimed = (shard.word.swap(closed) & INDEX_MASK).min(chunk.end - chunk.start);
        let at = chunk.start + claimed;
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back((self.generation, chunk.start..at));
        (at < chunk.end).then_some(at..chunk.end)
    }

    /// What nobody has claimed, now or a moment ago.
    pub(crate) fn left<W: Word>(&self, shard: &Shard<W>) -> Option<Range<u64>> {
        let chunk = self.open.as_ref()?;
        let at = chunk.start.saturating_add(shard.word.load() & INDEX_MASK);
        (at < chunk.end).then_some(at..chunk.end)
    }

    /// The position that a claim is to, if it is one.
    pub(crate) fn recover(&self, Claim(word): Claim) -> Option<u64> {
        let (generation, index) = (word >> INDEX_BITS, word & INDEX_MASK);
        let (_, claimed) = self.ended.iter().rev().find(|(ended, _)| *ended == generation)?;
        (index < claimed.end - claimed.start).then(|| claimed.start + index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Word for loom::sync::atomic::AtomicU64 {
        fn new(value: u64) -> Self {
            Self::new(value)
        }

        fn load(&self) -> u64 {
            self.load(Ordering::Acquire)
        }

        fn store(&self, value: u64) {
            self.store(value, Ordering::Release);
        }

        fn add_one(&self) -> u64 {
            self.fetch_add(1, Ordering::AcqRel)
        }

        fn swap(&self, value: u64) -> u64 {
            self.swap(value, Ordering::AcqRel)
        }
    }

    /// A shard, and what lies behind its lock: the desk, and positions that are in no shard.
    struct Model {
        shard: Shard<loom::sync::atomic::AtomicU64>,
        behind: loom::sync::Mutex<(Desk, Vec<Range<u64>>)>,
    }

    impl Model {
        fn new(chunks: &[Range<u64>]) -> loom::sync::Arc<Self> {
            let behind = loom::sync::Mutex::new((Desk::default(), chunks.to_vec()));
            loom::sync::Arc::new(Self { shard: Shard::new(), behind })
        }

        fn take(&self) -> Option<u64> {
            let claim = match self.shard.take() {
                Ok(position) => return Some(position),
                Err(claim) => claim,
            };
            let mut behind = self.behind.lock().expect("nobody panicked");
            let (desk, chunks) = &mut *behind;
            if let Some(position) = desk.recover(claim) {
                return Some(position);
            }
            let rest = desk.close(&self.shard);
            chunks.extend(rest);
            let mut chunk = chunks.pop()?;
            let position = chunk.start;
            chunk.start += 1;
            if chunk.start < chunk.end {
                desk.open(&self.shard, chunk);
            }
            Some(position)
        }

        /// What another thread does that has found everything else empty.
        fn steal(&self) -> Option<Range<u64>> {
            let mut behind = self.behind.lock().expect("nobody panicked");
            behind.0.close(&self.shard)
        }
    }

    fn assert_each_once(model: &Model, mut taken: Vec<u64>, expected: std::ops::RangeInclusive<u64>) {
        taken.extend(model.steal().into_iter().flatten());
        let behind = model.behind.lock().expect("nobody panicked");
        taken.extend(behind.1.iter().cloned().flatten());
        taken.sort_unstable();
        assert_eq!(taken, expected.collect::<Vec<_>>());
    }

    /// Two threads take while chunks are exchanged under them.
    #[test]
    fn every_position_is_taken_once_whatever_the_interleaving() {
        loom::model(|| {
            let model = Model::new(&[5..7, 3..5, 1..3]);
            let other = model.clone();
            let thread = loom::thread::spawn(move || [other.take(), other.take()]);
            let mine = [model.take(), model.take()];
            let taken = mine.into_iter().chain(thread.join().unwrap()).flatten().collect();
            assert_each_once(&model, taken, 1..=6);
        });
    }

    /// One takes while another closes the shard, takes the rest out of it, and gives it back.
    #[test]
    fn what_is_stolen_is_not_taken_whatever_the_interleaving() {
        loom::model(|| {
            let model = Model::new(std::slice::from_ref(&(1..5)));
            let first = model.take();
            let other = model.clone();
            let thread = loom::thread::spawn(move || {
                let stolen = other.steal();
                other.behind.lock().unwrap().1.extend(stolen);
                other.take()
            });
            let mine = [first, model.take(), model.take()];
            let taken = mine.into_iter().chain([thread.join().unwrap()]).flatten().collect();
            assert_each_once(&model, taken, 1..=4);
        });
    }

    #[test]
    fn an_end_of_another_generation_is_never_taken_for_that_of_the_word() {
        let word = |generation: u64, index: u64| generation << INDEX_BITS | index;
        let indexes = [0, 1, 2, CHUNK_MAX - 1, CHUNK_MAX, CHUNK_MAX + 10_000];
        for (generation, other) in (0..4).flat_map(|one| (0..4).map(move |other| (one, other))) {
            for (index, length) in
                indexes.into_iter().flat_map(|index| [1, 2, CHUNK_MAX].map(|it| (index, it)))
            {
                let shard = Shard::<AtomicU64> {
                    word: AtomicU64::new(word(generation, index)),
                    end: AtomicU64::new(word(other, length)),
                    delta: AtomicU64::new(0),
                };
                assert_eq!(shard.take().is_ok(), generation == other && index < length);
            }
        }
    }

    #[test]
    fn those_who_come_in_vain_never_reach_the_next_generation() {
        let (shard, mut desk) = (Shard::<AtomicU64>::new(), Desk::default());
        desk.open(&shard, 10..12);
        for _ in 0..3 {
            let _ = shard.take();
        }
        for _ in 0..INDEX_MASK {
            assert!(shard.take().is_err() && shard.take().is_err());
            assert_eq!(desk.close(&shard), None);
        }
        desk.open(&shard, 20..22);
        assert_eq!((shard.take(), shard.take()), (Ok(20), Ok(21)));
    }
}
