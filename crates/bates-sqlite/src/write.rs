//! What is written, each within a transaction of the writer's. Pure SQL: nothing here commits or answers.

use bates_core::{
    Cursor, Grant, GrantError, Lease, Place, Purpose, Reason, SeriesName, StoreError, Surrendered, Tail, Want,
};
use rusqlite::{OptionalExtension, Result, Transaction, params};

use crate::aside;
use crate::held::{self, Held};
use crate::planted::{Bug, is_planted};
use crate::pool;

/// An answer that is part of the numbering, inside an outcome that is part of the database.
pub(crate) type Refusable<T, E> = Result<std::result::Result<T, E>>;

pub(crate) fn grant(transaction: &Transaction<'_>, want: &Want, run: i64) -> Refusable<Grant, GrantError> {
    let found = found(transaction, &want.place)?;
    let is_new = found.is_none();
    // Only a new scope asks for its series: nearly every grant is of one that is there.
    let standing = match found {
        Some(found) => found,
        None => match series(transaction, &want.place.series)? {
            None => return Ok(Err(unknown(&want.place).into())),
            Some((_, scopes)) if scopes >= want.scopes_max => {
                return Ok(Err(GrantError::TooManyScopes(want.scopes_max)));
            }
            Some((series_id, _)) => Standing::new(series_id, want.start),
        },
    };
    let at = (standing.series_id, want.place.scope.as_str());
    let count = want.at_most(standing.cursor.next);
    let found = aside::free(transaction, at.1, &standing, (want.purpose, count, want.end))?;
    let left = found.as_ref().map_or(0, |(lease, _)| lease.count());
    let fits = !want.purpose.is_all_or_none() || left == want.count;
    let Some((lease, aside)) = found.filter(|_| fits) else {
        if want.purpose == Purpose::Lease {
            spend(transaction, at, want.held_from, run)?;
        }
        return Ok(Err(GrantError::Exhausted { left, elsewhere: false }));
    };
    let Standing { cursor: Cursor { next, version }, held, .. } = standing;
    let moved = Cursor { next: lease.to(), version: version + 1 };
    let held = match (held::settle(transaction, at, next, held, run)?, want.purpose) {
        (_, Purpose::Lease) => Some(Held { from: want.held_from.unwrap_or(lease.from()), run }),
        (held, _) => held,
    };
    put(transaction, at, moved, held, is_new)?;
    match want.purpose {
        Purpose::Issue => enter(transaction, at.0, at.1, lease)?,
        Purpose::Pool => pool::put(transaction, at, lease, (pool::State::Granted, run))?,
        Purpose::Lease | Purpose::HandOut => {}
    }
    Ok(Ok(Grant { lease, version: moved.version, aside }))
}

/// Nothing more is granted: what the process that runs has handed out, it no longer holds.
fn spend(transaction: &Transaction<'_>, at: (i64, &str), held_from: Option<u64>, run: i64) -> Result<()> {
    transaction
        .prepare_cached(
            "UPDATE cursor SET held_from = ? WHERE series_id = ? AND scope = ? AND run = ? AND held_from IS NOT NULL",
        )?
        .execute(params![held_from.map(integer), at.0, at.1, run])?;
    Ok(())
}

/// Invariant: the cursor goes back only if it stands where the holder left it *and* was not written since: it
/// may have come back to the same place after another holder's give-back.
pub(crate) fn surrender(
    transaction: &Transaction<'_>,
    tail: &Tail,
    run: i64,
) -> Refusable<Surrendered, StoreError> {
    let Some((series_id, _)) = series(transaction, &tail.place.series)? else {
        return Ok(Err(unknown(&tail.place)));
    };
    let at = (series_id, tail.place.scope.as_str());
    let mut expected = Cursor { next: tail.lease.to(), version: tail.version };
    if is_planted(Bug::GiveBackWithoutCompare) {
        expected = cursor(transaction, at.0, at.1)?.unwrap_or(expected);
    }
    for range in &tail.lost {
        held::lose(transaction, at, *range, Reason::LeaseLost)?;
    }
    let from = integer(tail.lease.from());
    let returned = transaction
        .prepare_cached(
            // Gapless from there on, as what lies above was never handed out.
            "UPDATE cursor SET next = ?1, version = version + 1, held_from = NULL,
                 gapless_from = min(gapless_from, ?1)
             WHERE series_id = ?2 AND scope = ?3 AND next = ?4 AND version = ?5",
        )?
        .execute(params![from, at.0, at.1, integer(expected.next), integer(expected.version)])?;
    if returned == 1 {
        return Ok(Ok(Surrendered::Returned));
    }
    held::lose(transaction, at, tail.lease, Reason::LeaseLost)?;
    transaction
        // What was granted since belongs to whoever asked for the scope meanwhile.
        .prepare_cached(
            "UPDATE cursor SET held_from = NULL WHERE series_id = ? AND scope = ? AND run = ? AND held_from < ?",
        )?
        .execute(params![at.0, at.1, run, integer(tail.lease.to())])?;
    Ok(Ok(Surrendered::Gap))
}

