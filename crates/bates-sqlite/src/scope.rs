//! The rows of one scope: loaded before the ledger decides, and written afterwards.

use bates_core::ledger::{
    AdoptedPositions, PooledRange, PooledState, Request, ScopeBefore, ScopeChange, SeriesBefore,
};
use bates_core::{Cursor, Position, RangeSet, ScopeId, SeriesName};
use rusqlite::{Connection, Result, Transaction, params};

use crate::held::{self, HeldFrom};
use crate::new_scopes::{Change, NewScope, NewScopes};
use crate::planted::{Bug, is_planted};
use crate::write::{self, ScopeRef, execute, record_issued, to_i64, to_limit, to_u64};
use crate::{operation, pool};

/// The rows of scopes, as one transaction reads and changes them.
pub(crate) struct ScopeTable<'t> {
    pub(crate) transaction: &'t Transaction<'t>,
    pub(crate) run: i64,
    pub(crate) new_scopes: &'t mut NewScopes,
    pub(crate) change: Change,
    /// Whether every scope must be in `cursor`, for what follows in the transaction.
    pub(crate) needs_cursors: bool,
}

/// The row of a series, for the calls of a batch: read for the first scope, and written once for all.
#[derive(Default)]
pub(crate) struct SeriesRow {
    is_read: bool,
    /// `None` if the series does not exist.
    row: Option<(i64, SeriesBefore)>,
    scopes_added: u64,
    new_scopes: Vec<NewScope>,
}

impl SeriesRow {
    fn load(
        &mut self,
        transaction: &Transaction<'_>,
        series: &SeriesName,
    ) -> Result<Option<(i64, SeriesBefore)>> {
        if !self.is_read {
            self.row = read_series(transaction, series)?;
            self.is_read = true;
        }
        let scopes = |before: SeriesBefore| before.scopes + self.scopes_added;
        Ok(self.row.map(|(id, before)| (id, SeriesBefore { scopes: scopes(before), ..before })))
    }

    /// Adds the new scopes to the series.
    pub(crate) fn apply(self, table: &mut ScopeTable<'_>) -> Result<()> {
        if let Some((id, _)) = self.row
            && self.scopes_added > 0
        {
            add_scopes(table.transaction, id, self.scopes_added)?;
        }
        table.new_scopes.append(table.transaction, self.new_scopes, &mut table.change)
    }
}

fn read_series(transaction: &Transaction<'_>, series: &SeriesName) -> Result<Option<(i64, SeriesBefore)>> {
    let sql = "SELECT id, scopes, start, floor FROM series WHERE name = ?";
    write::row(transaction, sql, [series.as_str()], |row| {
        let [scopes, start, floor] = [row.get(1)?, row.get(2)?, row.get(3)?].map(to_u64);
        Ok((row.get(0)?, SeriesBefore { scopes, start, floor }))
    })
}

pub(crate) fn add_scopes(transaction: &Transaction<'_>, series_id: i64, count: u64) -> Result<()> {
    let sql = "UPDATE series SET scopes = scopes + ? WHERE id = ?";
    execute(transaction, sql, params![to_i64(count), series_id]).map(drop)
}

pub(crate) struct StoredScope<'s> {
    scope_id: &'s ScopeId,
    /// `None` if the series does not exist.
    pub(crate) series_id: Option<i64>,
    pub(crate) before: ScopeBefore,
}

struct CursorRow {
    cursor: Cursor,
    held: Option<HeldFrom>,
    /// The end of the adopted positions.
    adopted_to: u64,
}

