//! Shared pools in the embedded store: their epochs, and what became of the positions that were granted to them.
//!
//! Must never move a cursor. Invariant: a position leaves `pooled` only in the transaction that writes down what
//! became of it.

use bates_core::{
    Lease, Place, Pool, PoolStore, Ranges, Reason, Renewal, ScopeKey, SeriesName, Server, Settling,
    StoreError,
};
use rusqlite::{Connection, OptionalExtension, Result, Row, Transaction, params};

use crate::SqliteStore;
use crate::held::{self, Held};
use crate::write::{self, Refusable, ScopeRef, integer, whole};

/// Past all positions that there can be.
const END: u64 = i64::MAX as u64;

/// Where positions are that were granted to a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// With the process that asked for them.
    Granted,
    /// In the list.
    Pushed,
    /// Handed out.
    Popped,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Pushed => "pushed",
            Self::Popped => "popped",
        }
    }
}

impl PoolStore for SqliteStore {
    async fn pool(&self, place: Place) -> std::result::Result<Pool, StoreError> {
        // Nearly always it is there, and nothing has to be written.
        if let Some(pool) = self.read(|connection| find(connection, &place))? {
            return Ok(pool);
        }
        self.write(move |transaction| make(transaction, &place)).await
    }

    async fn pools(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> std::result::Result<Vec<(ScopeKey, Pool)>, StoreError> {
        self.read(|connection| list(connection, &series, after.as_ref(), limit))
    }

    async fn renew_pool(
        &self,
        place: Place,
        renewal: Renewal,
    ) -> std::result::Result<Option<Pool>, StoreError> {
        self.write(move |transaction| renew(transaction, &place, &renewal)).await
    }

    async fn settle_pool(&self, place: Place, settling: Settling) -> std::result::Result<(), StoreError> {
        let run = self.run;
        self.write(move |transaction| settle(transaction, &place, &settling, run)).await
    }
}

/// Writes positions down that were granted to a pool, or became of those.
pub(crate) fn put(
    transaction: &Transaction<'_>,
    at: ScopeRef<'_>,
    range: Lease,
    (state, run): (State, i64),
) -> Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO pooled (series_id, scope, first, last, state, run) VALUES (?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            at.series_id,
            at.scope,
            integer(range.from()),
            integer(range.to() - 1),
            state.name(),
            run
        ])?;
    Ok(())
}

/// Writes positions down that were handed out while the process holds others below them, from `held_from` on. They join
/// those before them, and those that nothing is held below any more go: there are no more rows than leases.
pub(crate) fn put_popped(
    transaction: &Transaction<'_>,
    at: ScopeRef<'_>,
    range: Lease,
    held: Held,
) -> Result<()> {
    transaction
        .prepare_cached(
            "DELETE FROM pooled WHERE series_id = ? AND scope = ? AND state = 'popped' AND last < ?",
        )?
        .execute(params![at.series_id, at.scope, integer(held.from)])?;
    let longer = transaction
        .prepare_cached(
            "UPDATE pooled SET last = ? WHERE series_id = ? AND scope = ? AND state = 'popped' AND last = ?",
        )?
        .execute(params![integer(range.to() - 1), at.series_id, at.scope, integer(range.from()) - 1])?;
    if longer == 0 { put(transaction, at, range, (State::Popped, held.run)) } else { Ok(()) }
}

