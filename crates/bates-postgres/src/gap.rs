//! What the shared store knows of positions, scope by scope, and the gaps that were found in it.

use bates_core::{
    CLIENT_LEASE_TTL, Cursor, Gap, GapFilter, GapReason, GapStore, MissingRange, RangeKind, RangeRecord,
    ReadPurpose, ScopeId, ScopeKey, ScopeRecord, SeriesName, StoreError, StoreResult,
};
use jiff::Timestamp;
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::batch::sql::{self, integer, whole};
use crate::error::Failed;
use crate::outbox::bounded;
use crate::parameter::Parameter;
use crate::session::Session;
use crate::{holding, node};

/// All ranges of scopes, each with its kind. Ranges of the ledger that touch are one, which keeps the answer small.
/// A filler counts as crashed after its node was silent for `$4` seconds, a client after `$5` seconds.
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

/// Joins ranges of the ledger that touch: it grows with the number of gaps, not of batches. Another node may do the same.
const COMPACT: &str = "
    WITH steps AS (
        SELECT scope, first, last,
               CASE WHEN first = lag(last) OVER (PARTITION BY scope ORDER BY first) + 1 THEN 0 ELSE 1 END AS step
        FROM bates.ledger WHERE series = $1 AND scope = ANY ($2)
    ), runs AS (
        SELECT scope, first, last, sum(step) OVER (PARTITION BY scope ORDER BY first) AS run FROM steps
    ), merged AS (
        SELECT scope, min(first) AS first, max(last) AS last FROM runs GROUP BY scope, run HAVING count(*) > 1
    ), gone AS (
        DELETE FROM bates.ledger USING merged WHERE ledger.series = $1 AND ledger.scope = merged.scope
            AND ledger.first > merged.first AND ledger.last <= merged.last
    )
    UPDATE bates.ledger SET last = greatest(ledger.last, merged.last) FROM merged
        WHERE ledger.series = $1 AND ledger.scope = merged.scope AND ledger.first = merged.first";

/// A gap that was there before keeps the time when it was seen.
const PUT: &str = "
    INSERT INTO bates.gap AS gap (series, scope, first, last, reason)
    SELECT $1, scope, first, last, reason FROM UNNEST($2, $3, $4, $5) AS found (scope, first, last, reason)
    ON CONFLICT (series, scope, first) DO UPDATE SET last = excluded.last, reason = excluded.reason,
        seen_at = CASE WHEN gap.reason = excluded.reason THEN gap.seen_at ELSE now() END";

const CLOSE: &str = "
    DELETE FROM bates.gap WHERE series = $1 AND scope = ANY ($2) AND NOT EXISTS (
        SELECT FROM UNNEST($3, $4) AS found (scope, first)
        WHERE found.scope = gap.scope AND found.first = gap.first)";

impl GapStore for PostgresStore {
    async fn scope_records(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
        purpose: ReadPurpose,
    ) -> StoreResult<Vec<ScopeRecord>> {
        let (series, after) = (&series, after.as_ref());
        self.done(|session| async move {
            if purpose == ReadPurpose::Reconcile {
                Box::pin(holding::count_crashed(&session, series)).await?;
            }
            // One snapshot: otherwise a document numbered meanwhile would look like a missing one.
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
        self.done(|session| async move { put_gaps(&session, series, scopes).await }).await
    }

    async fn gaps(
        &self,
        of: GapFilter,
        after: Option<(ScopeId, u64)>,
        limit: usize,
    ) -> StoreResult<Vec<Gap>> {
        let sql = "SELECT series, scope, first, last, reason, (extract(epoch FROM seen_at) * 1000)::bigint
                   FROM bates.gap
                   WHERE ($1::text IS NULL OR series = $1) AND ($2::text IS NULL OR scope = $2)
                   AND ($3::text IS NULL OR (series, scope, first) > ($3, $4, $5))
                   ORDER BY series, scope, first LIMIT $6";
        let (series, scope) =
            (of.series.as_ref().map(SeriesName::as_str), of.scope.as_ref().map(ScopeKey::as_str));
        let behind = after.as_ref().map(|(scope_id, _)| scope_id.series.as_str());
        let behind_scope = after.as_ref().map(|(scope_id, _)| scope_id.scope.as_str());
        let behind_first = after.as_ref().map(|(_, first)| integer(*first));
        let of = [&series as &dyn Parameter, &scope, &behind, &behind_scope, &behind_first, &bounded(limit)];
        self.done(
            |session| async move { Ok(session.query(sql, &of).await?.iter().filter_map(gap).collect()) },
        )
        .await
    }
}

async fn scopes(
    session: &Session,
    series: &SeriesName,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<Vec<ScopeRecord>, Failed> {
    let sql = "SELECT scope, next, version, adopted_to, gapless_from FROM bates.cursor
               WHERE series = $1 AND ($2 OR scope > $3) ORDER BY scope LIMIT $4";
    let (is_first, after) = (after.is_none(), after.map_or("", ScopeKey::as_str));
    let rows = session.query(sql, &[&series.as_str(), &is_first, &after, &bounded(limit)]).await?;
    let read = |row: &Row| ScopeRecord {
        scope: ScopeKey::from_store(row.get(0)),
        cursor: Cursor { next: whole(row, 1), version: whole(row, 2) },
        adopted_to: whole(row, 3),
        gapless_from: whole(row, 4),
        ranges: Vec::new(),
    };
    Ok(rows.iter().map(read).collect())
}

async fn add_ranges(
    session: &Session,
    series: &SeriesName,
    scopes: &mut [ScopeRecord],
    purpose: ReadPurpose,
) -> Result<(), Failed> {
    let (Some(first), Some(last)) = (scopes.first(), scopes.last()) else { return Ok(()) };
    let sql =
        if purpose == ReadPurpose::Reconcile { [RANGES, DOCUMENTS].concat() } else { RANGES.to_owned() };
    let (first, last, silent) = (first.scope.as_str(), last.scope.as_str(), CLIENT_LEASE_TTL.as_secs_f64());
    let rows = session
        .query(&sql, &[&series.as_str(), &first, &last, &node::CRASHED_AFTER_SECONDS, &silent])
        .await?;
    for row in rows {
        let range = sql::range(&row, 1);
        let at = scopes.binary_search_by(|known| known.scope.as_str().cmp(row.get(0)));
        if let (Ok(at), Some(range)) = (at, range) {
            let kind = RangeKind::from_name(row.get(3)).ok_or_else(|| strange(row.get(3)))?;
            scopes[at].ranges.push(RangeRecord { range, kind });
        }
    }
    Ok(())
}

fn strange(kind: &str) -> Failed {
    StoreError::Unavailable(format!("the store has positions of an unknown kind, {kind:?}").into()).into()
}

async fn put_gaps(
    session: &Session,
    series: &SeriesName,
    scopes: &[(ScopeKey, Vec<MissingRange>)],
) -> Result<(), Failed> {
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

fn gap(row: &Row) -> Option<Gap> {
    let missing = MissingRange { range: sql::range(row, 2)?, reason: GapReason::from_name(row.get(4))? };
    let seen = Timestamp::from_millisecond(row.get(5)).unwrap_or(Timestamp::MAX);
    Some(Gap { scope_id: sql::scope_id(row, 0)?, missing, first_seen: seen })
}
