//! How many identifiers a scope can ever have: counted for small spaces, estimated from a sample for large ones.

use crate::pattern::Pattern;
use crate::scope::Scope;
use crate::shuffle::{Key, SHUFFLE_BATCH_LEN, Shuffle};
use crate::template::Segment;

/// Larger spaces are estimated. Counting takes 0.25 s for seven digits, and a few seconds for small alphabets.
const COUNT_MAX: u128 = 10_000_000;

/// The size of the sample; the margin shrinks with its square root.
const SAMPLE_COUNT: u64 = 1_000_000;

/// How many identifiers a scope can ever have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    count: u64,
    margin: u64,
}

/// Each scope has its own capacity: the check characters cover parameters or a date, and the rules cover the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the check characters cover the parameters, so each scope has its own capacity: name a scope")]
pub struct CapacityError;

impl Capacity {
    fn exact(count: u64) -> Self {
        Self { count, margin: 0 }
    }

    /// The number of identifiers, exact or estimated.
    pub fn count(self) -> u64 {
        self.count
    }

    /// The margin of the count at 95% confidence; 0 if it is exact.
    pub fn margin(self) -> u64 {
        self.margin
    }

    /// Whether the count is exact.
    pub fn is_exact(self) -> bool {
        self.margin == 0
    }
}

impl Pattern {
    /// The capacity of each scope of this pattern, if all scopes have the same.
    pub fn capacity(&self) -> Result<Capacity, CapacityError> {
        if self.reject().is_empty() {
            return Ok(self.unfiltered_capacity());
        }
        let template = &self.compiled_template().segments;
        let covered = template.iter().position(|segment| matches!(segment, Segment::Check)).unwrap_or(0);
        if template[..covered].iter().any(|segment| !matches!(segment, Segment::Seq | Segment::Literal(_))) {
            return Err(CapacityError);
        }
        // The check covers nothing that varies, so empty values give the same count.
        let values = self.parameters().map(|_| "".into()).collect();
        Ok(Scope::new(self.clone(), values, crate::date::DateParts::default(), None).capacity())
    }

    fn unfiltered_capacity(&self) -> Capacity {
        Capacity::exact(self.last().value() + 1)
    }
}

impl Scope {
    /// How many identifiers this scope can ever have.
    pub fn capacity(&self) -> Capacity {
        let pattern = self.pattern();
        if pattern.reject().is_empty() {
            return pattern.unfiltered_capacity();
        }
        // The order does not matter here: a permutation has as many accepted values.
        let mut text = Vec::new();
        let space = pattern.space();
        if space <= COUNT_MAX {
            return Capacity::exact(self.count_with_prefix(0, 0, &mut text));
        }
        let mut accepted = |value: u128| {
            text.clear();
            self.write_accepted(value, &mut text)
        };
        // If there are more values than positions, counting reaches only the first values.
        let positions = pattern.last().value() + 1;
        let reached = if pattern.is_shuffled() { space } else { u128::from(positions) };
        estimate(positions, sample(reached).filter(|value| accepted(*value)).count() as u64)
    }

    /// Counts the accepted values that begin with the `numerals` digits of `start`. Most prefixes are rejected at once.
    fn count_with_prefix(&self, start: u128, numerals: usize, text: &mut Vec<u8>) -> u64 {
        let seq = &self.pattern().compiled_template().seq;
        text.clear();
        if seq.width == Some(numerals) {
            return u64::from(self.write_accepted(start, text));
        }
        if numerals > 0 {
            seq.alphabet.write(start, numerals, text);
            if self.pattern().reject().rejects_prefix(text) {
                return 0;
            }
        }
        let radix = u128::from(seq.alphabet.radix);
        (0..radix).map(|digit| self.count_with_prefix(start * radix + digit, numerals + 1, text)).sum()
    }
}

/// Distinct values spread over the space as if at random, and the same in every call.
fn sample(space: u128) -> impl Iterator<Item = u128> {
    let key = Key::new(&[0; 16]).expect("16 bytes are a key");
    let shuffle = Shuffle::new(&key, space).expect("both 2^53 and what can be shuffled can be sampled");
    let tweak = shuffle.tweak(&[]);
    (0..SAMPLE_COUNT / SHUFFLE_BATCH_LEN as u64).flat_map(move |batch| {
        let mut values: [u128; SHUFFLE_BATCH_LEN] =
            std::array::from_fn(|lane| u128::from(batch) * SHUFFLE_BATCH_LEN as u128 + lane as u128);
        shuffle.permute_batch(tweak, &mut values);
        values
    })
}

/// Wilson's interval at 95%, which is valid even if almost nothing is accepted.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate")]
fn estimate(positions: u64, hits: u64) -> Capacity {
    const Z: f64 = 1.96;
    let (n, p) = (SAMPLE_COUNT as f64, hits as f64 / SAMPLE_COUNT as f64);
    let scale = 1.0 + Z * Z / n;
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / scale;
    let count = (p * positions as f64).round() as u64;
    Capacity { count, margin: ((half + Z * Z / n) * positions as f64).ceil() as u64 }
}
