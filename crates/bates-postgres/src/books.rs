//! What the shared store knows of positions, scope by scope, and the gaps that were found in it.

use std::collections::BTreeMap;

use bates_core::{
    Account, CLIENT_LEASE_SPAN, Gap, GapFilter, GapStore, Lease, Missing, Place, Reason, ScopeKey,
    SeriesName, StoreError,
};
use jiff::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::PostgresStore;
use crate::batch::sql::{integer, whole};
use crate::error::Failed;
use crate::holding;
use crate::node;
use crate::session::Session;

/// Everything of a scope but its cursor: ranges with what each is.
///
/// A filler counts as crashed after `$4` seconds without a sign of its node, a client after `$5` seconds without one of its
/// lease.
const RANGES: &str = "
    SELECT scope, first, last, 'issued' AS what FROM bates.ledger
        WHERE series = $1 AND scope BETWEEN $2 AND $3
    UNION ALL
    SELECT lease.scope, lease.first, lease.last,
           CASE WHEN lease.crashed_at IS NULL THEN 'held' ELSE 'crash_skip' END
        FROM bates.lease WHERE lease.series = $1 AND lease.scope BETWEEN $2 AND $3
    UNION ALL
    SELECT pooled.scope, pooled.first, pooled.last,
           CASE WHEN pooled.is_pushed OR nodes.seen_at > now() - $4 * interval '1 second'
           THEN 'held' ELSE 'crash_skip' END
        FROM bates.pooled LEFT JOIN bates.nodes ON nodes.id = pooled.node
        WHERE pooled.series = $1 AND pooled.scope BETWEEN $2 AND $3
    UNION ALL
    SELECT scope, first, last,
           CASE WHEN leased_at > now() - $5 * interval '1 second' THEN 'with_client' ELSE 'crash_skip' END
        FROM bates.client_lease WHERE series = $1 AND scope BETWEEN $2 AND $3
    UNION ALL
    SELECT scope, first, last, 'burned' FROM bates.burned WHERE series = $1 AND scope BETWEEN $2 AND $3
    UNION ALL
    SELECT scope, first, last, reason FROM bates.lost WHERE series = $1 AND scope BETWEEN $2 AND $3
    UNION ALL
    SELECT scope, aside_to - 1, aside_to - 1, 'aside' FROM bates.cursor
        WHERE series = $1 AND scope BETWEEN $2 AND $3 AND aside_to > 0
    UNION ALL
    SELECT scope, gapless_from, gapless_from, 'gapless_from' FROM bates.cursor
        WHERE series = $1 AND scope BETWEEN $2 AND $3 AND gapless_from > 0
    UNION ALL
    SELECT scope, position, position,
           CASE WHEN in_doubt AND state IN ('dead', 'abandoned') THEN 'in doubt' ELSE state END FROM bates.document
        WHERE series = $1 AND scope BETWEEN $2 AND $3
        AND state IN ('dead', 'abandoned', 'voided', 'pending', 'reserved')";

/// Ranges of the ledger that touch are one: it grows with the number of gaps, not of batches. Another node may do
/// the same just now, and have come further.
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
    async fn accounts(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Account)>, StoreError> {
        let (series, after) = (&series, after.as_ref());
        self.done(|session| async move { accounts(&session, series, after, limit).await }).await
    }

    async fn put_gaps(
        &self,
        series: SeriesName,
        scopes: Vec<(ScopeKey, Vec<Missing>)>,
    ) -> Result<(), StoreError> {
        let (series, scopes) = (&series, &scopes);
        self.done(|session| async move { put_gaps(&session, series, scopes).await }).await
    }

    async fn gaps(
        &self,
        of: GapFilter,
        after: Option<(Place, u64)>,
        limit: usize,
    ) -> Result<Vec<Gap>, StoreError> {
        let (of, after) = (&of, after.as_ref());
        self.done(|session| async move { gaps(&session, of, after, limit).await }).await
    }
}

async fn accounts(
    session: &Session,
    series: &SeriesName,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<Vec<(ScopeKey, Account)>, Failed> {
    Box::pin(holding::count_crashed(session, series)).await?;
    // One moment for all that is read, or a document numbered meanwhile would look like one that is missing.
    session.begin_snapshot().await?;
    let cursors = crate::read::scopes(session, series, after, limit).await?;
    let mut accounts: BTreeMap<ScopeKey, Account> = cursors
        .into_iter()
        .map(|(scope, cursor)| (scope, Account { next: cursor.next, ..Account::default() }))
        .collect();
    if let (Some((first, _)), Some((last, _))) = (accounts.first_key_value(), accounts.last_key_value()) {
        let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
            (&series.as_str(), Type::TEXT),
            (&first.as_str(), Type::TEXT),
            (&last.as_str(), Type::TEXT),
            (&node::CRASHED_AFTER_SECONDS, Type::FLOAT8),
            (&CLIENT_LEASE_SPAN.as_secs_f64(), Type::FLOAT8),
        ];
        for row in session.query_typed(RANGES, &parameters).await? {
            let Some(account) = accounts.get_mut(&ScopeKey::from_store(row.get(0))) else { continue };
            if let Some(range) = Lease::new(whole(&row, 1), whole(&row, 2) + 1) {
                enter(account, range, row.get(3));
            }
        }
    }
    session.batch_execute("COMMIT").await?;
    Ok(accounts.into_iter().collect())
}