impl ScopeTable<'_> {
    pub(crate) fn load<'s, 'r>(
        &mut self,
        scope_id: &'s ScopeId,
        series: &mut SeriesRow,
        requests: impl Iterator<Item = &'r Request> + Clone,
    ) -> Result<StoredScope<'s>> {
        let Self { transaction, run, .. } = *self;
        let Some((series_id, series)) = series.load(transaction, &scope_id.series)? else {
            return Ok(StoredScope { scope_id, series_id: None, before: ScopeBefore::default() });
        };
        let at = ScopeRef { series_id, scope: scope_id.scope.as_str() };
        let may_exist = self.new_scopes.find(transaction, series_id, &scope_id.scope, &mut self.change)?;
        let row = if may_exist { cursor_row(transaction, at)? } else { None };
        let Some(CursorRow { cursor, held, adopted_to }) = row else {
            let before = ScopeBefore { series: Some(series), ..ScopeBefore::default() };
            return Ok(StoredScope { scope_id, series_id: Some(series_id), before });
        };
        let crashed = match held.filter(|held| held.run != run) {
            Some(held) => held::still_held(transaction, at, held, cursor.next)?,
            None => RangeSet::default(),
        };
        let mut adopted = AdoptedPositions::for_requests(cursor, adopted_to, requests.clone());
        while let Some(page) = adopted.missing_page() {
            adopted.add_page(adopted_positions(transaction, scope_id, page.from, page.limit)?);
        }
        let before = ScopeBefore {
            cursor: Some(planted_cursor(cursor, requests)),
            held_from: held.filter(|held| held.run == run).map(|held| held.from),
            crashed,
            adopted,
            ..ScopeBefore::default()
        };
        Ok(StoredScope { scope_id, series_id: Some(series_id), before })
    }
}

fn planted_cursor<'r>(cursor: Cursor, mut requests: impl Iterator<Item = &'r Request>) -> Cursor {
    if is_planted(Bug::ReleaseWithoutCompare)
        && let Some(Request::Release(release)) =
            requests.find(|request| matches!(request, Request::Release(_)))
    {
        return Cursor { next: release.range.to(), version: release.version };
    }
    cursor
}

fn cursor_row(
    transaction: &Transaction<'_>,
    ScopeRef { series_id, scope }: ScopeRef<'_>,
) -> Result<Option<CursorRow>> {
    let sql =
        "SELECT next, version, held_from, run, adopted_to FROM cursor WHERE series_id = ? AND scope = ?";
    write::row(transaction, sql, params![series_id, scope], |row| {
        let run = row.get::<_, Option<i64>>(3)?;
        let held =
            row.get::<_, Option<i64>>(2)?.zip(run).map(|(from, run)| HeldFrom { from: to_u64(from), run });
        let cursor = Cursor { next: to_u64(row.get(0)?), version: to_u64(row.get(1)?) };
        Ok(CursorRow { cursor, held, adopted_to: to_u64(row.get(4)?) })
    })
}

/// Whether no other row of the transaction belongs to a new scope, so that it need not be in `cursor`.
fn is_only_granted(change: &ScopeChange) -> bool {
    let ranges = [&change.issued, &change.pooled, &change.handed_out];
    ranges.into_iter().all(Vec::is_empty)
        && change.lost.is_empty()
        && change.adopted.is_empty()
        && change.operations.is_empty()
        && !change.resets_pool_server
}

