//! What is written besides grants: seldom, one at a time, and each may be done twice without harm, so that whatever
//! fails is simply tried again.

use bates_core::{
    Cursor, Definition, Lease, Pinned, Place, Promise, Reason, Redescription, SeriesName, StoreError,
};
use tokio_postgres::types::{ToSql, Type};

use crate::batch::sql::{self, integer, whole};
use crate::error::Failed;
use crate::moving::lock_unmarked;
use crate::pool;
use crate::read;
use crate::session::Session;

pub(crate) async fn pin(
    session: &Session,
    asked: &Definition,
    fresh_key: Option<&[u8]>,
) -> Result<Pinned, Failed> {
    // Nearly always it is there, and nothing has to be written.
    match read::pinned(session, &asked.series).await? {
        Some(pinned) if pinned.0.promise.is_some() || asked.promise.is_none() => {
            return compared(asked, pinned, false);
        }
        Some(_) => pin_first_promise(session, asked).await?,
        None => {}
    }
    session.begin().await?;
    lock_unmarked(session).await?;
    let is_new = insert(session, asked, fresh_key).await?;
    session.batch_execute("COMMIT").await?;
    let Some(pinned) = read::pinned(session, &asked.series).await? else {
        return Err(Failed::Passing("a series that was written is not there".into()));
    };
    compared(asked, pinned, is_new)
}

fn compared(
    asked: &Definition,
    (pinned, permutation_key): (Definition, Option<Vec<u8>>),
    is_new: bool,
) -> Result<Pinned, Failed> {
    match StoreError::of_difference(&pinned, asked) {
        None => Ok(Pinned { permutation_key, is_new }),
        Some(refused) => Err(Failed::Lasting(refused)),
    }
}

/// Of a store from before promises were pinned, the first node pins it.
async fn pin_first_promise(session: &Session, asked: &Definition) -> Result<(), Failed> {
    let sql = "UPDATE bates.series SET promise = $2 WHERE name = $1 AND promise IS NULL";
    let promise = asked.promise.map(Promise::name);
    session.begin().await?;
    lock_unmarked(session).await?;
    session.query_typed(sql, &[(&asked.series.as_str(), Type::TEXT), (&promise, Type::TEXT)]).await?;
    Ok(session.batch_execute("COMMIT").await?)
}

/// Changes the promise of a series if it is `from`, once no batch is under way that has not seen it.
pub(crate) async fn change_promise(
    session: &Session,
    series: &SeriesName,
    (from, to): (Promise, Promise),
    described: Option<&Redescription>,
) -> Result<bool, Failed> {
    let change = "WITH seen AS (UPDATE bates.store SET revision = revision + 1)
                  UPDATE bates.series SET promise = $3 WHERE name = $1 AND coalesce(promise, $2) IN ($2, $3)
                  RETURNING true";
    let gapless_from = if to == Promise::Gapless { "next" } else { "0" };
    let begin = format!("UPDATE bates.cursor SET gapless_from = {gapless_from} WHERE series = $1");
    let name: (&(dyn ToSql + Sync), Type) = (&series.as_str(), Type::TEXT);
    session.begin().await?;
    session.batch_execute("LOCK TABLE bates.last_commit IN EXCLUSIVE MODE").await?;
    lock_unmarked(session).await?;
    let before = session
        .query_typed("SELECT promise FROM bates.series WHERE name = $1", std::slice::from_ref(&name))
        .await?;
    let is_done = before.first().is_some_and(|row| row.get::<_, Option<&str>>(0) == Some(to.name()));
    let promises =
        [name.clone(), (&from.name() as &(dyn ToSql + Sync), Type::TEXT), (&to.name(), Type::TEXT)];
    let is_changed = !is_done && !session.query_typed(change, &promises).await?.is_empty();
    if is_changed {
        session.query_typed(&begin, &[name]).await?;
    }
    let is_described = match described {
        Some(Redescription { before, after }) => describe(session, series, Some(before), Some(after)).await?,
        None => true,
    };
    let is_so = is_described && (is_done || is_changed);
    session.batch_execute(if is_so { "COMMIT" } else { "ROLLBACK" }).await?;
    Ok(is_so)
}

/// Whether it was not there: of nodes that pin a series together, one is the first.
pub(crate) async fn insert(
    session: &Session,
    asked: &Definition,
    fresh_key: Option<&[u8]>,
) -> Result<bool, Failed> {
    let sql = "INSERT INTO bates.series
                   (name, template, parameters, shuffled, start, reset, time_zone, construction, permutation_key, promise)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (name) DO NOTHING RETURNING true";
    let (start, construction) = (integer(asked.start), i32::from(asked.construction));
    let promise = asked.promise.map(Promise::name);
    let parameters: [(&(dyn ToSql + Sync), Type); 10] = [
        (&asked.series.as_str(), Type::TEXT),
        (&asked.template, Type::TEXT),
        (&asked.parameters, Type::TEXT),
        (&asked.shuffled, Type::BOOL),
        (&start, Type::INT8),
        (&asked.reset, Type::TEXT),
        (&asked.time_zone, Type::TEXT),
        (&construction, Type::INT4),
        (&fresh_key, Type::BYTEA),
        (&promise, Type::TEXT),
    ];
    let rows = session.query_typed(sql, &parameters).await?;
    Ok(!rows.is_empty())
}

