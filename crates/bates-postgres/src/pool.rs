//! Shared pools in the shared store: their epochs, and what became of the positions that were granted to them. Positions
//! are granted to them with all others, in `batch`.
//!
//! Must never move a cursor. Invariant: whoever writes here has locked the pool first, and a position leaves `pooled`
//! only in the transaction that writes down what became of it.

use bates_core::{
    Lease, Missing, Place, Pool, PoolStore, Ranges, Reason, Renewal, ScopeKey, SeriesName, Server, Settling,
    StoreError,
};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use crate::PostgresStore;
use crate::batch::sql::{self, integer, whole};
use crate::error::Failed;
use crate::moving::check_not_left;
use crate::session::Session;

/// Past all positions that there can be.
const END: u64 = i64::MAX as u64;

impl PoolStore for PostgresStore {
    async fn pool(&self, place: Place) -> Result<Pool, StoreError> {
        let place = &place;
        self.done(|session| async move {
            // Nearly always it is there, and nothing has to be written.
            if let Some(pool) = find(&session, place).await? {
                return Ok(pool);
            }
            session.begin().await?;
            let pool = locked(&session, place).await?;
            check_not_left(&session).await?;
            session.batch_execute("COMMIT").await?;
            Ok(pool)
        })
        .await
    }

    async fn pools(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<(ScopeKey, Pool)>, StoreError> {
        let (series, after) = (&series, after.as_ref());
        self.done(|session| async move { Ok(list(&session, series, after, limit).await?) }).await
    }

    /// A try that was committed and not answered is made again, and that one finds the epoch ended: by itself, but it
    /// answers `None` as if it was by others. That is safe: who does not know that it moved an epoch makes no list for
    /// it, and whoever looks at the pool next ends that epoch, too.
    async fn renew_pool(&self, place: Place, renewal: Renewal) -> Result<Option<Pool>, StoreError> {
        let (place, renewal) = (&place, &renewal);
        self.done(|session| async move {
            session.begin().await?;
            // A store that issues nothing begins no epoch: the pool may be another store's by now.
            self.ask(&session).await?;
            let renewed = renew(&session, place, renewal).await?;
            check_not_left(&session).await?;
            session.batch_execute("COMMIT").await?;
            Ok(renewed)
        })
        .await
    }

    async fn settle_pool(&self, place: Place, settling: Settling) -> Result<(), StoreError> {
        let (place, settling) = (&place, &settling);
        self.done(|session| async move {
            session.begin().await?;
            settle(&session, place, settling).await?;
            check_not_left(&session).await?;
            Ok(session.batch_execute("COMMIT").await?)
        })
        .await
    }
}

/// The server of a pool is not known any more: what is in the list must be given up.
pub(crate) async fn forget_server(session: &Session, place: &Place) -> Result<(), Error> {
    let sql =
        "UPDATE bates.pool SET server_run = NULL, server_replication = NULL WHERE series = $1 AND scope = $2";
    session.query_typed(sql, &At::of(place).parameters()).await.map(drop)
}

/// A place, as parameters of a statement.
struct At<'p> {
    series: &'p str,
    scope: &'p str,
}

impl<'p> At<'p> {
    fn of(place: &'p Place) -> Self {
        Self { series: place.series.as_str(), scope: place.scope.as_str() }
    }

    fn parameters(&self) -> [(&(dyn ToSql + Sync), Type); 2] {
        [(&self.series, Type::TEXT), (&self.scope, Type::TEXT)]
    }
}

fn read(row: &Row) -> Pool {
    let (run, replication) = (row.get::<_, Option<&str>>(1), row.get::<_, Option<&str>>(2));
    let server = run
        .zip(replication)
        .map(|(run, replication)| Server { run: run.into(), replication: replication.into() });
    Pool { epoch: whole(row, 0), server }
}

async fn find(session: &Session, place: &Place) -> Result<Option<Pool>, Error> {
    let sql = "SELECT epoch, server_run, server_replication FROM bates.pool WHERE series = $1 AND scope = $2";
    let rows = session.query_typed(sql, &At::of(place).parameters()).await?;
    Ok(rows.first().map(read))
}

async fn list(
    session: &Session,
    series: &SeriesName,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<Vec<(ScopeKey, Pool)>, Error> {
    let sql = "SELECT epoch, server_run, server_replication, scope FROM bates.pool
               WHERE series = $1 AND ($2 OR scope > $3) ORDER BY scope LIMIT $4";
    let (series, is_first, after) = (series.as_str(), after.is_none(), after.map_or("", ScopeKey::as_str));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let parameters: [(&(dyn ToSql + Sync), Type); 4] =
        [(&series, Type::TEXT), (&is_first, Type::BOOL), (&after, Type::TEXT), (&limit, Type::INT8)];
    let rows = session.query_typed(sql, &parameters).await?;
    Ok(rows.iter().map(|row| (ScopeKey::from_store(row.get(3)), read(row))).collect())
}

/// The pool, locked; it is there afterwards if it was not before.
async fn locked(session: &Session, place: &Place) -> Result<Pool, Failed> {
    let make = "INSERT INTO bates.pool (series, scope) SELECT name, $2 FROM bates.series WHERE name = $1
                ON CONFLICT DO NOTHING";
    let lock = "SELECT epoch, server_run, server_replication FROM bates.pool WHERE series = $1 AND scope = $2
                FOR UPDATE";
    session.query_typed(make, &At::of(place).parameters()).await?;
    let rows = session.query_typed(lock, &At::of(place).parameters()).await?;
    let unknown = || StoreError::UnknownSeries(place.series.as_str().into());
    Ok(rows.first().map(read).ok_or_else(unknown)?)
}

/// Invariant: of all who saw an epoch, one ends it.
async fn renew(session: &Session, place: &Place, renewal: &Renewal) -> Result<Option<Pool>, Failed> {
    let Renewal { seen, above, server } = renewal;
    if locked(session, place).await?.epoch != *seen {
        return Ok(None);
    }
    let sql = "UPDATE bates.pool SET epoch = $3, server_run = $4, server_replication = $5
               WHERE series = $1 AND scope = $2";
    let epoch = (*seen).max(*above) + 1;
    let at = At::of(place);
    let [series, scope] = at.parameters();
    let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
        series,
        scope,
        (&integer(epoch), Type::INT8),
        (&server.run, Type::TEXT),
        (&server.replication, Type::TEXT),
    ];
    session.query_typed(sql, &parameters).await?;
    let pushed = take(session, place, true, (0, END)).await?;
    lose(session, place, &pushed, Reason::PoolInvalidated).await?;
    Ok(Some(Pool { epoch, server: Some(server.clone()) }))
}