fn enter(account: &mut Account, range: Lease, what: &str) {
    let undelivered = |reason| Missing { range, reason };
    match what {
        "issued" => account.issued.push(range),
        "held" => account.held.push(range),
        "with_client" => account.with_clients.push(range),
        "aside" => account.aside_to = range.to(),
        "gapless_from" => account.gapless_from = range.from(),
        "pending" | "reserved" => account.pending.push(range),
        "dead" => account.undelivered.push(undelivered(Reason::OutboxDlq)),
        "abandoned" => account.undelivered.push(undelivered(Reason::Abandoned)),
        "in doubt" => account.undelivered.push(undelivered(Reason::DeliveryUnknown)),
        "voided" => account.undelivered.push(undelivered(Reason::Voided)),
        other => account.lost.extend(Reason::named(other).map(|reason| Missing { range, reason })),
    }
}

async fn put_gaps(
    session: &Session,
    series: &SeriesName,
    scopes: &[(ScopeKey, Vec<Missing>)],
) -> Result<(), Failed> {
    let keys: Vec<&str> = scopes.iter().map(|(scope, _)| scope.as_str()).collect();
    let (mut at, mut first, mut last, mut reasons) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (scope, missing) in scopes {
        for Missing { range, reason } in missing {
            at.push(scope.as_str());
            first.push(integer(range.from()));
            last.push(integer(range.to() - 1));
            reasons.push(reason.name());
        }
    }
    let series: &(dyn ToSql + Sync) = &series.as_str();
    session.begin().await?;
    session.query_typed(COMPACT, &[(series, Type::TEXT), (&keys, Type::TEXT_ARRAY)]).await?;
    let closed: [(&(dyn ToSql + Sync), Type); 4] = [
        (series, Type::TEXT),
        (&keys, Type::TEXT_ARRAY),
        (&at, Type::TEXT_ARRAY),
        (&first, Type::INT8_ARRAY),
    ];
    session.query_typed(CLOSE, &closed).await?;
    let put: [(&(dyn ToSql + Sync), Type); 5] = [
        (series, Type::TEXT),
        (&at, Type::TEXT_ARRAY),
        (&first, Type::INT8_ARRAY),
        (&last, Type::INT8_ARRAY),
        (&reasons, Type::TEXT_ARRAY),
    ];
    session.query_typed(PUT, &put).await?;
    Ok(session.batch_execute("COMMIT").await?)
}

async fn gaps(
    session: &Session,
    of: &GapFilter,
    after: Option<&(Place, u64)>,
    limit: usize,
) -> Result<Vec<Gap>, Failed> {
    let sql = "SELECT series, scope, first, last, reason, (extract(epoch FROM seen_at) * 1000)::bigint
               FROM bates.gap
               WHERE ($1::text IS NULL OR series = $1) AND ($2::text IS NULL OR scope = $2)
               AND ($3::text IS NULL OR (series, scope, first) > ($3, $4, $5))
               ORDER BY series, scope, first LIMIT $6";
    let (series, scope) =
        (of.series.as_ref().map(SeriesName::as_str), of.scope.as_ref().map(ScopeKey::as_str));
    let behind = after.map(|(place, _)| place.series.as_str());
    let behind_scope = after.map(|(place, _)| place.scope.as_str());
    let behind_first = after.map(|(_, first)| integer(*first));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
        (&series, Type::TEXT),
        (&scope, Type::TEXT),
        (&behind, Type::TEXT),
        (&behind_scope, Type::TEXT),
        (&behind_first, Type::INT8),
        (&limit, Type::INT8),
    ];
    let rows = session.query_typed(sql, &parameters).await?;
    Ok(rows.iter().filter_map(gap).collect())
}

/// Only what is read as it was written is a gap.
fn gap(row: &Row) -> Option<Gap> {
    let place =
        Place { series: row.get::<_, &str>(0).parse().ok()?, scope: ScopeKey::from_store(row.get(1)) };
    let range = Lease::new(whole(row, 2), whole(row, 3) + 1)?;
    let reason = Reason::named(row.get(4))?;
    let seen = Timestamp::from_millisecond(row.get(5)).unwrap_or(Timestamp::MAX);
    Some(Gap { place, missing: Missing { range, reason }, seen })
}
