//! The numbering machine: its series, opened on a store, and numbers by name or by key.
//!
//! Owns what every front end needs and none may decide: which series a key belongs to, what a scope is, what
//! a number reads like.

use bates_pattern::{
    Construction, Key, Options, Order, Pattern, PatternError, Position, Reject, Reset, Scope,
};

use crate::dispenser::{Closed, Dispenser};
use crate::error::IssueError;
use crate::key::KeyTemplate;
use crate::lease::Taken;
use crate::name::SeriesName;
use crate::place::{ScopeKey, ScopeKeyError};
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

/// A scope that was asked for and is none of the series.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeRefused {
    /// The pattern refuses a value.
    #[error(transparent)]
    Pattern(#[from] bates_pattern::ScopeError),
    /// The values make no key.
    #[error(transparent)]
    Key(#[from] ScopeKeyError),
}

/// Why a number was not given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NextError {
    /// The scope is none of the series.
    #[error(transparent)]
    Scope(#[from] ScopeRefused),
    /// No number was issued.
    #[error(transparent)]
    Issue(#[from] IssueError),
}

/// A series in a machine.
#[derive(Debug)]
pub struct Entry {
    series: Series,
    key: Option<KeyTemplate>,
}

impl Entry {
    /// The series.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// How Redis keys name its scopes.
    pub fn key(&self) -> Option<&KeyTemplate> {
        self.key.as_ref()
    }

    /// A scope made ready to render. Parameters that the pattern does not show are the key's affair.
    fn scope(&self, parameters: &[(&str, &str)]) -> Result<Scope, ScopeRefused> {
        let pattern = self.series.pattern();
        let shown = parameters.iter().filter(|(name, _)| pattern.parameters().any(|known| known == *name));
        Ok(pattern.scope(shown.copied(), None)?)
    }

    /// Whether its numbers are the positions themselves, so that they can be answered as integers.
    pub fn counts_plainly(&self) -> bool {
        self.series.pattern().is_plain_count()
    }
}

/// Numbers that were given, as text, in one piece of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    text: Vec<u8>,
    /// The position of each, and where its text ends.
    ends: Vec<(Position, usize)>,
}

impl Numbers {
    /// How many.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Each position and its number, ascending by position.
    pub fn iter(&self) -> impl Iterator<Item = (Position, &str)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        self.ends.iter().zip(starts).map(|((position, end), start)| {
            let text = std::str::from_utf8(&self.text[start..*end]).expect("a pattern renders UTF-8");
            (*position, text)
        })
    }

    fn add(&mut self, scope: &Scope, taken: &Taken) {
        for lease in taken.leases() {
            let bounds = (Position::new(lease.from()), Position::new(lease.to() - 1));
            let (Some(first), Some(last)) = bounds else { continue };
            let mut walk = scope.accepted(first, last);
            while let Some(position) = walk.next_into(&mut self.text) {
                self.ends.push((position, self.text.len()));
            }
        }
    }
}

/// Series, opened on a store.
pub struct Machine<S> {
    dispenser: Dispenser<S>,
    entries: Vec<Entry>,
}

impl<S: Store + Clone> Machine<S> {
    /// Opens the series on a store: pins those that are new, compares those that are not.
    pub async fn open(store: S, specs: Vec<SeriesSpec>) -> Result<Self, MachineError> {
        check_apart(&specs)?;
        let mut entries = Vec::with_capacity(specs.len());
        for spec in specs {
            entries.push(open_series(&store, spec).await?);
        }
        Ok(Self { dispenser: Dispenser::new(store), entries })
    }
}

impl<S: Store> Machine<S> {
    /// All series.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The series of that name.
    pub fn named(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.series.name().as_str() == name)
    }

    /// The series that a key belongs to. Keys of two series never meet.
    pub fn of_key(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key.as_ref().is_some_and(|template| template.is_of(key)))
    }

    /// The next position of the scope that `key` names, if it is held in memory: for the hot path. `scope` is
    /// the caller's room for the scope's key.
    pub fn try_next_by_key(&self, entry: &Entry, key: &str, count: u64, scope: &mut String) -> Option<Taken> {
        scope.clear();
        entry.key.as_ref()?.write_scope(key, scope);
        self.dispenser.try_take(&entry.series, scope, count)
    }

    /// The next `count` numbers of the scope with these parameters, which must be all that the series has.
    /// Fewer where the space ends, or the store fails on the way; none is an error.
    pub async fn next(
        &self,
        entry: &Entry,
        parameters: &[(&str, &str)],
        count: u64,
    ) -> Result<Numbers, NextError> {
        let scope = entry.scope(parameters)?;
        let key = ScopeKey::new(parameters.iter().copied(), None).map_err(ScopeRefused::from)?;
        let mut numbers = Numbers::default();
        let mut asked = count;
        while numbers.len() as u64 != count {
            // Invariant: no more positions are taken than numbers are missing, so none that is accepted is left
            // over; those that are rejected are no gaps.
            match self.dispenser.take(&entry.series, &key, asked).await {
                Ok(taken) => numbers.add(&scope, &taken),
                // The last few are given to whoever asks for more.
                Err(IssueError::Exhausted { left, .. }) if left > 0 => {
                    asked = left.min(asked);
                    continue;
                }
                // What was taken is given, not burned.
                Err(_) if !numbers.is_empty() => break,
                Err(error) => return Err(error.into()),
            }
            asked = count - numbers.len() as u64;
        }
        Ok(numbers)
    }

    /// Refuses new calls, lets those under way end, and gives unused positions back.
    pub async fn close(&self) -> Closed {
        self.dispenser.close().await
    }

    /// Evicts the scopes that nobody asked for since the last call.
    pub async fn evict_idle(&self) -> Closed {
        self.dispenser.evict_idle().await
    }
}

fn check_apart(specs: &[SeriesSpec]) -> Result<(), MachineError> {
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

async fn open_series<S: Store>(store: &S, spec: SeriesSpec) -> Result<Entry, MachineError> {
    // Compiled once in counting order to judge the template before anything is written.
    let refused =
        |error| MachineError::Pattern { series: spec.name.clone(), template: spec.template.clone(), error };
    let counting = Pattern::compile(&spec.template, Options::default()).map_err(refused)?;
    let start = spec.start.unwrap_or_else(|| default_start(&counting, spec.shuffled));
    let definition = Definition {
        series: spec.name.clone(),
        template: spec.template.clone(),
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
    let series = Series::new(spec.name, pattern, spec.promise, start, limits);
    Ok(Entry { series, key: spec.key })
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
        lease_min: limits.lease_min * several,
        lease_max: limits.lease_max.saturating_mul(several),
        ..limits
    }
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
