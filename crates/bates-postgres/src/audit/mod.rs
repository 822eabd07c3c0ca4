//! The audit in the shared store. Records that wait at a node are written together; the record of a document is written by
//! the batch that numbers it. Times are those of the nodes.

mod recorder;

use bates_core::{
    AuditFilter, AuditRecord, AuditStamp, AuditStore, Channel, SeriesName, StoreError, StoreResult,
};
use jiff::Timestamp;
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use crate::PostgresStore;
use crate::batch::sql::{self, column, get_u64, to_i64};
use crate::listed::{like_patterns, scope_condition};
use crate::outbox::{to_limit, without_nul};
use crate::parameter::Parameter;
use crate::session::Session;

pub(crate) use recorder::Recorder;

/// Ignores a record that is already there: an id is used only once.
const INSERT: &str = "
    INSERT INTO bates.audit
        (taken_at, id, series, scope, first, last, first_number, last_number, count, caller, channel)
    SELECT 'epoch'::timestamptz + taken_micros * interval '1 microsecond',
        id, series, scope, first, last, first_number, last_number, count, caller, channel
    FROM UNNEST($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS record
        (taken_micros, id, series, scope, first, last, first_number, last_number, count, caller, channel)
    ON CONFLICT (taken_at, id) DO NOTHING";

/// Ranges do not overlap, so only the last range that begins at or before a position can contain it.
const RECORDS: &str = "
    SELECT id, series, scope, first, last, first_number, last_number, count, caller, channel,
        (extract(epoch FROM taken_at) * 1000000)::bigint
    FROM bates.audit
    WHERE ($1::text IS NULL OR series = $1) AND ($2::text IS NULL OR scope = $2)
    AND ($3::bigint IS NULL OR (first <= $3 AND last >= $3))
    AND ($3::bigint IS NULL OR $1::text IS NULL OR $2::text IS NULL OR first = (
        SELECT max(earlier.first) FROM bates.audit AS earlier
        WHERE earlier.series = $1 AND earlier.scope = $2 AND earlier.first <= $3))
    AND ($4::text IS NULL OR caller = $4)
    AND ($5::float8 IS NULL OR taken_at >= 'epoch'::timestamptz + $5 * interval '1 microsecond')
    AND ($6::float8 IS NULL OR taken_at < 'epoch'::timestamptz + $6 * interval '1 microsecond')
    AND ($7::float8 IS NULL OR (taken_at, id) > ('epoch'::timestamptz + $7 * interval '1 microsecond', $8))
    AND series LIKE ANY ($10) AND string_to_array(scope, ' ') @> $11
    ORDER BY taken_at, id LIMIT $9";

const PRUNE: &str = "
    DELETE FROM bates.audit WHERE (taken_at, id) IN (
        SELECT taken_at, id FROM bates.audit
        WHERE series = $1 AND taken_at < 'epoch'::timestamptz + $2 * interval '1 microsecond'
        ORDER BY taken_at, id LIMIT $3 FOR UPDATE SKIP LOCKED)";

impl AuditStore for PostgresStore {
    async fn record(&self, records: Vec<AuditRecord>) -> StoreResult<()> {
        self.recorder.record(&self.shared, records).await
    }

    async fn records(
        &self,
        filter: AuditFilter,
        after: Option<(Timestamp, Uuid)>,
        limit: usize,
    ) -> StoreResult<Vec<AuditRecord>> {
        let series = filter.series.as_ref().map(SeriesName::as_str);
        let (scope, words) = scope_condition(filter.scope.as_ref());
        let position = filter.position.map(|position| to_i64(position.value()));
        let caller = filter.caller.as_deref().map(without_nul);
        let (since, until) = (filter.since.map(micros), filter.until.map(micros));
        let (after_at, after_id) = (after.map(|(at, _)| micros(at)), after.map(|(_, id)| id));
        let (limit, among) = (to_limit(limit), like_patterns(&filter.among));
        let parameters: [&dyn Parameter; 11] = [
            &series, &scope, &position, &caller, &since, &until, &after_at, &after_id, &limit, &among, &words,
        ];
        let unreadable = || StoreError::Unavailable("a record of the audit cannot be read".into());
        let rows = self.query(RECORDS, &parameters).await?;
        rows.iter().map(|row| record(row).ok_or_else(unreadable)).collect()
    }

    /// A retry after a lost answer does not count the records that the first attempt removed.
    async fn prune_records(&self, series: SeriesName, before: Timestamp, limit: usize) -> StoreResult<u64> {
        let parameters: [&dyn Parameter; 3] = [&series.as_str(), &micros(before), &to_limit(limit)];
        self.with_session(|session| async move {
            session.transact(async { Ok(session.execute(PRUNE, &parameters).await?) }).await
        })
        .await
    }
}

pub(crate) async fn insert(session: &Session, records: &[&AuditRecord]) -> Result<(), Error> {
    if records.is_empty() {
        return Ok(());
    }
    let taken_at = column(records, |record| micros(record.stamp.at));
    let ids = column(records, |record| record.id);
    let (series, scopes) = sql::columns(records.iter().map(|record| &record.scope_id));
    let (firsts, lasts) = sql::bounds(records.iter().map(|record| record.range));
    let first_numbers = column(records, |record| without_nul(&record.first));
    let last_numbers = column(records, |record| without_nul(&record.last));
    let counts = column(records, |record| to_i64(record.count));
    let callers = column(records, |record| without_nul(&record.stamp.caller));
    let channels = column(records, |record| record.stamp.channel.name());
    let parameters: [&dyn Parameter; 11] = [
        &taken_at,
        &ids,
        &series,
        &scopes,
        &firsts,
        &lasts,
        &first_numbers,
        &last_numbers,
        &counts,
        &callers,
        &channels,
    ];
    session.query(INSERT, &parameters).await.map(drop)
}

fn record(row: &Row) -> Option<AuditRecord> {
    let text = |column: usize| row.get::<_, &str>(column).into();
    Some(AuditRecord {
        id: row.get(0),
        scope_id: sql::scope_id(row, 1)?,
        range: sql::range(row, 3)?,
        first: text(5),
        last: text(6),
        count: get_u64(row, 7),
        stamp: AuditStamp {
            caller: text(8),
            channel: Channel::from_name(row.get(9))?,
            at: Timestamp::from_microsecond(row.get(10)).ok()?,
        },
    })
}

/// A time as a factor of an interval in SQL. Exact until the year 2255.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn micros(time: Timestamp) -> f64 {
    time.as_microsecond() as f64
}
