//! What the shared store knows about the positions of each scope, and the gaps of the last reconciliation.

use bates_core::{
    CLIENT_LEASE_TTL, Cursor, Gap, GapFilter, GapReason, GapStore, MissingRange, RangeKind, RangeRecord,
    ReadPurpose, ScopeId, ScopeKey, ScopeRecord, SeriesName, StoreError, StoreResult,
};
use jiff::Timestamp;
use tokio_postgres::{Error, Row};

use crate::PostgresStore;
use crate::batch::sql::{self, get_u64, to_i64};
use crate::error::Failure;
use crate::listed::{like_patterns, scope_condition};
use crate::outbox::to_limit;
use crate::parameter::Parameter;
use crate::session::Session;
use crate::{holding, node};

/// All ranges of scopes with their kinds. Adjacent ranges of the ledger are merged, which keeps the answer small.
/// A filler counts as crashed after its node was silent for `$4` seconds; a client counts as silent after `$5` seconds.
const RANGES: &str = "
    SELECT scope, min(first), max(last), 'issued' FROM (
        SELECT scope, first, last, sum(step) OVER (PARTITION BY scope ORDER BY first) AS run FROM (
            SELECT scope, first, last,
                   CASE WHEN first = lag(last) OVER (PARTITION BY scope ORDER BY first) + 1 THEN 0 ELSE 1 END AS step
            FROM bates.ledger WHERE series = $1 AND scope BETWEEN $2 AND $3
        ) AS steps
    ) AS runs GROUP BY scope, run
    UNION ALL
    SELECT scope, first, last, CASE WHEN crashed_at IS NULL THEN 'held' ELSE 'crashed' END
        FROM bates.held_range WHERE series = $1 AND scope BETWEEN $2 AND $3
    UNION ALL
    SELECT pooled.scope, pooled.first, pooled.last,
           CASE WHEN pooled.is_pushed THEN 'pushed'
                WHEN nodes.seen_at > now() - $4 * interval '1 second' THEN 'filling' ELSE 'filler_crashed' END
        FROM bates.pooled LEFT JOIN bates.nodes ON nodes.id = pooled.node
        WHERE pooled.series = $1 AND pooled.scope BETWEEN $2 AND $3
    UNION ALL
    SELECT scope, first, last,
           CASE WHEN leased_at > now() - $5 * interval '1 second' THEN 'with_client' ELSE 'client_silent' END
        FROM bates.client_lease WHERE series = $1 AND scope BETWEEN $2 AND $3
    UNION ALL
    SELECT scope, first, last, 'burned' FROM bates.burned WHERE series = $1 AND scope BETWEEN $2 AND $3
    UNION ALL
    SELECT scope, first, last, reason FROM bates.lost WHERE series = $1 AND scope BETWEEN $2 AND $3";

const DOCUMENTS: &str = "
    UNION ALL
    SELECT scope, position, position, CASE WHEN in_doubt THEN 'in_doubt ' ELSE 'document ' END || state
        FROM bates.document WHERE series = $1 AND scope BETWEEN $2 AND $3
        AND state IN ('dead', 'abandoned', 'voided', 'pending', 'reserved')";

/// Merges adjacent ranges of the ledger, so that it grows with the number of gaps, not of batches. Several nodes may do
/// this at once.
const COMPACT: &str = "
    WITH steps AS (
        SELECT scope, first, last,
               CASE WHEN first = lag(last) OVER (PARTITION BY scope ORDER BY first) + 1 THEN 0 ELSE 1 END AS step
        FROM bates.ledger WHERE series = $1 AND scope = ANY ($2)
    ), runs AS (
        SELECT scope, first, last, sum(step) OVER (PARTITION BY scope ORDER BY first) AS run FROM steps
    ), merged AS (
        SELECT scope, min(first) AS first, max(last) AS last FROM runs GROUP BY scope, run HAVING count(*) > 1
    ), deleted AS (
        DELETE FROM bates.ledger USING merged WHERE ledger.series = $1 AND ledger.scope = merged.scope
            AND ledger.first > merged.first AND ledger.last <= merged.last
    )
    UPDATE bates.ledger SET last = greatest(ledger.last, merged.last) FROM merged
        WHERE ledger.series = $1 AND ledger.scope = merged.scope AND ledger.first = merged.first";

