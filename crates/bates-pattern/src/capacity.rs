//! How many identifiers a scope can ever have: counted where that is quick, else estimated from a sample.

use crate::pattern::Pattern;
use crate::scope::Scope;
use crate::shuffle::{BATCH, Key, Shuffle};
use crate::template::Segment;

/// Spaces up to this size are counted: seven digits in a quarter of a second, small alphabets in a few seconds.
const COUNT_MAX: u128 = 10_000_000;

/// Candidates looked at for an estimate; the error shrinks with the square root of this.
const SAMPLE: u64 = 1_000_000;

/// How many identifiers a scope can ever have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    count: u64,
    margin: u64,
}

/// Rules over check characters that cover parameters give each scope its own capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the check characters cover the scope, so the rules accept other positions in each: name the scope")]
pub struct ScopeNeeded;

impl Capacity {
    fn exact(count: u64) -> Self {
        Self { count, margin: 0 }
    }

    /// The number itself, or the middle of the estimate.
    pub fn count(self) -> u64 {
        self.count
    }

    /// The margin of the count at 95% confidence; 0 if it is exact.
    pub fn margin(self) -> u64 {
        self.margin
    }

    /// Whether it was counted, not estimated.
    pub fn is_exact(self) -> bool {
        self.margin == 0
    }
}

impl Pattern {
    /// The capacity of each scope of this pattern, where it is the same for all.
    pub fn capacity(&self) -> Result<Capacity, ScopeNeeded> {
        if self.reject().is_empty() {
            return Ok(self.positions());
        }
        let template = &self.parts().segments;
        let covered = template.iter().position(|segment| matches!(segment, Segment::Check)).unwrap_or(0);
        if template[..covered].iter().any(|segment| !matches!(segment, Segment::Seq | Segment::Literal(_))) {
            return Err(ScopeNeeded);
        }
        // Nothing that varies is covered, so any values, even none, give the same count.
        let values = self.parameters().map(|_| "".into()).collect();
        Ok(Scope::new(self.clone(), values, crate::date::DateParts::default(), None).capacity())
    }

    fn positions(&self) -> Capacity {
        Capacity::exact(self.last().value() + 1)
    }
}

impl Scope {
    /// How many identifiers this scope can ever have.
    pub fn capacity(&self) -> Capacity {
        let pattern = self.pattern();
        if pattern.reject().is_empty() {
            return pattern.positions();
        }
        // A permutation of the space accepts as many values as counting does.
        let mut text = Vec::new();
        let space = pattern.space();
        if space <= COUNT_MAX {
            return Capacity::exact(self.count_below(0, 0, &mut text));
        }
        let mut accepted = |value: u128| {
            text.clear();
            self.write_accepted(value, &mut text)
        };
        // Counting reaches only the beginning of a space with more values than there are positions.
        let positions = pattern.last().value() + 1;
        let reached = if pattern.is_shuffled() { space } else { u128::from(positions) };
        estimate(positions, sample(reached).filter(|value| accepted(*value)).count() as u64)
    }

    /// Counts accepted values that begin with these `numerals` of `{seq}`. Most beginnings are refused at once.
    fn count_below(&self, start: u128, numerals: usize, text: &mut Vec<u8>) -> u64 {
        let seq = &self.pattern().parts().seq;
        text.clear();
        if seq.width == Some(numerals) {
            return u64::from(self.write_accepted(start, text));
        }
        if numerals > 0 {
            seq.alphabet.write(start, numerals, text);
            if self.pattern().reject().refuses_start(text) {
                return 0;
            }
        }
        let radix = u128::from(seq.alphabet.radix);
        (0..radix).map(|digit| self.count_below(start * radix + digit, numerals + 1, text)).sum()
    }
}

/// Values spread over the space as if at random, none twice, and the same each time.
fn sample(space: u128) -> impl Iterator<Item = u128> {
    let key = Key::new(&[0; 16]).expect("16 bytes are a key");
    let shuffle = Shuffle::new(&key, space).expect("both 2^53 and what can be shuffled can be sampled");
    let tweak = shuffle.tweak(&[]);
    (0..SAMPLE / BATCH as u64).flat_map(move |batch| {
        let mut values: [u128; BATCH] =
            std::array::from_fn(|lane| u128::from(batch) * BATCH as u128 + lane as u128);
        shuffle.permute_batch(tweak, &mut values);
        values
    })
}

/// Wilson's interval at 95%, which holds also where almost nothing is accepted.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate"
)]
fn estimate(positions: u64, hits: u64) -> Capacity {
    const Z: f64 = 1.96;
    let (n, p) = (SAMPLE as f64, hits as f64 / SAMPLE as f64);
    let scale = 1.0 + Z * Z / n;
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / scale;
    let count = (p * positions as f64).round() as u64;
    Capacity { count, margin: ((half + Z * Z / n) * positions as f64).ceil() as u64 }
}
