//! A series from its description: judged, pinned in the store, and only then used.

use bates_pattern::{Construction, Key, Options, Order, Pattern, PatternError, Position, Reject, Reset};

use super::Entry;
use crate::key::KeyTemplate;
use crate::name::SeriesName;
use crate::promise::Promise;
use crate::series::{Limits, Series};
use crate::store::{Definition, Store, StoreError};

/// Rules that accept less than one in so many are not made up for by larger leases.
const POSITIONS_A_NUMBER_MAX: u64 = 1_000;

/// The bytes of a permutation key that the machine makes.
const PERMUTATION_KEY_BYTES: usize = 32;

/// A series as a configuration describes it.
#[derive(Clone, Debug)]
pub struct SeriesSpec {
    /// Its name.
    pub name: SeriesName,
    /// The template of its pattern.
    pub template: Box<str>,
    /// What it promises.
    pub promise: Promise,
    /// Whether positions walk a keyed permutation. The key is made once and kept in the store.
    pub shuffled: bool,
    /// What is skipped.
    pub reject: Reject,
    /// The first position; by default 1 where the text counts in decimal, 0 otherwise.
    pub start: Option<Position>,
    /// How Redis keys name its scopes.
    pub key: Option<KeyTemplate>,
    /// The limits within which it is handed out.
    pub limits: Limits,
}

/// A machine that could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// A template that was refused.
    #[error("series {series:?}: template {template:?}: {error}")]
    Pattern {
        /// The series.
        series: SeriesName,
        /// Its template.
        template: Box<str>,
        /// Why.
        error: PatternError,
    },
    /// Two series of one name.
    #[error("series {0:?} is described twice")]
    Twice(SeriesName),
    /// Two series whose keys may be the same.
    #[error("series {first:?} and {second:?}: their keys {first_key} and {second_key} could be the same")]
    KeysMeet {
        /// One series.
        first: SeriesName,
        /// Its key.
        first_key: Box<str>,
        /// The other series.
        second: SeriesName,
        /// Its key.
        second_key: Box<str>,
    },
    /// A parameter of the pattern that the key does not have.
    #[error("series {series:?}: key {key} does not name the parameter {{{parameter}}} of the pattern")]
    KeyLacks {
        /// The series.
        series: SeriesName,
        /// Its key.
        key: Box<str>,
        /// The parameter.
        parameter: Box<str>,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No randomness for a key.
    #[error("cannot make a permutation key: {0}")]
    NoRandomness(Box<str>),
}

pub(super) fn check_apart(specs: &[SeriesSpec]) -> Result<(), MachineError> {
    for (at, spec) in specs.iter().enumerate() {
        for other in &specs[..at] {
            if other.name == spec.name {
                return Err(MachineError::Twice(spec.name.clone()));
            }
            if let (Some(first_key), Some(second_key)) = (&other.key, &spec.key)
                && first_key.may_meet(second_key)
            {
                return Err(MachineError::KeysMeet {
                    first: other.name.clone(),
                    first_key: first_key.to_string().into(),
                    second: spec.name.clone(),
                    second_key: second_key.to_string().into(),
                });
            }
        }
    }
    Ok(())
}

pub(super) async fn open_series<S: Store>(store: &S, spec: SeriesSpec) -> Result<Entry, MachineError> {
    // Compiled once in counting order to judge the template before anything is written.
    let refused =
        |error| MachineError::Pattern { series: spec.name.clone(), template: spec.template.clone(), error };
    let counting = Pattern::compile(&spec.template, Options::default()).map_err(refused)?;
    let start = spec.start.unwrap_or_else(|| default_start(&counting, spec.shuffled));
    let definition = Definition {
        series: spec.name.clone(),
        template: spec.template.clone(),
        parameters: parameters(&spec, &counting).join(" ").into(),
        shuffled: spec.shuffled,
        start: start.value(),
        reset: Reset::Never.to_string().into(),
        time_zone: "UTC".into(),
        construction: Construction::default().number(),
    };
    let fresh_key = if spec.shuffled { Some(fresh_key()?) } else { None };
    let pinned = store.pin(definition, fresh_key).await?;
    let order = match pinned.permutation_key {
        Some(bytes) => Order::Shuffled(Key::new(&bytes).map_err(|error| {
            StoreError::Poisoned(format!("the permutation key of {:?}: {error}", spec.name.as_str()).into())
        })?),
        None => Order::Counting,
    };
    let options = Options { order, reject: spec.reject.clone(), ..Options::default() };
    let pattern = Pattern::compile(&spec.template, options).map_err(refused)?;
    check_key(&spec, &pattern)?;
    let limits = in_accepted(spec.limits, &pattern);
    let parameters = parameters(&spec, &pattern);
    let series = Series::new(spec.name, pattern, spec.promise, start, limits);
    Ok(Entry { series, key: spec.key, parameters })
}

fn check_key(spec: &SeriesSpec, pattern: &Pattern) -> Result<(), MachineError> {
    let Some(key) = &spec.key else { return Ok(()) };
    match pattern.parameters().find(|shown| !key.parameters().any(|named| named == *shown)) {
        None => Ok(()),
        Some(parameter) => Err(MachineError::KeyLacks {
            series: spec.name.clone(),
            key: key.to_string().into(),
            parameter: parameter.into(),
        }),
    }
}

/// Limits are meant in numbers, and leases hold positions: under rejection it takes several for one.
fn in_accepted(limits: Limits, pattern: &Pattern) -> Limits {
    let positions = pattern.last().value() + 1;
    let accepted = pattern.capacity().map_or(positions, bates_pattern::Capacity::count).max(1);
    let several = (positions / accepted).clamp(1, POSITIONS_A_NUMBER_MAX);
    Limits {
        lease_min: limits.lease_min.saturating_mul(several),
        lease_max: limits.lease_max.saturating_mul(several),
        ..limits
    }
}

/// The parameters of a scope, sorted: those of the key, which has all that the pattern shows; without a key,
/// those of the pattern.
fn parameters(spec: &SeriesSpec, pattern: &Pattern) -> Vec<String> {
    let mut names: Vec<String> = match &spec.key {
        Some(key) => key.parameters().map(str::to_owned).collect(),
        None => pattern.parameters().map(str::to_owned).collect(),
    };
    names.sort_unstable();
    names
}

/// People count from 1. In a shuffled order position 0 reads like any other, and would be missing at the end.
fn default_start(pattern: &Pattern, shuffled: bool) -> Position {
    Position::new(u64::from(pattern.counts_in_decimal() && !shuffled)).unwrap_or(Position::MIN)
}

fn fresh_key() -> Result<Vec<u8>, MachineError> {
    let mut key = vec![0; PERMUTATION_KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| MachineError::NoRandomness(error.to_string().into()))?;
    Ok(key)
}
