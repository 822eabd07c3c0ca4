//! The rows of one scope: loaded before the ledger decides, and written afterwards.

use bates_core::ledger::{AdoptedPositions, Request, ScopeBefore, ScopeChange, SeriesBefore};
use bates_core::{Cursor, Place, Ranges};
use rusqlite::{OptionalExtension, Result, Row, Transaction, params};

use crate::aside;
use crate::held::{self, Held};
use crate::planted::{Bug, is_planted};
use crate::pool;
use crate::write::{ScopeRef, enter, integer, whole};

/// A scope as it is stored before a batch.
pub(crate) struct StoredScope<'p> {
    place: &'p Place,
    series_id: Option<i64>,
    before: ScopeBefore,
}

/// The row of a cursor.
struct CursorRow {
    series_id: i64,
    cursor: Cursor,
    held: Option<Held>,
    /// The first position past all adopted ones.
    adopted_to: u64,
}

impl<'p> StoredScope<'p> {
    pub(crate) fn load<'r>(
        transaction: &Transaction<'_>,
        place: &'p Place,
        requests: impl Iterator<Item = &'r Request> + Clone,
        run: i64,
    ) -> Result<Self> {
        let Some(CursorRow { series_id, cursor, held, adopted_to }) = cursor_row(transaction, place)? else {
            return Self::load_new(transaction, place);
        };
        let at = ScopeRef::new(series_id, place.scope.as_str());
        let crashed = match held.filter(|held| held.run != run) {
            Some(held) => held::left(transaction, at, held, cursor.next)?,
            None => Ranges::default(),
        };
        let mut adopted = AdoptedPositions::needed(cursor, adopted_to, requests.clone());
        while let Some(page) = adopted.missing_page() {
            adopted.add_page(aside::read(transaction, place, page.from, page.limit)?);
        }
        let before = ScopeBefore {
            cursor: Some(planted_cursor(cursor, requests)),
            held_from: held.filter(|held| held.run == run).map(|held| held.from),
            crashed,
            adopted,
            ..ScopeBefore::default()
        };
        Ok(Self { place, series_id: Some(series_id), before })
    }

    /// Only a new scope needs the row of its series: nearly every request is for a scope that is there.
    fn load_new(transaction: &Transaction<'_>, place: &'p Place) -> Result<Self> {
        let mut statement =
            transaction.prepare_cached("SELECT id, scopes, start FROM series WHERE name = ?")?;
        let read = |row: &Row<'_>| {
            Ok((row.get(0)?, SeriesBefore { scopes: whole(row.get(1)?), start: whole(row.get(2)?) }))
        };
        let found = statement.query_row([place.series.as_str()], read).optional()?;
        let (series_id, series) = found.unzip();
        Ok(Self { place, series_id, before: ScopeBefore { series, ..ScopeBefore::default() } })
    }

    pub(crate) fn before(&self) -> &ScopeBefore {
        &self.before
    }

    /// The id of its series; `None` if there is no such series.
    pub(crate) fn series_id(&self) -> Option<i64> {
        self.series_id
    }
}

/// The cursor; with a planted bug, the one that a release expects.
fn planted_cursor<'r>(cursor: Cursor, mut requests: impl Iterator<Item = &'r Request>) -> Cursor {
    if is_planted(Bug::GiveBackWithoutCompare)
        && let Some(Request::Release(tail)) = requests.find(|request| matches!(request, Request::Release(_)))
    {
        return Cursor { next: tail.lease.to(), version: tail.version };
    }
    cursor
}

fn cursor_row(transaction: &Transaction<'_>, place: &Place) -> Result<Option<CursorRow>> {
    let mut statement = transaction.prepare_cached(
        "SELECT series_id, next, version, held_from, run, aside_to FROM cursor
         WHERE series_id = (SELECT id FROM series WHERE name = ?) AND scope = ?",
    )?;
    let read = |row: &Row<'_>| {
        let held: Option<i64> = row.get(3)?;
        Ok(CursorRow {
            series_id: row.get(0)?,
            cursor: Cursor { next: whole(row.get(1)?), version: whole(row.get(2)?) },
            held: match held {
                Some(from) => Some(Held { from: whole(from), run: row.get(4)? }),
                None => None,
            },
            adopted_to: whole(row.get(5)?),
        })
    };
    statement.query_row(params![place.series.as_str(), place.scope.as_str()], read).optional()
}

/// Writes the change of a scope.
pub(crate) fn apply(
    transaction: &Transaction<'_>,
    (series_id, stored): (i64, &StoredScope<'_>),
    change: &ScopeChange,
    run: i64,
) -> Result<()> {
    let at = ScopeRef::new(series_id, stored.place.scope.as_str());
    let held = change.held_from.map(|from| Held { from, run });
    if let Some(cursor) = change.cursor {
        put_cursor(transaction, at, cursor, held, change.is_new)?;
    } else if change.held_from != stored.before.held_from {
        transaction
            .prepare_cached("UPDATE cursor SET held_from = ? WHERE series_id = ? AND scope = ?")?
            .execute(params![change.held_from.map(integer), at.series_id, at.scope])?;
    }
    for range in &change.issued {
        enter(transaction, at.series_id, at.scope, *range)?;
    }
    for range in &change.pooled {
        pool::put(transaction, at, *range, (pool::State::Granted, run))?;
    }
    if let Some(held) = held {
        for range in change.handed_out.iter().filter(|range| range.to() > held.from) {
            pool::put_popped(transaction, at, *range, held)?;
        }
    }
    for missing in &change.lost {
        held::lose(transaction, at, missing.range, missing.reason)?;
    }
    if !change.adopted.is_empty() {
        aside::enter(transaction, at, &change.adopted)?;
    }
    if change.forgets_pool_server {
        pool::forget_server(transaction, at)?;
    }
    Ok(())
}

/// Writes a cursor, and counts a new scope in its series.
pub(crate) fn put_cursor(
    transaction: &Transaction<'_>,
    ScopeRef { series_id, scope }: ScopeRef<'_>,
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
                // A released range was never handed out, so the scope is gapless from its first position on.
                "UPDATE cursor SET next = ?1, version = ?2, held_from = ?3, run = ?4,
                     gapless_from = min(gapless_from, ?1)
                 WHERE series_id = ?5 AND scope = ?6",
            )?
            .execute(params![next, version, held_from, run, series_id, scope])?;
    }
    Ok(())
}
