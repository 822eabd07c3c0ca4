//! What an identifier is, and what speaks against it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::client::Client;
use crate::error::Error;
use crate::series::Series;
use crate::transport::Path;

/// Whether a text could be an identifier of a series.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether nothing speaks against it.
    pub valid: bool,
    /// Everything that does.
    pub reasons: Vec<Reason>,
}

/// One thing that speaks against a text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Reason {
    /// Its stable code.
    pub code: String,
    /// A sentence.
    pub message: String,
}

/// What an identifier could be.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Trace {
    /// The identifier.
    pub id: String,
    /// Each series that it could be of, at least one.
    pub matches: Vec<Match>,
}

/// A series and scope that an identifier could be of.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Match {
    /// The series.
    pub series: String,
    /// The parameters that the identifier shows.
    pub scope: BTreeMap<String, String>,
    /// The period that it shows.
    pub period: Option<String>,
    /// Its position.
    pub position: u64,
    /// Whether the position was granted; none if the identifier does not show its whole scope.
    pub granted: Option<bool>,
}

impl Series {
    /// Whether a text could be a number of the series, with everything that speaks against it. Whether it was granted is a
    /// question to [`Client::find`].
    pub async fn validate(&self, id: &str) -> Result<Verdict, Error> {
        self.client.transport.get(self.path(["validate", id])?).await
    }
}

impl Client {
    /// Which series and scope an identifier could be of, its position, and whether it was granted. A text that is no
    /// identifier of any series is refused with `unknown_id`.
    pub async fn find(&self, id: &str) -> Result<Trace, Error> {
        self.transport.get(Path::of("identifier", ["v1", "ids", id])?).await
    }
}