/// The version rises by more than there ever were grants: who was granted a lease in a history that a restore took
/// back must not mistake the cursor for the one it knew.
pub(crate) async fn raise_floor(session: &Session, place: &Place, floor: u64) -> Result<Cursor, Failed> {
    let sql = "INSERT INTO bates.cursor AS found (series, scope, next, version) VALUES ($1, $2, $3, 1)
               ON CONFLICT (series, scope) DO UPDATE SET
                   next = greatest(found.next, excluded.next),
                   version = found.version + CASE WHEN found.next < excluded.next THEN 4294967296 ELSE 0 END
               RETURNING next, version, (xmax = 0)";
    session.begin().await?;
    lock_unmarked(session).await?;
    let series = place.series.as_str();
    if sql::lock_series(session, &[series]).await?.is_empty() {
        return Err(Failed::Lasting(StoreError::UnknownSeries(series.into())));
    }
    let before = sql::lock_cursors(session, &[place]).await?;
    let next = match before.first() {
        Some(locked) => locked.cursor.next,
        None => start(session, series).await?,
    };
    if let Some(passed) = Lease::new(next, floor) {
        sql::write_lost(session, &[(place, passed)], Reason::FloorRaised).await?;
    }
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&series, Type::TEXT), (&place.scope.as_str(), Type::TEXT), (&integer(floor), Type::INT8)];
    let rows = session.query_typed(sql, &parameters).await?;
    let Some(row) = rows.first() else { return Err(Failed::Passing("a floor was not written".into())) };
    pool::forget_server(session, place).await?;
    if row.get(2) {
        sql::count_scopes(session, &[(series, 1)]).await?;
    }
    session.batch_execute("COMMIT").await?;
    Ok(Cursor { next: whole(row, 0), version: whole(row, 1) })
}

/// Sets positions aside, and answers how many of them were granted before. The version rises as with a floor.
pub(crate) async fn set_aside(session: &Session, place: &Place, positions: &[u64]) -> Result<u64, Failed> {
    let series = place.series.as_str();
    session.begin().await?;
    lock_unmarked(session).await?;
    if sql::lock_series(session, &[series]).await?.is_empty() {
        return Err(Failed::Lasting(StoreError::UnknownSeries(series.into())));
    }
    let before = sql::lock_cursors(session, &[place]).await?;
    let next = match before.first() {
        Some(locked) => locked.cursor.next,
        None => start(session, series).await?,
    };
    let past = positions.iter().max().map_or(0, |last| last + 1);
    let raise = "INSERT INTO bates.cursor AS found (series, scope, next, version, aside_to) VALUES ($1, $2, $3, 1, $4)
                 ON CONFLICT (series, scope) DO UPDATE SET version = found.version + 4294967296,
                     aside_to = greatest(found.aside_to, excluded.aside_to)";
    let insert = "INSERT INTO bates.aside (series, scope, position) SELECT $1, $2, * FROM UNNEST($3)
                  ON CONFLICT DO NOTHING";
    let at: [(&(dyn ToSql + Sync), Type); 2] = [(&series, Type::TEXT), (&place.scope.as_str(), Type::TEXT)];
    let [name, scope] = at;
    let raised = [name.clone(), scope.clone(), (&integer(next), Type::INT8), (&integer(past), Type::INT8)];
    session.query_typed(raise, &raised).await?;
    let all: Vec<i64> = positions.iter().map(|position| integer(*position)).collect();
    session.query_typed(insert, &[name, scope, (&all, Type::INT8_ARRAY)]).await?;
    pool::forget_server(session, place).await?;
    sql::count_scopes(session, &[(series, u64::from(before.is_empty()))]).await?;
    session.batch_execute("COMMIT").await?;
    Ok(positions.iter().filter(|position| **position < next).count() as u64)
}

/// Where the scopes of a series begin.
async fn start(session: &Session, series: &str) -> Result<u64, Failed> {
    let sql = "SELECT start FROM bates.series WHERE name = $1";
    let rows = session.query_typed(sql, &[(&series, Type::TEXT)]).await?;
    let row = rows.first().ok_or_else(|| Failed::Lasting(StoreError::UnknownSeries(series.into())))?;
    Ok(whole(row, 0))
}

/// Describes a series if it has the description `before`, or this one already; answers whether it is described so now.
pub(crate) async fn describe(
    session: &Session,
    series: &SeriesName,
    before: Option<&str>,
    description: Option<&str>,
) -> Result<bool, Failed> {
    lock_unmarked(session).await?;
    let sql = "SELECT description FROM bates.series WHERE name = $1 FOR NO KEY UPDATE";
    let rows = session.query_typed(sql, &[(&series.as_str(), Type::TEXT)]).await?;
    let found = rows.first().ok_or_else(|| StoreError::UnknownSeries(series.as_str().into()))?;
    let found: Option<&str> = found.get(0);
    if found != before && found != description {
        return Ok(false);
    }
    put_description(session, series, description).await?;
    Ok(true)
}

pub(crate) async fn put_description(
    session: &Session,
    series: &SeriesName,
    description: Option<&str>,
) -> Result<(), Failed> {
    let sql = "WITH seen AS (UPDATE bates.store SET revision = revision + 1)
               UPDATE bates.series SET description = $2 WHERE name = $1 RETURNING true";
    let parameters: [(&(dyn ToSql + Sync), Type); 2] =
        [(&series.as_str(), Type::TEXT), (&description, Type::TEXT)];
    let rows = session.query_typed(sql, &parameters).await?;
    if rows.is_empty() { Err(StoreError::UnknownSeries(series.as_str().into()).into()) } else { Ok(()) }
}