impl ScopeTable<'_> {
    pub(crate) fn apply(
        &self,
        stored: &StoredScope<'_>,
        series: &mut SeriesRow,
        change: &ScopeChange,
    ) -> Result<()> {
        let Some(series_id) = stored.series_id else { return Ok(()) };
        let Self { transaction, run, needs_cursors, .. } = *self;
        let at = ScopeRef { series_id, scope: stored.scope_id.scope.as_str() };
        series.scopes_added += u64::from(change.is_new);
        if let Some(Cursor { next, version }) = change.cursor
            && change.is_new
            && !needs_cursors
            && is_only_granted(change)
        {
            let (scope, held_from) = (stored.scope_id.scope.clone(), change.held_from);
            series.new_scopes.push(NewScope { series_id, scope, next, version, held_from });
            return Ok(());
        }
        let held = change.held_from.map(|from| HeldFrom { from, run });
        if let Some(cursor) = change.cursor {
            put_cursor(transaction, at, cursor, held, change.is_new)?;
        } else if change.held_from != stored.before.held_from {
            let sql = "UPDATE cursor SET held_from = ? WHERE series_id = ? AND scope = ?";
            execute(transaction, sql, params![change.held_from.map(to_i64), at.series_id, at.scope])?;
        }
        self.record(at, held, change)
    }

    /// Writes what became of positions.
    fn record(&self, at: ScopeRef<'_>, held: Option<HeldFrom>, change: &ScopeChange) -> Result<()> {
        let Self { transaction, run, .. } = *self;
        change.issued.iter().try_for_each(|range| record_issued(transaction, at, *range))?;
        for range in &change.pooled {
            let row = PooledRange { range: *range, state: PooledState::Granted, holder: run };
            pool::put(transaction, at, &row)?;
        }
        if let Some(held) = held {
            for range in change.handed_out.iter().filter(|range| range.to() > held.from) {
                pool::put_popped(transaction, at, *range, held)?;
            }
        }
        for lost in &change.lost {
            held::record_lost(transaction, at, lost.range, lost.reason)?;
        }
        if !change.adopted.is_empty() {
            adopt(transaction, at, &change.adopted)?;
        }
        change.operations.iter().try_for_each(|operation| operation::append(transaction, Some(operation)))?;
        if change.resets_pool_server { pool::forget_server(transaction, at) } else { Ok(()) }
    }
}

/// The caller counts a new scope with [`add_scopes`].
pub(crate) fn put_cursor(
    transaction: &Transaction<'_>,
    ScopeRef { series_id, scope }: ScopeRef<'_>,
    cursor: Cursor,
    held: Option<HeldFrom>,
    is_new: bool,
) -> Result<()> {
    let (next, version) = (to_i64(cursor.next), to_i64(cursor.version));
    let (held_from, run) = (held.map(|held| to_i64(held.from)), held.map(|held| held.run));
    let sql = if is_new {
        "INSERT INTO cursor (next, version, held_from, run, series_id, scope) VALUES (?, ?, ?, ?, ?, ?)"
    } else {
        // A released range was never handed out, so the scope is gapless from its first position on.
        "UPDATE cursor SET next = ?1, version = ?2, held_from = ?3, run = ?4, gapless_from = min(gapless_from, ?1)
         WHERE series_id = ?5 AND scope = ?6"
    };
    execute(transaction, sql, params![next, version, held_from, run, series_id, scope]).map(drop)
}

/// Invariant: the cursor exists, and the same commit writes to it where the adopted positions end.
pub(crate) fn adopt(transaction: &Transaction<'_>, at: ScopeRef<'_>, positions: &[Position]) -> Result<()> {
    let insert = "INSERT OR IGNORE INTO adopted (series_id, scope, position) VALUES (?, ?, ?)";
    for position in positions {
        execute(transaction, insert, params![at.series_id, at.scope, to_i64(position.value())])?;
    }
    let end = positions.iter().max().map_or(0, |last| to_i64(last.value() + 1));
    let raise = "UPDATE cursor SET adopted_to = max(adopted_to, ?) WHERE series_id = ? AND scope = ?";
    execute(transaction, raise, params![end, at.series_id, at.scope]).map(drop)
}

pub(crate) fn adopted_positions(
    connection: &Connection,
    scope_id: &ScopeId,
    from: u64,
    limit: usize,
) -> Result<Vec<Position>> {
    let sql = "SELECT position FROM adopted WHERE series_id = (SELECT id FROM series WHERE name = ?)
               AND scope = ? AND position >= ? ORDER BY position LIMIT ?";
    let values = params![scope_id.series.as_str(), scope_id.scope.as_str(), to_i64(from), to_limit(limit)];
    write::rows(connection, sql, values, |row| Ok(write::position(row.get(0)?)))
}
