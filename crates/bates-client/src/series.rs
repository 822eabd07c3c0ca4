//! A series of a server, and a scope of it: numbers are asked for here.

use bates_api::{Day, NumberRequest, Numbers, Parameters, Path, Peek};

use crate::client::Client;
use crate::error::Error;
use crate::transport::Retry;

/// Numbers in one answer.
const COUNT_MAX: usize = 100_000;

/// A series, with the scope and the business date that its numbers are asked for.
#[derive(Clone, Debug)]
pub struct Series {
    pub(crate) client: Client,
    name: String,
    pub(crate) scope: Parameters,
    pub(crate) date: Option<Day>,
}

impl Series {
    pub(crate) fn new(client: Client, name: String) -> Self {
        Self { client, name, scope: Parameters::default(), date: None }
    }

    /// The name of the series.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// In this scope: a value for each parameter of the series, replacing earlier ones.
    #[must_use]
    pub fn scope<N: Into<String>, V: Into<String>>(
        mut self,
        parameters: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.scope = parameters.into_iter().collect();
        self
    }

    /// On this business date, such as `2026-12-31`; without it, today's in the time zone of the series.
    pub fn date(mut self, day: &str) -> Result<Self, Error> {
        let wrong = |error: bates_api::DayError| Error::wrong("date", error.to_string());
        self.date = Some(day.parse().map_err(wrong)?);
        Ok(self)
    }

    /// The next number. If an answer is lost, its number is burned and the client asks for another one; for a gapless
    /// series the call fails instead, and [`Error::may_burn`] is true.
    pub async fn next(&self) -> Result<String, Error> {
        let mut ids = self.ask(1).await?;
        ids.pop().ok_or_else(|| self.client.transport.strange("it has no number", false))
    }

    /// The next numbers, ascending by position; fewer where the scope ends. More than 100,000 take several calls: if one
    /// fails, [`Error::Cut`] holds the numbers before it. A dropped call loses the numbers it has so far.
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

    /// The next number, without taking it.
    pub async fn peek(&self) -> Result<Peek, Error> {
        let path = self.scope.iter().fold(self.path(["peek"])?, |path, (name, value)| path.with(name, value));
        let path = self.date.iter().fold(path, |path, date| path.with("date", &date.to_string()));
        self.client.transport.get(path).await
    }

    async fn ask(&self, count: usize) -> Result<Vec<String>, Error> {
        let request = NumberRequest { scope: self.scope.clone(), count: count as u64, date: self.date };
        let retry = Retry::UnlessGapless(&self.name);
        let Numbers { ids } = self.client.transport.post(self.path(["next"])?, &request, retry).await?;
        Ok(ids)
    }

    pub(crate) fn path<const N: usize>(&self, rest: [&str; N]) -> Result<Path, Error> {
        Ok(Path::v1(["series", &self.name].into_iter().chain(rest))?)
    }
}
