//! A series of a server, and one of its scopes: takes numbers.

use bates_api::{Day, NumberRequest, Numbers, Parameters, Path, Peek};
use bates_pattern::{Date, Number, Position};

use crate::client::Client;
use crate::error::Error;
use crate::transport::Retry;

/// Max numbers in one answer.
const COUNT_MAX: usize = 100_000;

/// A series, with the scope and the business date of the numbers to take.
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
    pub fn scope<N: Into<String>, V: Into<String>>(self, pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        Self { scope: pairs.into_iter().collect(), ..self }
    }

    /// For this business date; without it, today's date in the time zone of the series.
    #[must_use]
    pub fn date(self, date: Date) -> Self {
        Self { date: Some(date.into()), ..self }
    }

    /// The next number. If an answer is lost, its number is burned and the client takes another one. For a gapless series
    /// the call fails instead, and [`Error::may_burn`] is true.
    pub async fn next(&self) -> Result<Number, Error> {
        let mut numbers = self.request_numbers(1).await?;
        numbers.pop().ok_or_else(|| self.unexpected("the answer has no number"))
    }

    /// The next `count` numbers, ascending by position: at least one, and fewer than `count` where the scope ends or a
    /// call fails. The next call then says why. The server answers 100,000 numbers per call; if the future is dropped
    /// between two of them, the numbers of the first are lost.
    pub async fn take(&self, count: usize) -> Result<Vec<Number>, Error> {
        let mut taken: Vec<Number> = Vec::new();
        while taken.len() < count {
            let requested = (count - taken.len()).min(COUNT_MAX);
            let numbers = match self.request_numbers(requested).await {
                Err(error) if taken.is_empty() => return Err(error),
                Err(_) => break,
                Ok(numbers) => numbers,
            };
            let is_end = numbers.len() < requested;
            taken.extend(numbers);
            if is_end {
                break;
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

    async fn request_numbers(&self, count: usize) -> Result<Vec<Number>, Error> {
        let (scope, date) = (self.scope.clone(), self.date);
        let request = NumberRequest { scope, count: count as u64, date, positions: true };
        let (path, retry) = (self.path(["next"])?, Retry::UnlessGapless(&self.name));
        let Numbers { ids, positions } = self.client.transport.post(path, &request, retry).await?;
        if ids.is_empty() {
            return Err(self.client.transport.unexpected("the answer has no number", false));
        }
        let positions = positions.filter(|positions| positions.len() == ids.len());
        let positions = positions
            .ok_or_else(|| self.unexpected("the answer does not have a position for each number"))?;
        let number = |(id, position): (String, u64)| Some(Number::new(Position::new(position)?, id));
        let numbers: Option<Vec<Number>> = ids.into_iter().zip(positions).map(number).collect();
        numbers.ok_or_else(|| self.unexpected("a position is above 2^53"))
    }

    fn unexpected(&self, reason: &str) -> Error {
        self.client.transport.unexpected(reason, true)
    }

    pub(crate) fn path<const N: usize>(&self, rest: [&str; N]) -> Result<Path, Error> {
        Ok(Path::v1(["series", &self.name].into_iter().chain(rest))?)
    }
}
