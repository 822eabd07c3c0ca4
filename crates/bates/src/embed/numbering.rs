//! A series and one of its scopes: where numbers are taken.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bates_core::{By, Entry, Found, Machine, NotAtHand, Numbers, Peek, ReadyScope, ScopeName, ScopeRefused};
use bates_pattern::{Date, Position, Verdict};
use bates_sqlite::SqliteStore;
use tokio::runtime::Handle;

use super::error::Result;

/// A series and one of its scopes. Make it once for many numbers, and clone it for other threads. It keeps the folder
/// open: drop it when [`Bates`](crate::Bates) is closed.
#[derive(Clone)]
#[must_use]
pub struct Numbering {
    pub(super) machine: Arc<Machine<SqliteStore>>,
    /// Fetches numbers also for threads outside the runtime.
    pub(super) runtime: Handle,
    pub(super) entry: Arc<Entry>,
    parameters: Vec<(Box<str>, Box<str>)>,
    pub(super) date: Option<Date>,
    pub(super) who: Box<str>,
    /// Set by the first call; unused where the scope changes with the day.
    ready: OnceLock<Result<ReadyScope, ScopeRefused>>,
}

impl Numbering {
    pub(super) fn new(machine: Arc<Machine<SqliteStore>>, runtime: Handle, entry: Arc<Entry>) -> Self {
        let (parameters, ready) = (Vec::new(), OnceLock::new());
        Self { machine, runtime, entry, parameters, date: None, who: "".into(), ready }
    }

    /// In this scope: a value for each parameter of the series. Whether they are, the first call says.
    pub fn scope<N: AsRef<str>, V: AsRef<str>>(self, parameters: impl IntoIterator<Item = (N, V)>) -> Self {
        let pairs = parameters.into_iter();
        let parameters = pairs.map(|(name, value)| (name.as_ref().into(), value.as_ref().into())).collect();
        Self { parameters, ready: OnceLock::new(), ..self }
    }

    /// For this business date instead of today's, in a series that shows one.
    pub fn date(self, date: Date) -> Self {
        Self { date: Some(date), ready: OnceLock::new(), ..self }
    }

    /// In the name of somebody, which an audited series records.
    pub fn by(self, who: &str) -> Self {
        Self { who: who.into(), ..self }
    }

    /// The next number, usually from memory. A caller that stops waiting may leave a gap; no number is given twice.
    pub async fn next(&self) -> Result<Number> {
        if let Ok(number) = self.try_next() {
            return Ok(number);
        }
        let numbers = self.take(1).await?;
        let Some((position, text)) = numbers.iter().next() else { unreachable!("no number is an error") };
        Ok(Number { position, text: text.to_owned() })
    }

    /// The next `count` numbers, or fewer where the space ends or the store fails. None is an error if `count` is above 0.
    pub async fn take(&self, count: u64) -> Result<Numbers> {
        let parameters = self.parameters();
        let name = ScopeName { parameters: &parameters, date: self.date };
        Ok(self.machine.next(&self.entry, name, count, By::library(&self.who)).await?)
    }

    /// The next number if it is in memory, without waiting: also on a thread outside the runtime.
    ///
    /// [`NotAtHand::Now`] means that it is being fetched; only [`Numbering::next`] says whether the scope is exhausted or
    /// the store fails. A current-thread runtime fetches while it is driven.
    pub fn try_next(&self) -> Result<Number, NotAtHand> {
        if self.date.is_none() && self.entry.series().pattern().needs_date() {
            return Err(NotAtHand::Never);
        }
        let ready = self.ready.get_or_init(|| {
            let parameters = self.parameters();
            let name = ScopeName { parameters: &parameters, date: self.date };
            self.entry.ready(name, self.machine.now())
        });
        let ready = ready.as_ref().map_err(Clone::clone)?;
        let _inside = self.runtime.enter();
        let (position, text) = self.machine.try_next(&self.entry, ready)?;
        Ok(Number { position, text })
    }

    /// What comes next, and how much is left, without taking any. Never creates a scope.
    pub async fn peek(&self) -> Result<Peek> {
        let parameters = self.parameters();
        let name = ScopeName { parameters: &parameters, date: self.date };
        Ok(self.machine.peek(&self.entry, name).await?)
    }

    /// Whether a text could be a number of the series, and everything that speaks against it.
    pub fn validate(&self, text: &str) -> Verdict {
        self.entry.series().pattern().validate(text)
    }

    /// Scope and position of a number, and whether it was granted. `None` if the text is no number of the series.
    pub async fn find(&self, text: &str) -> Result<Option<Found>> {
        Ok(self.machine.find_in(&self.entry, text).await?)
    }

    /// The series in the machine.
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    pub(super) fn parameters(&self) -> Vec<(&str, &str)> {
        self.parameters.iter().map(|(name, value)| (&**name, &**value)).collect()
    }
}

/// A number: its text, and the position that it stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Number {
    position: Position,
    text: String,
}

impl Number {
    /// The text, as in `PROJ-9012-1001`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The position, as in 1001. In a series that counts, a later number has a higher one.
    pub fn position(&self) -> Position {
        self.position
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl AsRef<str> for Number {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl From<Number> for String {
    fn from(number: Number) -> Self {
        number.text
    }
}

impl PartialEq<str> for Number {
    fn eq(&self, text: &str) -> bool {
        self.text == text
    }
}

impl PartialEq<&str> for Number {
    fn eq(&self, text: &&str) -> bool {
        self.text == *text
    }
}
