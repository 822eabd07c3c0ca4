//! A series and one of its scopes: takes numbers.

use std::sync::{Arc, OnceLock};

use bates_core::{
    Actor, IdentifierMatch, Machine, NotCached, Peek, PreparedScope, ScopeError, ScopeParams, SeriesEntry,
};
use bates_pattern::{Date, Number, Verdict};
use bates_sqlite::SqliteStore;
use tokio::runtime::Handle;

use super::error::Result;

/// A series and one of its scopes. Make it once for many numbers, and clone it for other threads. It keeps the folder
/// open: drop it when [`Bates`](crate::Bates) is closed.
#[derive(Clone)]
#[must_use]
pub struct Numbering {
    pub(super) machine: Arc<Machine<SqliteStore>>,
    /// Also fetches numbers for threads outside the runtime.
    pub(super) runtime: Handle,
    pub(super) entry: Arc<SeriesEntry>,
    parameters: Vec<(Box<str>, Box<str>)>,
    pub(super) date: Option<Date>,
    pub(super) caller: Box<str>,
    /// Set by the first call; unused if the scope changes with the day.
    ready: OnceLock<Result<PreparedScope, ScopeError>>,
}

impl Numbering {
    pub(super) fn new(machine: Arc<Machine<SqliteStore>>, runtime: Handle, entry: Arc<SeriesEntry>) -> Self {
        let (parameters, ready) = (Vec::new(), OnceLock::new());
        Self { machine, runtime, entry, parameters, date: None, caller: "".into(), ready }
    }

    /// In this scope: a value for each parameter of the series. The first call checks them.
    pub fn scope<N: AsRef<str>, V: AsRef<str>>(self, parameters: impl IntoIterator<Item = (N, V)>) -> Self {
        let pairs = parameters.into_iter();
        let parameters = pairs.map(|(name, value)| (name.as_ref().into(), value.as_ref().into())).collect();
        Self { parameters, ready: OnceLock::new(), ..self }
    }

    /// For this business date instead of today, in a series that shows one.
    pub fn date(self, date: Date) -> Self {
        Self { date: Some(date), ready: OnceLock::new(), ..self }
    }

    /// The name of the caller, which an audited series records.
    pub fn caller(self, name: &str) -> Self {
        Self { caller: name.into(), ..self }
    }

    /// The next number, usually from memory. Dropping the future may leave a gap; no number is issued twice.
    pub async fn next(&self) -> Result<Number> {
        if let Ok(number) = self.try_next() {
            return Ok(number);
        }
        Ok(self.take(1).await?.swap_remove(0))
    }

    /// The next `count` numbers, ascending by position: at least one, and fewer than `count` where the scope ends or the
    /// store fails. The next call then says why.
    pub async fn take(&self, count: usize) -> Result<Vec<Number>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let scope = ScopeParams { parameters: &self.parameters(), date: self.date };
        let actor = Actor::library(&self.caller);
        let numbers = self.machine.next(&self.entry, scope, count as u64, actor).await?;
        Ok(numbers.iter().map(|(position, text)| Number::new(position, text)).collect())
    }

    /// The next number if it is in memory, without waiting. Works on any thread.
    ///
    /// [`NotCached::Fetching`] means that it is being fetched; only [`Numbering::next`] says whether the scope is exhausted or
    /// the store fails. A current-thread runtime fetches while it is driven.
    pub fn try_next(&self) -> Result<Number, NotCached> {
        if self.date.is_none() && self.entry.series().pattern().needs_date() {
            return Err(NotCached::Uncacheable);
        }
        let ready = self.ready.get_or_init(|| {
            let scope = ScopeParams { parameters: &self.parameters(), date: self.date };
            self.entry.prepare(scope, self.machine.now())
        });
        let ready = ready.as_ref().map_err(Clone::clone)?;
        let _inside = self.runtime.enter();
        let (position, text) = self.machine.try_next(&self.entry, ready)?;
        Ok(Number::new(position, text))
    }

    /// The next position, and how many numbers are left, without taking any. Never creates a scope.
    pub async fn peek(&self) -> Result<Peek> {
        let scope = ScopeParams { parameters: &self.parameters(), date: self.date };
        Ok(self.machine.peek(&self.entry, scope).await?)
    }

    /// Whether a text could be a number of the series, and every reason why not.
    pub fn validate(&self, text: &str) -> Verdict {
        self.entry.series().pattern().validate(text)
    }

    /// Scope and position of a number, and whether it was granted. `None` if the text is not a number of the series.
    pub async fn find(&self, text: &str) -> Result<Option<IdentifierMatch>> {
        Ok(self.machine.find_in(&self.entry, text, true).await?)
    }

    /// The series in the machine.
    pub fn entry(&self) -> &Arc<SeriesEntry> {
        &self.entry
    }

    pub(super) fn parameters(&self) -> Vec<(&str, &str)> {
        self.parameters.iter().map(|(name, value)| (&**name, &**value)).collect()
    }
}
