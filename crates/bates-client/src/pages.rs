//! Lists of a server, page by page.

use std::marker::PhantomData;

use bates_api::{AuditPage, GapPage, LeasePage, OutboxPage, Page, Path, SeriesPage};

use crate::client::Client;
use crate::error::Error;
use crate::series::Series;

/// A list of a server, fetched page by page.
#[derive(Clone, Debug)]
#[must_use]
pub struct Pages<P> {
    client: Client,
    list: &'static str,
    query: Vec<(String, String)>,
    after: Option<String>,
    is_over: bool,
    reconciled_at: Option<String>,
    page: PhantomData<fn() -> P>,
}

/// Gaps, in the order of their series, scopes and positions.
pub type Gaps = Pages<GapPage>;
/// Documents and reservations, in the order of their event ids.
pub type Outbox = Pages<OutboxPage>;
/// Leases that programs hold, the oldest first.
pub type HeldLeases = Pages<LeasePage>;
/// The series of a server, by name.
pub type SeriesDescriptions = Pages<SeriesPage>;
/// Who took which numbers of audited series, the oldest first.
pub type Audit = Pages<AuditPage>;

impl<P: Page> Pages<P> {
    pub(crate) fn new(client: &Client, list: &'static str) -> Self {
        let client = client.clone();
        let query = Vec::new();
        Self { client, list, query, after: None, is_over: false, reconciled_at: None, page: PhantomData }
    }

    /// Only items that match a query parameter of the API, such as one of the scope.
    pub fn filter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((name.into(), value.into()));
        self
    }

    /// Only items of this series.
    pub fn series(self, name: impl Into<String>) -> Self {
        self.filter("series", name)
    }

    /// The size of a page, up to the limit that the API documents for the list.
    pub fn page(self, size: usize) -> Self {
        self.filter("limit", size.to_string())
    }

    /// The next page; `None` after the last. After an error, the next call requests the same page.
    pub async fn next_page(&mut self) -> Result<Option<Vec<P::Item>>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let pairs = self.query.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let pairs = pairs.chain(self.after.as_deref().map(|after| ("after", after)));
        let path = pairs.fold(Path::v1([self.list])?, |path, (name, value)| path.with(name, value));
        let page = self.client.transport.get::<P>(path).await?;
        self.reconciled_at = page.reconciled_at().map(str::to_owned);
        let (items, after) = page.into_parts();
        self.is_over = after.is_none();
        self.after = after;
        Ok((!items.is_empty()).then_some(items))
    }

    /// All remaining items, at most `max`.
    pub async fn collect(mut self, max: usize) -> Result<Vec<P::Item>, Error> {
        let mut all = Vec::new();
        while all.len() < max
            && let Some(items) = self.next_page().await?
        {
            all.extend(items);
        }
        all.truncate(max);
        Ok(all)
    }
}

impl Gaps {
    /// Only gaps of this period, for a series that resets.
    pub fn period(self, period: impl Into<String>) -> Self {
        self.filter("period", period)
    }

    /// When the reconciliation that found the gaps began, as the last page said: later losses are not listed yet. `None`
    /// before the first page, and if a series was never reconciled, so that its gaps are unknown.
    pub fn reconciled_at(&self) -> Option<&str> {
        self.reconciled_at.as_deref()
    }
}

impl Outbox {
    /// Only documents in this state, such as `dead`.
    pub fn state(self, state: impl Into<String>) -> Self {
        self.filter("state", state)
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
        Pages::new(self, "gaps")
    }

    /// Documents and reservations, by their event ids.
    pub fn outbox(&self) -> Outbox {
        Pages::new(self, "outbox")
    }

    /// The leases that programs hold.
    pub fn leases(&self) -> HeldLeases {
        Pages::new(self, "leases")
    }

    /// The series of the server, by name.
    pub fn all_series(&self) -> SeriesDescriptions {
        Pages::new(self, "series")
    }

    /// Who took which numbers.
    pub fn audit(&self) -> Audit {
        Pages::new(self, "audit")
    }
}

impl Series {
    /// The gaps of this series, of one scope if the handle names one, as the last reconciliation found them.
    pub fn gaps(&self) -> Gaps {
        let gaps = self.client.gaps().series(self.name());
        self.scope.iter().fold(gaps, |gaps, (name, value)| gaps.filter(name, value))
    }
}
