//! Prefetched numbers: the client leases ranges from the server and renders their numbers itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bates_api::{Day, LeaseGrant, LeaseRequest, Path, PositionRange, ReturnOutcome, ReturnRequest};
use bates_pattern::{Construction, Options, Pattern, Position, Reset, Scope};
use bates_prefetch::{Lease, LeaseContent, Positions, Prefetch, Source};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::error::Error;
use crate::series::Series;
use crate::transport::Retry;

/// Prefetched numbers of one scope of a server. Made by [`Series::prefetch`].
pub type Prefetched = bates_prefetch::Prefetched<Leases>;

/// The source of prefetched numbers: leases of one scope of a server.
pub struct Leases {
    series: Series,
    /// Compiled from the first answer; a series never changes its pattern.
    scope: OnceLock<Arc<Scope>>,
    /// Whether the server must render the numbers, because this program cannot.
    as_numbers: AtomicBool,
}

impl Series {
    /// Prefetches numbers of the scope into memory: this many at first, and up to a hundred times as many while they are
    /// used up within a second, unless a [`Prefetch`] says otherwise. The series must be `unique`, or calls fail.
    ///
    /// ```no_run
    /// # async fn first() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = bates_client::Client::connect("http://127.0.0.1:8080")?;
    /// let keys = client.series("short").prefetch(100);
    /// let key = keys.next().await?.to_string();
    /// if let Ok(key) = keys.try_next() {
    ///     println!("{key} came from memory");
    /// }
    /// keys.close().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn prefetch(&self, prefetch: impl Into<Prefetch>) -> Prefetched {
        let (series, as_numbers) = (self.clone(), AtomicBool::new(false));
        let leases = Leases { series, scope: OnceLock::new(), as_numbers };
        Prefetched::new(leases, prefetch.into(), &Handle::current())
    }
}

impl Source for Leases {
    type Error = Error;

    async fn lease(&self, count: u64, used: Vec<Uuid>) -> Result<Lease, Error> {
        match self.read(self.request(count, used).await?).ok_or_else(|| self.unexpected())? {
            LeaseAnswer::Lease(lease) => return Ok(lease),
            LeaseAnswer::Unrenderable(lease, ranges) => {
                // The server is newer than this program: it renders the numbers from now on.
                self.as_numbers.store(true, Ordering::Relaxed);
                self.give_back(lease, ranges).await?;
            }
        }
        match self.read(self.request(count, Vec::new()).await?) {
            Some(LeaseAnswer::Lease(lease)) => Ok(lease),
            _ => Err(self.unexpected()),
        }
    }

    async fn give_back(&self, lease: Uuid, unused: Vec<Positions>) -> Result<(), Error> {
        let path = Path::v1(["leases", &lease.to_string(), "return"])?;
        let range = |it: &Positions| PositionRange { first: it.start().value(), last: it.end().value() };
        let request = ReturnRequest { unused: unused.iter().map(range).collect() };
        let transport = &self.series.client.transport;
        match transport.post::<ReturnOutcome>(path, &request, Retry::Freely).await {
            // An earlier attempt ended the lease, but its answer was lost.
            Err(error) if error.code() == Some("unknown_lease") => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    fn report_timeout(&self) -> Duration {
        self.series.client.transport.settings.total
    }

    #[expect(clippy::disallowed_methods, reason = "the wall clock says whether this machine slept")]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

enum LeaseAnswer {
    Lease(Lease),
    /// Ranges whose numbers this program cannot render.
    Unrenderable(Uuid, Vec<Positions>),
}

impl Leases {
    async fn request(&self, count: u64, used: Vec<Uuid>) -> Result<LeaseGrant, Error> {
        let Series { client, scope, date, .. } = &self.series;
        let numbers = self.as_numbers.load(Ordering::Relaxed);
        let used = used.iter().map(ToString::to_string).collect();
        let request = LeaseRequest { scope: scope.clone(), count, date: *date, numbers, used };
        // A series with leases may have gaps, so a retry is always allowed.
        client.transport.post(self.series.path(["lease"])?, &request, Retry::Freely).await
    }

    fn read(&self, mut grant: LeaseGrant) -> Option<LeaseAnswer> {
        let id = grant.lease.parse().ok()?;
        let valid_for = grant.good_for_ms.map(Duration::from_millis);
        let ranges = grant.ranges.take().unwrap_or_default().into_iter();
        let ranges = ranges.map(|range| Some(Position::new(range.first)?..=Position::new(range.last)?));
        let ranges: Vec<Positions> = ranges.collect::<Option<_>>()?;
        if let Some(numbers) = grant.numbers.take().filter(|numbers| !numbers.is_empty()) {
            let numbers = numbers.into_iter();
            let numbers = numbers.map(|number| Some((Position::new(number.position)?, number.id.into())));
            let content = LeaseContent::Numbers(numbers.collect::<Option<_>>()?, ranges);
            return Some(LeaseAnswer::Lease(Lease { id, content, valid_for }));
        }
        if ranges.is_empty() || ranges.iter().any(Positions::is_empty) {
            return None;
        }
        let Some(scope) = self.scope(&grant, &ranges) else {
            return Some(LeaseAnswer::Unrenderable(id, ranges));
        };
        let content = LeaseContent::Ranges(ranges, scope);
        Some(LeaseAnswer::Lease(Lease { id, content, valid_for }))
    }

    fn scope(&self, grant: &LeaseGrant, ranges: &[Positions]) -> Option<Arc<Scope>> {
        let template = grant.template.as_deref()?;
        let scope = match self.scope.get() {
            Some(scope) if scope.pattern().template() == template => scope.clone(),
            Some(_) => return None,
            None => {
                let scope = self.compile(grant, template)?;
                self.scope.get_or_init(|| Arc::new(scope)).clone()
            }
        };
        let last = scope.pattern().last();
        ranges.iter().all(|range| *range.end() <= last).then_some(scope)
    }

    fn compile(&self, grant: &LeaseGrant, template: &str) -> Option<Scope> {
        let construction = Construction::from_number(grant.construction?)?;
        let reset = grant.reset.as_deref().map_or(Some(Reset::Never), |reset| reset.parse().ok())?;
        let options = Options { reset, construction, ..Options::default() };
        let pattern = Pattern::compile(template, options).ok()?;
        let shown: Vec<&str> = pattern.parameters().collect();
        let scope = self.series.scope.iter().filter(|(name, _)| shown.contains(name));
        pattern.scope(scope, self.series.date.map(Day::date)).ok()
    }

    fn unexpected(&self) -> Error {
        self.series.client.transport.unexpected("the lease is invalid", true)
    }
}
