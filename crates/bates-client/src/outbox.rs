//! The outbox: documents that are not delivered yet, or never will be, and what somebody decides about them.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::client::Client;
use crate::document::KnownDocument;
use crate::error::Error;
use crate::transport::{Call, Path, Retry};

/// The outbox of a server. Asked for page by page.
#[derive(Clone, Debug)]
pub struct Outbox {
    client: Client,
    query: Vec<(&'static str, String)>,
    after: Option<String>,
    is_over: bool,
}

#[derive(Deserialize)]
struct Page {
    documents: Vec<KnownDocument>,
    after: Option<String>,
}

impl Outbox {
    /// Documents of this series alone.
    #[must_use]
    pub fn series(mut self, name: impl Into<String>) -> Self {
        self.query.push(("series", name.into()));
        self
    }

    /// Documents in this state alone, such as `dead`.
    #[must_use]
    pub fn state(mut self, state: impl Into<String>) -> Self {
        self.query.push(("state", state.into()));
        self
    }

    /// The next page of documents; none behind the last. A page that failed is asked for again by the next call.
    pub async fn next_page(&mut self) -> Result<Option<Vec<KnownDocument>>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let mut path = Path::of("path", ["v1", "outbox"])?;
        for (name, value) in &self.query {
            path = path.with(name, value);
        }
        if let Some(after) = &self.after {
            path = path.with("after", after);
        }
        let Page { documents, after } = self.client.transport.get(path).await?;
        self.is_over = after.is_none();
        self.after = after;
        Ok((!documents.is_empty()).then_some(documents))
    }
}

impl Client {
    /// Documents and reservations, by their event ids.
    pub fn outbox(&self) -> Outbox {
        Outbox { client: self.clone(), query: Vec::new(), after: None, is_over: false }
    }

    /// How many documents of each series are in each state.
    pub async fn outbox_counts(&self) -> Result<BTreeMap<String, BTreeMap<String, u64>>, Error> {
        self.transport.get(Path::of("path", ["v1", "outbox", "counts"])?).await
    }

    /// Delivers a dead document after all, or a pending one at once; by its number or its event id.
    pub async fn retry(&self, id: &str) -> Result<KnownDocument, Error> {
        self.settle(id, "retry").await
    }

    /// Gives up a document: its number is a gap from now on, uncertain if the sink may have taken it. By its number or its
    /// event id. Twice is once. Refused with `delivery_under_way` while it is being delivered.
    pub async fn abandon(&self, id: &str) -> Result<KnownDocument, Error> {
        self.settle(id, "abandon").await
    }

    async fn settle(&self, id: &str, decision: &str) -> Result<KnownDocument, Error> {
        let path = Path::of("identifier", ["v1", "outbox", id, decision])?;
        self.transport.call(Call::post(path, Retry::Freely)).await
    }
}
