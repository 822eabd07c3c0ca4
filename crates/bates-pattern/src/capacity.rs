//! How many identifiers a scope can ever have: counted for small spaces, estimated from a sample for large ones.

use crate::pattern::Pattern;
use crate::scope::Scope;
use crate::shuffle::{Key, SHUFFLE_BATCH_LEN, Shuffle};
use crate::template::Segment;

/// How much to compute for a capacity.
struct Effort {
    /// Larger spaces are estimated.
    count_max: u128,
    /// A sample ends when this many of its values were accepted; the margin shrinks with the square root.
    accepted_max: u64,
}

/// Counting takes 0.25 s for seven digits, and a few seconds for small alphabets. A sample takes some 0.3 s.
const THOROUGH: Effort = Effort { count_max: 10_000_000, accepted_max: u64::MAX };
/// For a server with hundreds of series, which opens them all when it starts: some hundredths of a second.
const QUICK: Effort = Effort { count_max: 1_000_000, accepted_max: 10_000 };

const SAMPLE_MAX: u64 = 1_000_000;

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
        self.capacity_with(&THOROUGH)
    }

    /// As [`Self::capacity`], but estimates spaces of more than a million positions, within about 2%.
    pub fn estimate_capacity(&self) -> Result<Capacity, CapacityError> {
        self.capacity_with(&QUICK)
    }

    fn capacity_with(&self, effort: &Effort) -> Result<Capacity, CapacityError> {
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
        Ok(Scope::new(self.clone(), values, crate::date::DateParts::default(), None).capacity_with(effort))
    }

    fn unfiltered_capacity(&self) -> Capacity {
        Capacity::exact(self.last().value() + 1)
    }
}

impl Scope {
    /// How many identifiers this scope can ever have.
    pub fn capacity(&self) -> Capacity {
        self.capacity_with(&THOROUGH)
    }

    fn capacity_with(&self, effort: &Effort) -> Capacity {
        let pattern = self.pattern();
        if pattern.reject().is_empty() {
            return pattern.unfiltered_capacity();
        }
        // The order does not matter here: a permutation has as many accepted values.
        let mut text = Vec::new();
        let space = pattern.space();
        if space <= effort.count_max {
            return Capacity::exact(self.count_with_prefix(0, 0, &mut text));
        }
        // If there are more values than positions, counting reaches only the first values.
        let positions = pattern.last().value() + 1;
        let reached = if pattern.is_shuffled() { space } else { u128::from(positions) };
        let (mut drawn, mut accepted) = (0, 0);
        for value in sample(reached) {
            text.clear();
            drawn += 1;
            accepted += u64::from(self.write_accepted(value, &mut text));
            if accepted == effort.accepted_max {
                break;
            }
        }
        estimate(positions, accepted, drawn)
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
    (0..SAMPLE_MAX / SHUFFLE_BATCH_LEN as u64).flat_map(move |batch| {
        let mut values: [u128; SHUFFLE_BATCH_LEN] =
            std::array::from_fn(|lane| u128::from(batch) * SHUFFLE_BATCH_LEN as u128 + lane as u128);
        shuffle.permute_batch(tweak, &mut values);
        values
    })
}

/// Wilson's interval at 95%, which is valid even if almost nothing is accepted.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate")]
fn estimate(positions: u64, accepted: u64, drawn: u64) -> Capacity {
    const Z: f64 = 1.96;
    let (n, p) = (drawn as f64, accepted as f64 / drawn as f64);
    let scale = 1.0 + Z * Z / n;
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / scale;
    let count = (p * positions as f64).round() as u64;
    Capacity { count, margin: ((half + Z * Z / n) * positions as f64).ceil() as u64 }
}