pub(crate) fn raise_floor(
    transaction: &Transaction<'_>,
    place: &Place,
    floor: u64,
    run: i64,
) -> Refusable<Cursor, StoreError> {
    let Some((series_id, _)) = series(transaction, &place.series)? else { return Ok(Err(unknown(place))) };
    let at = (series_id, place.scope.as_str());
    pool::forget_server(transaction, at)?;
    let found = found(transaction, place)?;
    let is_new = found.is_none();
    let raised = match &found {
        Some(Standing { cursor, .. }) if cursor.next >= floor => return Ok(Ok(*cursor)),
        Some(Standing { cursor, .. }) => Cursor { next: floor, version: cursor.version + 1 },
        None => Cursor { next: floor, version: 1 },
    };
    let Standing { cursor: Cursor { next, .. }, held, .. } = match found {
        Some(found) => found,
        None => Standing::new(series_id, start(transaction, series_id)?),
    };
    let held = held::settle(transaction, at, next, held, run)?;
    if let Some(range) = Lease::new(next, floor) {
        held::lose(transaction, at, range, Reason::FloorRaised)?;
    }
    put(transaction, at, raised, held, is_new)?;
    Ok(Ok(raised))
}

/// Where the scopes of a series begin.
pub(crate) fn start(transaction: &Transaction<'_>, series_id: i64) -> Result<u64> {
    let mut statement = transaction.prepare_cached("SELECT start FROM series WHERE id = ?")?;
    statement.query_row([series_id], |row| Ok(whole(row.get(0)?)))
}

pub(crate) fn probe(transaction: &Transaction<'_>) -> Refusable<(), StoreError> {
    // A change is all that it takes: the writer raises the number of commits.
    transaction.prepare_cached("UPDATE progress SET commits = commits")?.execute([])?;
    Ok(Ok(()))
}

/// Describes a series if it has the description `before`, or this one already.
pub(crate) fn describe(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    before: Option<&str>,
    description: Option<&str>,
) -> Refusable<bool, StoreError> {
    let mut statement = transaction.prepare_cached("SELECT description FROM series WHERE name = ?")?;
    let found = statement.query_row([series.as_str()], |row| row.get::<_, Option<String>>(0)).optional()?;
    let found = found.as_ref().map(Option::as_deref);
    if found.is_some_and(|found| found != before && found != description) {
        return Ok(Ok(false));
    }
    Ok(put_description(transaction, series, description)?.map(|()| true))
}

pub(crate) fn put_description(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    description: Option<&str>,
) -> Refusable<(), StoreError> {
    let changed = transaction
        .prepare_cached("UPDATE series SET description = ? WHERE name = ?")?
        .execute(params![description, series.as_str()])?;
    Ok(if changed == 1 { Ok(()) } else { Err(StoreError::UnknownSeries(series.as_str().into())) })
}

pub(crate) fn series(transaction: &Transaction<'_>, series: &SeriesName) -> Result<Option<(i64, u64)>> {
    let mut statement = transaction.prepare_cached("SELECT id, scopes FROM series WHERE name = ?")?;
    statement.query_row([series.as_str()], |row| Ok((row.get(0)?, whole(row.get(1)?)))).optional()
}