/// A gap that was known before keeps its `seen_at`.
const PUT: &str = "
    INSERT INTO bates.gap AS gap (series, scope, first, last, reason)
    SELECT $1, scope, first, last, reason FROM UNNEST($2, $3, $4, $5) AS missing (scope, first, last, reason)
    ON CONFLICT (series, scope, first) DO UPDATE SET last = excluded.last, reason = excluded.reason,
        seen_at = CASE WHEN gap.reason = excluded.reason THEN gap.seen_at ELSE now() END";

const CLOSE: &str = "
    DELETE FROM bates.gap WHERE series = $1 AND scope = ANY ($2) AND NOT EXISTS (
        SELECT FROM UNNEST($3, $4) AS missing (scope, first)
        WHERE missing.scope = gap.scope AND missing.first = gap.first)";

impl GapStore for PostgresStore {
    async fn scope_records(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
        purpose: ReadPurpose,
    ) -> StoreResult<Vec<ScopeRecord>> {
        let (series, after) = (&series, after.as_ref());
        self.with_session(|session| async move {
            if purpose == ReadPurpose::Reconcile {
                Box::pin(holding::mark_crashed(&session, series)).await?;
            }
            // One snapshot: otherwise a document that is numbered meanwhile would look missing.
            session.begin_snapshot().await?;
            let mut scopes = scopes(&session, series, after, limit).await?;
            add_ranges(&session, series, &mut scopes, purpose).await?;
            session.commit().await?;
            Ok(scopes)
        })
        .await
    }

    async fn replace_gaps(
        &self,
        series: SeriesName,
        scopes: Vec<(ScopeKey, Vec<MissingRange>)>,
    ) -> StoreResult<()> {
        let (series, scopes) = (&series, &scopes);
        self.with_session(|session| async move { put_gaps(&session, series, scopes).await }).await
    }

    async fn set_reconciled(&self, series: SeriesName, at: Timestamp) -> StoreResult<()> {
        let page = [(series, at)];
        let page = &page;
        self.with_session(|session| async move { Ok(put_reconciled(&session, page).await?) }).await
    }

    async fn reconciled(&self) -> StoreResult<Vec<(SeriesName, Timestamp)>> {
        let sql = "SELECT name, (extract(epoch FROM reconciled_at) * 1000)::bigint FROM bates.series
                   WHERE reconciled_at IS NOT NULL ORDER BY name";
        let read = |row: &Row| {
            Some((row.get::<_, &str>(0).parse().ok()?, Timestamp::from_millisecond(row.get(1)).ok()?))
        };
        Ok(self.query(sql, &[]).await?.iter().filter_map(read).collect())
    }

    async fn gaps(
        &self,
        filter: GapFilter,
        after: Option<(ScopeId, u64)>,
        limit: usize,
    ) -> StoreResult<Vec<Gap>> {
        let sql = "SELECT series, scope, first, last, reason, (extract(epoch FROM seen_at) * 1000)::bigint
                   FROM bates.gap
                   WHERE ($1::text IS NULL OR series = $1) AND ($2::text IS NULL OR scope = $2)
                   AND ($3::text IS NULL OR (series, scope, first) > ($3, $4, $5))
                   AND series LIKE ANY ($7) AND string_to_array(scope, ' ') @> $8
                   ORDER BY series, scope, first LIMIT $6";
        let series = filter.series.as_ref().map(SeriesName::as_str);
        let (scope, words) = scope_condition(filter.scope.as_ref());
        let after_series = after.as_ref().map(|(scope_id, _)| scope_id.series.as_str());
        let after_scope = after.as_ref().map(|(scope_id, _)| scope_id.scope.as_str());
        let after_first = after.as_ref().map(|(_, first)| to_i64(*first));
        let (limit, among) = (to_limit(limit), like_patterns(&filter.among));
        let parameters: [&dyn Parameter; 8] =
            [&series, &scope, &after_series, &after_scope, &after_first, &limit, &among, &words];
        Ok(self.query(sql, &parameters).await?.iter().filter_map(gap).collect())
    }
}

