//! Gaps: which numbers nobody has, page by page, and looking for them now.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::client::Client;
use crate::error::Error;
use crate::series::Series;
use crate::transport::{Call, Path, Retry};

/// Gaps on one page.
const PAGE: usize = 1_000;

/// Positions of which nobody has the numbers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Gap {
    /// The series.
    pub series: String,
    /// The scope.
    pub scope: BTreeMap<String, String>,
    /// Its period, if the series starts again by date.
    pub period: Option<String>,
    /// The first position.
    pub first: u64,
    /// The last position.
    pub last: u64,
    /// Why, such as `voided`.
    pub reason: String,
    /// Whether somebody may have the numbers all the same: their holder crashed, or forgot.
    pub uncertain: bool,
    /// When it was first seen.
    pub seen: String,
}

/// What a reconciliation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Reconciled {
    /// Scopes that were looked at.
    pub scopes: u64,
    /// Gaps, each a range.
    pub gaps: u64,
    /// Positions in them.
    pub missing: u64,
    /// Positions that a crashed process may have used.
    pub uncertain: u64,
    /// Texts among the user's documents that are no numbers of their series.
    pub strangers: u64,
}

/// The gaps that were found, in the order of their series, scopes and positions. Asked for page by page.
#[derive(Clone, Debug)]
pub struct Gaps {
    client: Client,
    query: Vec<(String, String)>,
    page: usize,
    /// Where the next page begins; none behind the last one.
    after: Option<String>,
    is_over: bool,
}

#[derive(Deserialize)]
struct Page {
    gaps: Vec<Gap>,
    after: Option<String>,
}

impl Gaps {
    /// In this period alone, for a series that starts again by date.
    #[must_use]
    pub fn period(mut self, period: impl Into<String>) -> Self {
        self.query.push(("period".to_owned(), period.into()));
        self
    }

    /// So many on a page, 1 to 10,000; 1,000 unless said.
    #[must_use]
    pub fn page(self, page: usize) -> Self {
        Self { page, ..self }
    }

    /// The next page; none behind the last. A page that failed is asked for again by the next call.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Gap>>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let mut path = Path::of("path", ["v1", "gaps"])?.with("limit", &self.page.to_string());
        for (name, value) in &self.query {
            path = path.with(name, value);
        }
        if let Some(after) = &self.after {
            path = path.with("after", after);
        }
        let Page { gaps, after } = self.client.transport.get(path).await?;
        self.is_over = after.is_none();
        self.after = after;
        Ok((!gaps.is_empty()).then_some(gaps))
    }

    /// All that are left, and at most `max`.
    pub async fn collect(mut self, max: usize) -> Result<Vec<Gap>, Error> {
        let mut all = Vec::new();
        while all.len() < max
            && let Some(gaps) = self.next_page().await?
        {
            all.extend(gaps);
        }
        all.truncate(max);
        Ok(all)
    }
}

impl Client {
    /// The gaps of all series, as the last reconciliation found them.
    ///
    /// ```no_run
    /// # async fn first(client: bates_client::Client) -> Result<(), bates_client::Error> {
    /// let mut gaps = client.gaps();
    /// while let Some(page) = gaps.next_page().await? {
    ///     for gap in page {
    ///         println!("{} {}-{}: {}", gap.series, gap.first, gap.last, gap.reason);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn gaps(&self) -> Gaps {
        Gaps { client: self.clone(), query: Vec::new(), page: PAGE, after: None, is_over: false }
    }

    /// Looks for gaps now, in all series.
    pub async fn reconcile(&self) -> Result<Reconciled, Error> {
        self.transport.call(Call::post(Path::of("path", ["v1", "reconcile"])?, Retry::Freely)).await
    }
}

impl Series {
    /// The gaps of this series, of one scope if the handle names one, as the last reconciliation found them.
    pub fn gaps(&self) -> Gaps {
        let mut gaps = self.client.gaps();
        gaps.query.push(("series".to_owned(), self.name.clone()));
        gaps.query.extend(self.place.scope.clone());
        gaps
    }

    /// Looks for gaps of this series now, in all its scopes.
    pub async fn reconcile(&self) -> Result<Reconciled, Error> {
        let path = Path::of("path", ["v1", "reconcile"])?.with("series", &self.name);
        self.client.transport.call(Call::post(path, Retry::Freely)).await
    }
}