/// Enters positions in the ledger. What joins the last range makes it longer, so that the ledger grows with the
/// number of gaps, not of numbers.
pub(crate) fn enter(transaction: &Transaction<'_>, series_id: i64, scope: &str, lease: Lease) -> Result<()> {
    let (first, last) = (integer(lease.from()), integer(lease.to() - 1));
    let longer = transaction
        .prepare_cached(
            "UPDATE ledger SET last = ?4 WHERE series_id = ?1 AND scope = ?2 AND last = ?3 - 1 AND first =
                 (SELECT max(first) FROM ledger WHERE series_id = ?1 AND scope = ?2)",
        )?
        .execute(params![series_id, scope, first, last])?;
    if longer == 0 {
        transaction
            .prepare_cached("INSERT INTO ledger (series_id, scope, first, last) VALUES (?, ?, ?, ?)")?
            .execute(params![series_id, scope, first, last])?;
    }
    Ok(())
}

/// Where a scope stands.
pub(crate) struct Standing {
    pub(crate) series_id: i64,
    pub(crate) cursor: Cursor,
    pub(crate) held: Option<Held>,
    /// Past the last position that was set aside.
    pub(crate) aside_to: u64,
}

impl Standing {
    /// One that has not begun.
    pub(crate) fn new(series_id: i64, start: u64) -> Self {
        Self { series_id, cursor: Cursor { next: start, version: 0 }, held: None, aside_to: 0 }
    }
}

pub(crate) fn found(transaction: &Transaction<'_>, place: &Place) -> Result<Option<Standing>> {
    let mut statement = transaction.prepare_cached(
        "SELECT series_id, next, version, held_from, run, aside_to FROM cursor
         WHERE series_id = (SELECT id FROM series WHERE name = ?) AND scope = ?",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let held: Option<i64> = row.get(3)?;
        Ok(Standing {
            series_id: row.get(0)?,
            cursor: Cursor { next: whole(row.get(1)?), version: whole(row.get(2)?) },
            held: match held {
                Some(from) => Some(Held { from: whole(from), run: row.get(4)? }),
                None => None,
            },
            aside_to: whole(row.get(5)?),
        })
    };
    statement.query_row(params![place.series.as_str(), place.scope.as_str()], read).optional()
}

pub(crate) fn cursor(
    connection: &rusqlite::Connection,
    series_id: i64,
    scope: &str,
) -> Result<Option<Cursor>> {
    let mut statement =
        connection.prepare_cached("SELECT next, version FROM cursor WHERE series_id = ? AND scope = ?")?;
    let read = |row: &rusqlite::Row<'_>| Ok(Cursor { next: whole(row.get(0)?), version: whole(row.get(1)?) });
    statement.query_row(params![series_id, scope], read).optional()
}

pub(crate) fn put(
    transaction: &Transaction<'_>,
    (series_id, scope): (i64, &str),
    cursor: Cursor,
    held: Option<Held>,
    is_new: bool,
) -> Result<()> {
    let (next, version) = (integer(cursor.next), integer(cursor.version));
    let (held_from, run) = (held.map(|held| integer(held.from)), held.map(|held| held.run));
    if is_new {
        transaction
            .prepare_cached(
                "INSERT INTO cursor (next, version, held_from, run, series_id, scope) VALUES (?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![next, version, held_from, run, series_id, scope])?;
        transaction
            .prepare_cached("UPDATE series SET scopes = scopes + 1 WHERE id = ?")?
            .execute([series_id])?;
    } else {
        transaction
            .prepare_cached(
                "UPDATE cursor SET next = ?, version = ?, held_from = ?, run = ? WHERE series_id = ? AND scope = ?",
            )?
            .execute(params![next, version, held_from, run, series_id, scope])?;
    }
    Ok(())
}

pub(crate) fn unknown(place: &Place) -> StoreError {
    StoreError::UnknownSeries(place.series.as_str().into())
}

/// Positions are below 2^53 and versions count writes, so both fit SQLite's signed integers.
pub(crate) fn integer(value: u64) -> i64 {
    i64::try_from(value).expect("positions and versions are far below 2^63")
}

/// Only [`integer`] writes these columns.
pub(crate) fn whole(value: i64) -> u64 {
    u64::try_from(value).expect("the column holds what was written: no negative number")
}