/// The server of a pool is not known any more: what is in the list must be given up.
pub(crate) fn forget_server(transaction: &Transaction<'_>, at: ScopeRef<'_>) -> Result<()> {
    transaction
        .prepare_cached(
            "UPDATE pool SET server_run = NULL, server_replication = NULL WHERE series_id = ? AND scope = ?",
        )?
        .execute(params![at.series_id, at.scope])?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<Pool> {
    let (run, replication) = (row.get::<_, Option<String>>(1)?, row.get::<_, Option<String>>(2)?);
    let server = run
        .zip(replication)
        .map(|(run, replication)| Server { run: run.into(), replication: replication.into() });
    Ok(Pool { epoch: whole(row.get(0)?), server })
}

fn find(connection: &Connection, place: &Place) -> Result<Option<Pool>> {
    let mut statement = connection.prepare_cached(
        "SELECT epoch, server_run, server_replication FROM pool
         WHERE series_id = (SELECT id FROM series WHERE name = ?) AND scope = ?",
    )?;
    statement.query_row(params![place.series.as_str(), place.scope.as_str()], read).optional()
}

fn list(
    connection: &Connection,
    series: &SeriesName,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<Vec<(ScopeKey, Pool)>> {
    let mut statement = connection.prepare_cached(
        "SELECT epoch, server_run, server_replication, scope FROM pool
         WHERE series_id = (SELECT id FROM series WHERE name = ?) AND (? OR scope > ?) ORDER BY scope LIMIT ?",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let of = params![series.as_str(), after.is_none(), after.map_or("", ScopeKey::as_str), limit];
    let rows =
        statement.query_map(of, |row| Ok((ScopeKey::from_store(row.get_ref(3)?.as_str()?), read(row)?)))?;
    rows.collect()
}

/// The pool, which is there afterwards if it was not before.
fn make(transaction: &Transaction<'_>, place: &Place) -> Refusable<Pool, StoreError> {
    transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO pool (series_id, scope) SELECT id, ? FROM series WHERE name = ?",
        )?
        .execute(params![place.scope.as_str(), place.series.as_str()])?;
    Ok(find(transaction, place)?.ok_or_else(|| write::unknown(place)))
}

/// Invariant: of all who saw an epoch, one ends it.
fn renew(
    transaction: &Transaction<'_>,
    place: &Place,
    renewal: &Renewal,
) -> Refusable<Option<Pool>, StoreError> {
    let pool = match make(transaction, place)? {
        Ok(pool) => pool,
        Err(error) => return Ok(Err(error)),
    };
    let Some((series_id, _)) = write::series(transaction, &place.series)? else {
        return Ok(Err(write::unknown(place)));
    };
    if pool.epoch != renewal.seen {
        return Ok(Ok(None));
    }
    let at = ScopeRef::new(series_id, place.scope.as_str());
    let Renewal { seen, above, server } = renewal;
    let renewed = Pool { epoch: (*seen).max(*above) + 1, server: Some(server.clone()) };
    transaction
        .prepare_cached(
            "UPDATE pool SET epoch = ?, server_run = ?, server_replication = ? WHERE series_id = ? AND scope = ?",
        )?
        .execute(params![integer(renewed.epoch), server.run, server.replication, at.series_id, at.scope])?;
    let pushed = take(transaction, at, State::Pushed, (0, END))?;
    lose(transaction, at, &pushed, Reason::PoolInvalidated)?;
    Ok(Ok(Some(renewed)))
}

fn settle(
    transaction: &Transaction<'_>,
    place: &Place,
    settling: &Settling,
    run: i64,
) -> Refusable<(), StoreError> {
    let Some((series_id, _)) = write::series(transaction, &place.series)? else {
        return Ok(Err(write::unknown(place)));
    };
    let at = ScopeRef::new(series_id, place.scope.as_str());
    let is_current = find(transaction, place)?.unwrap_or_default().epoch == settling.epoch;
    if let Some(range) = settling.pushed {
        let pushed = take(transaction, at, State::Granted, (range.from(), range.to()))?;
        if is_current {
            pushed.iter().try_for_each(|range| put(transaction, at, range, (State::Pushed, run)))?;
        } else {
            lose(transaction, at, &pushed, Reason::PoolInvalidated)?;
        }
    }
    if let Some(range) = settling.unused {
        let unused = take(transaction, at, State::Granted, (range.from(), range.to()))?;
        lose(transaction, at, &unused, Reason::FillFenced)?;
    }
    if let (true, Some(to)) = (is_current, settling.popped_to) {
        pop(transaction, at, to, run)?;
    }
    Ok(Ok(()))
}

/// What the pool held below a position was handed out. Once nothing is held below it in memory, nobody has to know.
fn pop(transaction: &Transaction<'_>, at: ScopeRef<'_>, to: u64, run: i64) -> Result<()> {
    let popped = take(transaction, at, State::Pushed, (0, to))?;
    if popped.is_empty() {
        return Ok(());
    }
    let popped = popped.and(&take(transaction, at, State::Popped, (0, END))?);
    let held_from: Option<i64> = transaction
        .prepare_cached("SELECT held_from FROM cursor WHERE series_id = ? AND scope = ?")?
        .query_row(params![at.series_id, at.scope], |row| row.get(0))
        .optional()?
        .flatten();
    let is_needed = |range: &Lease| held_from.is_some_and(|from| range.to() > whole(from));
    popped.iter().filter(is_needed).try_for_each(|range| put(transaction, at, range, (State::Popped, run)))
}

/// Takes positions of a range out of the pool that are in this state; parts of rows that lie outside stay.
fn take(
    transaction: &Transaction<'_>,
    at: ScopeRef<'_>,
    state: State,
    (from, to): (u64, u64),
) -> Result<Ranges> {
    let to = to.min(END);
    let mut statement = transaction.prepare_cached(
        "DELETE FROM pooled WHERE series_id = ? AND scope = ? AND state = ? AND first < ? AND last >= ?
         RETURNING first, last, run",
    )?;
    let of = params![at.series_id, at.scope, state.name(), integer(to), integer(from.min(END))];
    let rows = statement
        .query_map(of, |row| Ok((whole(row.get(0)?), whole(row.get(1)?) + 1, row.get::<_, i64>(2)?)))?;
    let rows: Vec<(u64, u64, i64)> = rows.collect::<Result<_>>()?;
    for (first, end, run) in &rows {
        for rest in [Lease::new(*first, from), Lease::new(to, *end)].into_iter().flatten() {
            put(transaction, at, rest, (state, *run))?;
        }
    }
    Ok(Ranges::of(rows.iter().filter_map(|(first, end, _)| Lease::new(from.max(*first), to.min(*end)))))
}

fn lose(transaction: &Transaction<'_>, at: ScopeRef<'_>, ranges: &Ranges, reason: Reason) -> Result<()> {
    ranges.iter().try_for_each(|range| held::lose(transaction, at, range, reason))
}
