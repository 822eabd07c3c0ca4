//! Calls besides numbers and documents: identifiers, gaps, decisions about documents, series and pools.

use bates_api::{
    DecisionCount, DocumentStatus, OutboxCounts, Path, PoolList, PoolRequest, PoolStatus, Reconciliation,
    Trace, Verdict,
};
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::Error;
use crate::series::Series;
use crate::transport::{Call, Retry};

/// A decision about documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentAction {
    /// Deliver a dead document again, or a pending one at once.
    Retry,
    /// Give up a document: its number is a gap.
    Abandon,
}

impl DocumentAction {
    fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Abandon => "abandon",
        }
    }
}

impl Client {
    /// The series, scope and position that an identifier matches, and whether it was granted; or `unknown_id`.
    pub async fn find(&self, id: &str) -> Result<Trace, Error> {
        self.transport.get(Path::v1(["ids", id])?).await
    }

    /// Looks for gaps now, in all series.
    pub async fn reconcile(&self) -> Result<Reconciliation, Error> {
        self.post(Path::v1(["reconcile"])?).await
    }

    /// How many documents of each series are in each state.
    pub async fn outbox_counts(&self) -> Result<OutboxCounts, Error> {
        self.transport.get(Path::v1(["outbox", "counts"])?).await
    }

    /// Delivers a dead document again, or a pending one at once; by its number or its event id.
    pub async fn retry(&self, id: &str) -> Result<DocumentStatus, Error> {
        self.decide(id, DocumentAction::Retry).await
    }

    /// Gives up a document, by its number or its event id: its number becomes a gap, uncertain if the sink may have taken
    /// it. Idempotent. Refused with `delivery_under_way` while it is being delivered.
    pub async fn abandon(&self, id: &str) -> Result<DocumentStatus, Error> {
        self.decide(id, DocumentAction::Abandon).await
    }

    /// Decides about a document, by its number or its event id.
    pub async fn decide(&self, id: &str, decision: DocumentAction) -> Result<DocumentStatus, Error> {
        self.post(Path::v1(["outbox", id, decision.name()])?).await
    }

    /// Decides about all dead documents, or those of a series, and answers how many.
    pub async fn decide_all(&self, series: Option<&str>, decision: DocumentAction) -> Result<u64, Error> {
        let path = Path::v1(["outbox", decision.name()])?;
        let path = series.into_iter().fold(path, |path, series| path.with("series", series));
        let DecisionCount { count } = self.post(path).await?;
        Ok(count)
    }

    pub(crate) async fn post<T: DeserializeOwned>(&self, path: Path) -> Result<T, Error> {
        self.transport.call(Call::post(path, Retry::Freely)).await
    }
}

impl Series {
    /// Whether a text could be a number of the series, and every reason against it. [`Client::find`] says if it was granted.
    pub async fn validate(&self, id: &str) -> Result<Verdict, Error> {
        self.client.transport.get(self.path(["validate", id])?).await
    }

    /// The description of the series, and the properties derived from it.
    pub async fn describe(&self) -> Result<bates_api::Series, Error> {
        self.client.transport.get(self.path([])?).await
    }

    /// Looks for gaps of this series now, in all its scopes.
    pub async fn reconcile(&self) -> Result<Reconciliation, Error> {
        self.client.post(Path::v1(["reconcile"])?.with("series", self.name())).await
    }

    /// Requests a shared pool of the scope: the server keeps it full from now on.
    pub async fn keep_pool(&self) -> Result<PoolStatus, Error> {
        let request = PoolRequest { scope: self.scope.clone() };
        self.client.transport.post(self.path(["pool"])?, &request, Retry::Freely).await
    }

    /// The shared pools of the series.
    pub async fn pools(&self) -> Result<Vec<PoolStatus>, Error> {
        let path = Path::v1(["pools"])?.with("series", self.name());
        let PoolList { pools } = self.client.transport.get(path).await?;
        Ok(pools)
    }
}