async fn scopes(
    session: &Session,
    series: &SeriesName,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<Vec<ScopeRecord>, Failure> {
    let sql = "SELECT scope, next, version, adopted_to, gapless_from FROM bates.cursor
               WHERE series = $1 AND ($2 OR scope > $3) ORDER BY scope LIMIT $4";
    let (is_first, after) = (after.is_none(), after.map_or("", ScopeKey::as_str));
    let rows = session.query(sql, &[&series.as_str(), &is_first, &after, &to_limit(limit)]).await?;
    let read = |row: &Row| ScopeRecord {
        scope: ScopeKey::from_store(row.get(0)),
        cursor: Cursor { next: get_u64(row, 1), version: get_u64(row, 2) },
        adopted_to: get_u64(row, 3),
        gapless_from: get_u64(row, 4),
        ranges: Vec::new(),
    };
    Ok(rows.iter().map(read).collect())
}

async fn add_ranges(
    session: &Session,
    series: &SeriesName,
    scopes: &mut [ScopeRecord],
    purpose: ReadPurpose,
) -> Result<(), Failure> {
    let (Some(first), Some(last)) = (scopes.first(), scopes.last()) else { return Ok(()) };
    let sql =
        if purpose == ReadPurpose::Reconcile { [RANGES, DOCUMENTS].concat() } else { RANGES.to_owned() };
    let (first, last, ttl) = (first.scope.as_str(), last.scope.as_str(), CLIENT_LEASE_TTL.as_secs_f64());
    let rows =
        session.query(&sql, &[&series.as_str(), &first, &last, &node::CRASHED_AFTER_SECONDS, &ttl]).await?;
    for row in rows {
        let range = sql::range(&row, 1);
        let at = scopes.binary_search_by(|record| record.scope.as_str().cmp(row.get(0)));
        if let (Ok(at), Some(range)) = (at, range) {
            let kind = RangeKind::from_name(row.get(3)).ok_or_else(|| unknown_kind(row.get(3)))?;
            scopes[at].ranges.push(RangeRecord { range, kind });
        }
    }
    Ok(())
}

fn unknown_kind(kind: &str) -> Failure {
    StoreError::Unavailable(format!("unknown kind of positions in the store: {kind:?}").into()).into()
}

async fn put_gaps(
    session: &Session,
    series: &SeriesName,
    scopes: &[(ScopeKey, Vec<MissingRange>)],
) -> Result<(), Failure> {
    let keys: Vec<&str> = scopes.iter().map(|(scope, _)| scope.as_str()).collect();
    let each =
        || scopes.iter().flat_map(|(scope, missing)| missing.iter().map(move |each| (scope.as_str(), each)));
    let (first, last) = sql::bounds(each().map(|(_, missing)| missing.range));
    let (at, reasons): (Vec<&str>, Vec<&str>) =
        each().map(|(scope, missing)| (scope, missing.reason.name())).unzip();
    let series = series.as_str();
    session.begin().await?;
    session.execute(COMPACT, &[&series, &keys]).await?;
    session.execute(CLOSE, &[&series, &keys, &at, &first]).await?;
    session.execute(PUT, &[&series, &at, &first, &last, &reasons]).await?;
    session.commit().await
}

pub(crate) async fn put_reconciled(session: &Session, page: &[(SeriesName, Timestamp)]) -> Result<(), Error> {
    let sql = "UPDATE bates.series SET reconciled_at = 'epoch'::timestamptz + $2 * interval '1 millisecond'
               WHERE name = $1";
    for (series, at) in page {
        // Exact: a count of milliseconds is far below 2^53.
        #[allow(clippy::cast_precision_loss)]
        let millis = at.as_millisecond() as f64;
        session.execute(sql, &[&series.as_str(), &millis]).await?;
    }
    Ok(())
}

fn gap(row: &Row) -> Option<Gap> {
    let missing = MissingRange { range: sql::range(row, 2)?, reason: GapReason::from_name(row.get(4))? };
    let first_seen = Timestamp::from_millisecond(row.get(5)).unwrap_or(Timestamp::MAX);
    Some(Gap { scope_id: sql::scope_id(row, 0)?, missing, first_seen })
}
