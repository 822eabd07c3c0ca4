//! A series of a server, and a scope of it: numbers are asked for here.

use std::collections::BTreeMap;

use bates_pattern::Date;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::Error;
use crate::transport::{Path, Retry};

/// Numbers in one answer.
const COUNT_MAX: usize = 100_000;

/// A series, with the scope and the business date that its numbers are asked for.
#[derive(Clone, Debug)]
pub struct Series {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) place: Place,
}

/// Where in a series, as every request spells it.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Place {
    pub(crate) scope: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) date: Option<String>,
}

#[derive(Serialize)]
struct Ask<'a> {
    #[serde(flatten)]
    place: &'a Place,
    count: usize,
}

#[derive(Deserialize)]
struct Ids {
    ids: Vec<String>,
}

/// What is known of a scope.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Peek {
    /// Whether a number of it was ever asked for.
    pub exists: bool,
    /// The highest position handed out; after a crash, the highest granted.
    pub last: Option<u64>,
    /// The position that comes next; none at the end.
    pub next: Option<u64>,
    /// How many numbers are left.
    pub left: u64,
    /// Whether that is an estimate, because of rejection rules.
    pub left_is_estimate: bool,
}

impl Series {
    pub(crate) fn new(client: Client, name: String) -> Self {
        Self { client, name, place: Place::default() }
    }

    /// The name of the series.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// In this scope: a value for each parameter of the series, instead of those that were given before.
    #[must_use]
    pub fn scope<N: Into<String>, V: Into<String>>(
        mut self,
        parameters: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.place.scope = parameters.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        self
    }

    /// On this business date, such as `2026-12-31`, for a series that shows one. Without it, today's in the time zone of
    /// the series.
    pub fn date(mut self, day: &str) -> Result<Self, Error> {
        // The calendar reads more than one spelling; the server reads this one.
        let is_day = day.parse::<Date>().is_ok_and(|date| date.to_string() == day);
        if !is_day {
            let day: String = day.chars().take(32).collect();
            return Err(Error::wrong("date", format!("{day:?} is no day: expected YYYY-MM-DD")));
        }
        self.place.date = Some(day.to_owned());
        Ok(self)
    }

    /// The next number.
    ///
    /// Where an answer is lost on its way, its number is burned, and another one is asked for: unless the series is
    /// gapless. Then the call fails, and [`Error::may_burn`] says so.
    pub async fn next(&self) -> Result<String, Error> {
        let mut ids = self.ask(1).await?;
        ids.pop().ok_or_else(|| self.client.transport.strange(200, "it has no number", false))
    }

    /// The next numbers, ascending by position; fewer where the scope ends, and none only if none were asked for.
    ///
    /// More than 100,000 are asked for in several calls. If one of them fails, [`Error::Cut`] holds the numbers that came
    /// before it. A call that is dropped loses what it has got so far.
    pub async fn take(&self, count: usize) -> Result<Vec<String>, Error> {
        let mut taken = Vec::new();
        while taken.len() < count {
            let asked = (count - taken.len()).min(COUNT_MAX);
            match self.ask(asked).await {
                Ok(ids) => {
                    let is_end = ids.len() < asked;
                    taken.extend(ids);
                    if is_end {
                        break;
                    }
                }
                Err(error) if taken.is_empty() => return Err(error),
                Err(Error::Exhausted { .. }) => break,
                Err(cause) => return Err(Error::Cut { taken, cause: Box::new(cause) }),
            }
        }
        Ok(taken)
    }

    /// What comes next, without taking it.
    pub async fn peek(&self) -> Result<Peek, Error> {
        let mut path = self.path(["peek"])?;
        for (name, value) in &self.place.scope {
            path = path.with(name, value);
        }
        if let Some(date) = &self.place.date {
            path = path.with("date", date);
        }
        self.client.transport.get(path).await
    }

    /// One answer.
    async fn ask(&self, count: usize) -> Result<Vec<String>, Error> {
        let ask = Ask { place: &self.place, count };
        let retry = Retry::UnlessGapless(&self.name);
        let Ids { ids } = self.client.transport.post(self.path(["next"])?, &ask, retry).await?;
        Ok(ids)
    }

    /// A path below that of the series.
    pub(crate) fn path<'a>(&'a self, rest: impl IntoIterator<Item = &'a str>) -> Result<Path, Error> {
        Path::of("name or identifier", ["v1", "series", &self.name].into_iter().chain(rest))
    }
}
