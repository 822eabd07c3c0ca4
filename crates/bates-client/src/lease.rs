//! Numbers in advance: a range is leased from the server once, and numbers of it are made here.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bates_pattern::{Construction, Options, Pattern, Reset, Scope};
use bates_prefetch::{Given, Numbers, Prefetch, Source};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::error::Error;
use crate::series::{Place, Series};
use crate::transport::{Path, Retry};

/// Numbers of one scope of a server, held in advance.
///
/// Made by [`Series::prefetch`]. `next` waits only where nothing is at hand, `try_next` never.
pub type Prefetched = bates_prefetch::Prefetched<Leases>;

/// Where numbers in advance come from: leases of one scope of a server.
pub struct Leases {
    series: Series,
    /// Made of the first answer; a series never changes what its numbers look like.
    scope: OnceLock<Arc<Scope>>,
    /// Whether this program cannot make the numbers of the series.
    as_numbers: AtomicBool,
}

#[derive(Serialize)]
struct Ask<'a> {
    #[serde(flatten)]
    place: &'a Place,
    count: u64,
    numbers: bool,
    used: Vec<Uuid>,
}

/// A lease, as the server gives it.
#[derive(Deserialize)]
struct Answer {
    lease: Uuid,
    ranges: Option<Vec<Span>>,
    #[serde(flatten)]
    made: Option<Made>,
    numbers: Option<Vec<Number>>,
    good_for_ms: Option<u64>,
}

/// How a number is made of a position.
#[derive(Deserialize)]
struct Made {
    template: String,
    reset: Option<String>,
    construction: u16,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
struct Span {
    first: u64,
    last: u64,
}

#[derive(Deserialize)]
struct Number {
    position: u64,
    id: Box<str>,
}

#[derive(Serialize)]
struct Return {
    unused: Vec<Span>,
}

#[derive(Deserialize)]
struct Returned {}

impl Series {
    /// Holds numbers of the scope in advance, in the memory of this program: so many at first, and up to a hundred times
    /// as many while they are used up within a second; say otherwise with [`Prefetch`]. Only for series that are
    /// `unique`; the first call says so if it is not.
    ///
    /// ```no_run
    /// # async fn first() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = bates_client::Client::connect("http://127.0.0.1:8080")?;
    /// let keys = client.series("short").prefetch(100);
    /// let key = keys.next().await?.to_string();
    /// if let Ok(key) = keys.try_next() {
    ///     println!("{key} came out of memory");
    /// }
    /// keys.close().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn prefetch(&self, prefetch: impl Into<Prefetch>) -> Prefetched {
        let leases =
            Leases { series: self.clone(), scope: OnceLock::new(), as_numbers: AtomicBool::new(false) };
        Prefetched::new(leases, prefetch.into(), &Handle::current())
    }
}

impl Source for Leases {
    type Error = Error;

    async fn lease(&self, count: u64, used: Vec<Uuid>) -> Result<Given, Error> {
        let answer = self.ask(count, used).await?;
        let lease = answer.lease;
        match self.read(answer) {
            Read::Given(given) => Ok(given),
            Read::Foreign(ranges) => {
                // A newer server than this program: it writes the numbers itself from now on.
                self.as_numbers.store(true, Ordering::Relaxed);
                self.give_back(lease, ranges).await?;
                match self.read(self.ask(count, Vec::new()).await?) {
                    Read::Given(given) => Ok(given),
                    Read::Foreign(_) | Read::Strange => Err(self.strange()),
                }
            }
            Read::Strange => Err(self.strange()),
        }
    }

    async fn give_back(&self, lease: Uuid, unused: Vec<Range<u64>>) -> Result<(), Error> {
        let path = Path::of("lease", ["v1", "leases", &lease.to_string(), "return"])?;
        let span = |range: Range<u64>| Span { first: range.start, last: range.end - 1 };
        let unused = Return { unused: unused.into_iter().map(span).collect() };
        let told: Result<Returned, Error> =
            self.series.client.transport.post(path, &unused, Retry::Freely).await;
        match told {
            // An attempt before this one was heard, and not answered.
            Err(error) if error.code() == Some("unknown_lease") => Ok(()),
            told => told.map(drop),
        }
    }

    fn report_time(&self) -> Duration {
        self.series.client.transport.patience.total
    }

    #[expect(clippy::disallowed_methods, reason = "the wall clock says whether this machine slept")]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// What an answer holds.
enum Read {
    Given(Given),
    /// Ranges of a series whose numbers this program cannot make.
    Foreign(Vec<Range<u64>>),
    Strange,
}

impl Leases {
    async fn ask(&self, count: u64, used: Vec<Uuid>) -> Result<Answer, Error> {
        let Series { client, name: _, place } = &self.series;
        let ask = Ask { place, count, numbers: self.as_numbers.load(Ordering::Relaxed), used };
        // Of a series with leases a number may be missing, so asking again is always allowed.
        client.transport.post(self.series.path(["lease"])?, &ask, Retry::Freely).await
    }

    fn read(&self, answer: Answer) -> Read {
        let Answer { lease, ranges, made, numbers, good_for_ms } = answer;
        let good_for = good_for_ms.map(Duration::from_millis);
        let ranges = ranges.unwrap_or_default().into_iter();
        let ranges = ranges.map(|span| Some(span.first..span.last.checked_add(1)?));
        let Some(ranges) = ranges.collect::<Option<Vec<Range<u64>>>>() else { return Read::Strange };
        if let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty()) {
            let numbers = numbers.into_iter().map(|number| (number.position, number.id)).collect();
            return Read::Given(Given { lease, numbers: Numbers::Written(numbers, ranges), good_for });
        }
        if ranges.is_empty() || ranges.iter().any(Range::is_empty) {
            return Read::Strange;
        }
        match made.and_then(|made| self.scope(&made, &ranges)) {
            Some(scope) => Read::Given(Given { lease, numbers: Numbers::Positions(ranges, scope), good_for }),
            None => Read::Foreign(ranges),
        }
    }

    /// The scope that makes numbers of all these positions, if this program knows how.
    fn scope(&self, made: &Made, ranges: &[Range<u64>]) -> Option<Arc<Scope>> {
        let scope = match self.scope.get() {
            Some(scope) if scope.pattern().template() == made.template => scope.clone(),
            Some(_) => return None,
            None => {
                let scope = self.compiled(made)?;
                self.scope.get_or_init(|| Arc::new(scope)).clone()
            }
        };
        let last = scope.pattern().last().value();
        ranges.iter().all(|range| range.end - 1 <= last).then_some(scope)
    }

    fn compiled(&self, made: &Made) -> Option<Scope> {
        let construction = Construction::of_number(made.construction)?;
        let reset = made.reset.as_deref().map_or(Some(Reset::Never), |reset| reset.parse().ok())?;
        let pattern =
            Pattern::compile(&made.template, Options { reset, construction, ..Options::default() }).ok()?;
        let Place { scope, date } = &self.series.place;
        let shown: Vec<&str> = pattern.parameters().collect();
        let shown = scope.iter().filter(|(name, _)| shown.contains(&name.as_str()));
        pattern.scope(shown, date.as_deref().and_then(|date| date.parse().ok())).ok()
    }

    fn strange(&self) -> Error {
        self.series.client.transport.strange(200, "it leases what are no numbers", true)
    }
}
