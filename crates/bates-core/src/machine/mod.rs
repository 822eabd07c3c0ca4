//! The numbering machine: its series, opened on a store, and numbers by name or by key.
//!
//! Owns what every front end needs and none may decide: which series a key belongs to, what a scope is, what
//! a number reads like.

mod numbers;
mod open;

use bates_pattern::Scope;

use crate::dispenser::{Closed, Dispenser};
use crate::error::IssueError;
use crate::key::KeyTemplate;
use crate::lease::Taken;
use crate::place::{Place, ScopeKey, ScopeKeyError};
use crate::series::Series;
use crate::store::Store;

pub use numbers::Numbers;
pub use open::{MachineError, SeriesSpec};

/// Numbers that are taken and rendered in one go.
const CHUNK: u64 = 4_096;

/// Rules that reject so many positions in a row will hardly accept the next one soon.
const REJECTED_MAX: u64 = 1_000_000;

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
    /// Too few parameters, too many, or others.
    #[error("the scope has the parameters {given:?}; it needs exactly {expected:?}")]
    Parameters {
        /// The names that were given.
        given: Box<str>,
        /// The names that a scope of the series has.
        expected: Box<str>,
    },
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
    /// The rules reject whatever comes next. The positions are skipped for good.
    #[error("the rules of the series reject each of the next {positions} positions")]
    AllRejected {
        /// How many were tried.
        positions: u64,
    },
}

/// A series in a machine.
#[derive(Debug)]
pub struct Entry {
    series: Series,
    key: Option<KeyTemplate>,
    /// The names of a scope's parameters, sorted.
    parameters: Vec<String>,
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
        let mut given: Vec<&str> = parameters.iter().map(|(name, _)| *name).collect();
        given.sort_unstable();
        // Invariant: a scope has these parameters and no others, or one text could come from two scopes.
        if !given.iter().eq(&self.parameters) {
            let (given, expected) = (given.join(", ").into(), self.parameters.join(", ").into());
            return Err(ScopeRefused::Parameters { given, expected });
        }
        let pattern = self.series.pattern();
        let shown = parameters.iter().filter(|(name, _)| pattern.parameters().any(|known| known == *name));
        Ok(pattern.scope(shown.copied(), None)?)
    }

    /// Whether its numbers are the positions themselves, so that they can be answered as integers.
    pub fn counts_plainly(&self) -> bool {
        self.series.pattern().is_plain_count()
    }
}

/// What is known of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peek {
    /// The highest position handed out; after a crash, the highest granted.
    pub last: Option<u64>,
    /// How many positions are left.
    pub left: u64,
}

/// Series, opened on a store.
pub struct Machine<S> {
    dispenser: Dispenser<S>,
    entries: Vec<Entry>,
}

impl<S: Store + Clone> Machine<S> {
    /// Opens the series on a store: pins those that are new, compares those that are not.
    pub async fn open(store: S, specs: Vec<SeriesSpec>) -> Result<Self, MachineError> {
        open::check_apart(&specs)?;
        let mut entries = Vec::with_capacity(specs.len());
        for spec in specs {
            entries.push(open::open_series(&store, spec).await?);
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
        let mut asked = count.min(CHUNK);
        let mut rejected = 0;
        while numbers.len() as u64 != count {
            // Invariant: no more positions are taken than numbers are missing, so none that is accepted is left
            // over; those that are rejected are no gaps.
            match self.dispenser.take(&entry.series, &key, asked).await {
                Ok(taken) => {
                    let before = numbers.len();
                    numbers.add(&scope, &taken);
                    rejected = if numbers.len() > before { 0 } else { rejected + taken.count() };
                }
                // The last few are given to whoever asks for more.
                Err(IssueError::Exhausted { left, .. }) if left > 0 => {
                    asked = left.min(asked);
                    continue;
                }
                // What was taken is given, not burned.
                Err(_) if !numbers.is_empty() => break,
                Err(error) => return Err(error.into()),
            }
            if rejected > REJECTED_MAX && numbers.is_empty() {
                return Err(NextError::AllRejected { positions: rejected });
            }
            asked = (count - numbers.len() as u64).min(CHUNK);
            // Other callers of this thread come in between.
            tokio::task::yield_now().await;
        }
        Ok(numbers)
    }

    /// The next `count` positions of the scope with these parameters: all of them, or an error.
    pub async fn take(
        &self,
        entry: &Entry,
        parameters: &[(&str, &str)],
        count: u64,
    ) -> Result<Taken, NextError> {
        entry.scope(parameters)?;
        let key = ScopeKey::new(parameters.iter().copied(), None).map_err(ScopeRefused::from)?;
        Ok(self.dispenser.take(&entry.series, &key, count).await?)
    }

    /// What is known of a scope without touching it. `None` if it does not exist. Never creates one.
    pub async fn peek(&self, entry: &Entry, parameters: &[(&str, &str)]) -> Result<Option<Peek>, NextError> {
        entry.scope(parameters)?;
        let key = ScopeKey::new(parameters.iter().copied(), None).map_err(ScopeRefused::from)?;
        let next = self.dispenser.peek(&entry.series, &key).await;
        let next = next.map_err(|error| IssueError::Store {
            place: Place { series: entry.series.name().clone(), scope: key },
            error,
        })?;
        Ok(next.map(|next| Peek {
            last: (next > entry.series.start().value()).then(|| next - 1),
            left: entry.series.end().saturating_sub(next),
        }))
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