async fn settle(session: &Session, place: &Place, settling: &Settling) -> Result<(), Failed> {
    let is_current = locked(session, place).await?.epoch == settling.epoch;
    if let Some(range) = settling.pushed {
        let of = (range.from(), range.to());
        if is_current {
            let pushed = take_rows(session, place, false, of).await?;
            put(session, place, true, &pushed).await?;
        } else {
            let pushed = take(session, place, false, of).await?;
            lose(session, place, &pushed, Reason::PoolInvalidated).await?;
        }
    }
    if let Some(range) = settling.unused {
        let unused = take(session, place, false, (range.from(), range.to())).await?;
        lose(session, place, &unused, Reason::FillFenced).await?;
    }
    if let (true, Some(to)) = (is_current, settling.popped_to) {
        // They are in no table from now on: they were handed out.
        take(session, place, true, (0, to)).await?;
    }
    Ok(())
}

/// A row of `pooled`, or a part of one, and whose it was.
struct Part {
    range: Lease,
    node: Uuid,
    batch: Uuid,
}

/// Takes positions of a range out of the pool, those that were pushed or those that were not.
async fn take(session: &Session, place: &Place, is_pushed: bool, range: (u64, u64)) -> Result<Ranges, Error> {
    let taken = take_rows(session, place, is_pushed, range).await?;
    Ok(Ranges::of(taken.iter().map(|part| part.range)))
}

/// The same, part by part. Parts of rows that lie outside stay.
async fn take_rows(
    session: &Session,
    place: &Place,
    is_pushed: bool,
    (from, to): (u64, u64),
) -> Result<Vec<Part>, Error> {
    let sql = "DELETE FROM bates.pooled
               WHERE series = $1 AND scope = $2 AND is_pushed = $3 AND first < $4 AND last >= $5
               RETURNING first, last, node, batch";
    let (from, to) = (from.min(END), to.min(END));
    let at = At::of(place);
    let [series, scope] = at.parameters();
    let parameters: [(&(dyn ToSql + Sync), Type); 5] =
        [series, scope, (&is_pushed, Type::BOOL), (&integer(to), Type::INT8), (&integer(from), Type::INT8)];
    let (mut within, mut outside) = (Vec::new(), Vec::new());
    for row in session.query_typed(sql, &parameters).await? {
        let (first, end, node, batch) = (whole(&row, 0), whole(&row, 1) + 1, row.get(2), row.get(3));
        let part = |range| Part { range, node, batch };
        within.extend(Lease::new(first.max(from), end.min(to)).map(part));
        outside.extend(Lease::new(first, from).map(part));
        outside.extend(Lease::new(to, end).map(part));
    }
    put(session, place, is_pushed, &outside).await?;
    Ok(within)
}

async fn put(session: &Session, place: &Place, is_pushed: bool, parts: &[Part]) -> Result<(), Error> {
    if parts.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO bates.pooled (series, scope, is_pushed, first, last, node, batch)
               SELECT $1, $2, $3, * FROM UNNEST($4, $5, $6, $7)";
    let first: Vec<i64> = parts.iter().map(|part| integer(part.range.from())).collect();
    let last: Vec<i64> = parts.iter().map(|part| integer(part.range.to() - 1)).collect();
    let (nodes, batches): (Vec<Uuid>, Vec<Uuid>) = parts.iter().map(|part| (part.node, part.batch)).unzip();
    let at = At::of(place);
    let [series, scope] = at.parameters();
    let parameters: [(&(dyn ToSql + Sync), Type); 7] = [
        series,
        scope,
        (&is_pushed, Type::BOOL),
        (&first, Type::INT8_ARRAY),
        (&last, Type::INT8_ARRAY),
        (&nodes, Type::UUID_ARRAY),
        (&batches, Type::UUID_ARRAY),
    ];
    session.query_typed(sql, &parameters).await.map(drop)
}

async fn lose(session: &Session, place: &Place, ranges: &Ranges, reason: Reason) -> Result<(), Error> {
    let lost: Vec<(&Place, Missing)> =
        Missing::all(ranges.iter(), reason).map(|missing| (place, missing)).collect();
    sql::write_lost(session, &lost).await
}
