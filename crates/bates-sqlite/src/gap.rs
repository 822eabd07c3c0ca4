//! What the embedded store knows about the positions of each scope, and the gaps of the last reconciliation.

use std::collections::BTreeSet;

use bates_core::{
    CLIENT_LEASE_TTL, Cursor, Gap, GapFilter, GapReason, GapStore, MissingRange, RangeKind, RangeRecord,
    ReadPurpose, ScopeId, ScopeKey, ScopeRecord, SeriesName, StoreResult,
};
use jiff::Timestamp;
use rusqlite::{Connection, Result, Row, Transaction, params};

use crate::SqliteStore;
use crate::error::WriteResult;
use crate::held::{self, HeldFrom};
use crate::listed::{glob_patterns, scope_condition};
use crate::outbox::millis;
use crate::write::{self, ScopeRef, execute, invalid_column, rows, to_i64, to_limit, to_u64};

/// All ranges of a scope with their kinds, except those that processes hold in memory. `?3` is the run of this process.
/// Clients whose leases are older than `?4` count as silent.
const RANGES: &str = "
    SELECT first, last, 'issued' FROM ledger WHERE series_id = ?1 AND scope = ?2
    UNION ALL
    SELECT first, last, reason FROM lost WHERE series_id = ?1 AND scope = ?2
    UNION ALL
    SELECT first, last, CASE WHEN state = 'pushed' THEN 'pushed' WHEN run = ?3 THEN 'filling' ELSE 'filler_crashed' END
        FROM pooled WHERE series_id = ?1 AND scope = ?2 AND state IN ('granted', 'pushed')
    UNION ALL
    SELECT first, last, iif(leased_at > ?4, 'with_client', 'client_silent')
        FROM client_lease WHERE series_id = ?1 AND scope = ?2";

const DOCUMENTS: &str = "
    UNION ALL
    SELECT position, position, iif(in_doubt, 'in_doubt ', 'document ') || state
        FROM document WHERE series_id = ?1 AND scope = ?2
        AND state IN ('dead', 'abandoned', 'voided', 'pending', 'reserved')";

/// A gap that was known before keeps its `seen_at`.
const PUT: &str = "
    INSERT INTO gap (series_id, scope, first, last, reason, seen_at) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (series_id, scope, first) DO UPDATE SET last = excluded.last, reason = excluded.reason,
        seen_at = iif(reason = excluded.reason, seen_at, excluded.seen_at)";

impl GapStore for SqliteStore {
    async fn scope_records(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
        purpose: ReadPurpose,
    ) -> StoreResult<Vec<ScopeRecord>> {
        self.merge_new_scopes().await?;
        let sql = "SELECT series_id, scope, next, version, adopted_to, gapless_from, held_from, run FROM cursor
             WHERE series_id = (SELECT id FROM series WHERE name = ?) AND (? OR scope > ?) ORDER BY scope LIMIT ?";
        let after_key = after.as_ref().map_or("", ScopeKey::as_str);
        let values = params![series.as_str(), after.is_none(), after_key, to_limit(limit)];
        let reader = ScopeReader { run: self.run, now: self.clock.now(), purpose };
        self.read(|connection| {
            // One snapshot: otherwise a document that is numbered meanwhile would look missing.
            let snapshot = connection.unchecked_transaction()?;
            rows(&snapshot, sql, values, |row| reader.scope(&snapshot, row))
        })
    }

    async fn replace_gaps(
        &self,
        series: SeriesName,
        scopes: Vec<(ScopeKey, Vec<MissingRange>)>,
    ) -> StoreResult<()> {
        self.write_now(move |transaction, now| put_gaps(transaction, &series, &scopes, now)).await
    }

    async fn set_reconciled(&self, series: SeriesName, at: Timestamp) -> StoreResult<()> {
        self.write(move |transaction| put_reconciled(transaction, &series, at)).await
    }

    async fn reconciled(&self) -> StoreResult<Vec<(SeriesName, Timestamp)>> {
        let sql = "SELECT series.name, reconciled.at FROM reconciled JOIN series ON series.id = series_id ORDER BY 1";
        let read = |row: &Row<'_>| {
            let at = Timestamp::from_millisecond(row.get(1)?).map_err(|_| invalid_column(1))?;
            Ok((row.get_ref(0)?.as_str()?.parse().map_err(|_| invalid_column(0))?, at))
        };
        self.read(|connection| rows(connection, sql, [], read))
    }

    async fn gaps(
        &self,
        filter: GapFilter,
        after: Option<(ScopeId, u64)>,
        limit: usize,
    ) -> StoreResult<Vec<Gap>> {
        let sql = "SELECT series.name, gap.scope, gap.first, gap.last, gap.reason, gap.seen_at
                   FROM gap JOIN series ON series.id = gap.series_id
                   WHERE (?1 IS NULL OR series.name = ?1) AND (?2 IS NULL OR gap.scope = ?2)
                       AND (series.name, gap.scope, gap.first) > (?3, ?4, ?5)
                       AND EXISTS (SELECT 1 FROM json_each(?7) WHERE series.name GLOB value)
                       AND NOT EXISTS (SELECT 1 FROM json_each(?8)
                                       WHERE instr(' ' || gap.scope || ' ', ' ' || value || ' ') = 0)
                   ORDER BY series.name, gap.scope, gap.first LIMIT ?6";
        let series = filter.series.as_ref().map(SeriesName::as_str);
        let (scope, words) = scope_condition(filter.scope.as_ref());
        // Every name follows the empty one.
        let (name, key, first) = after.as_ref().map_or(("", "", 0), |(ScopeId { series, scope }, first)| {
            (series.as_str(), scope.as_str(), to_i64(*first))
        });
        let among = glob_patterns(&filter.among);
        let values = params![series, scope, name, key, first, to_limit(limit), among, words];
        Ok(self.read(|connection| rows(connection, sql, values, gap))?.into_iter().flatten().collect())
    }
}

#[derive(Clone, Copy)]
struct ScopeReader {
    run: i64,
    now: i64,
    purpose: ReadPurpose,
}

impl ScopeReader {
    fn scope(self, connection: &Connection, row: &Row<'_>) -> Result<ScopeRecord> {
        let scope = row.get_ref(1)?.as_str()?;
        let at = ScopeRef { series_id: row.get(0)?, scope };
        let cursor = Cursor { next: to_u64(row.get(2)?), version: to_u64(row.get(3)?) };
        let mut ranges = self.ranges(connection, at)?;
        if let Some(from) = row.get::<_, Option<i64>>(6)? {
            let held = HeldFrom { from: to_u64(from), run: row.get(7)? };
            let kind = if held.run == self.run { RangeKind::Held } else { RangeKind::Crashed };
            let still_held = held::still_held(connection, at, held, cursor.next)?;
            ranges.extend(still_held.iter().map(|range| RangeRecord { range, kind }));
        }
        let (adopted_to, gapless_from) = (to_u64(row.get(4)?), to_u64(row.get(5)?));
        Ok(ScopeRecord { scope: ScopeKey::from_store(scope), cursor, adopted_to, gapless_from, ranges })
    }

    fn ranges(self, connection: &Connection, at: ScopeRef<'_>) -> Result<Vec<RangeRecord>> {
        let documents = if self.purpose == ReadPurpose::Reconcile { DOCUMENTS } else { "" };
        let oldest = self.now.saturating_sub(millis(CLIENT_LEASE_TTL));
        let values = params![at.series_id, at.scope, self.run, oldest];
        rows(connection, &[RANGES, documents].concat(), values, |row| {
            let range = write::range(row, 0)?.ok_or_else(|| invalid_column(1))?;
            let kind = RangeKind::from_name(row.get_ref(2)?.as_str()?).ok_or_else(|| invalid_column(2))?;
            Ok(RangeRecord { range, kind })
        })
    }
}

fn put_gaps(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    scopes: &[(ScopeKey, Vec<MissingRange>)],
    now: i64,
) -> WriteResult<()> {
    let series_id = write::series_id(transaction, series)?;
    let select = "SELECT first FROM gap WHERE series_id = ? AND scope = ?";
    let delete = "DELETE FROM gap WHERE series_id = ? AND scope = ? AND first = ?";
    for (scope, missing) in scopes {
        let scope = scope.as_str();
        let firsts: BTreeSet<i64> = missing.iter().map(|missing| to_i64(missing.range.from())).collect();
        let before: Vec<i64> = rows(transaction, select, params![series_id, scope], |row| row.get(0))?;
        for first in before.iter().filter(|first| !firsts.contains(first)) {
            execute(transaction, delete, params![series_id, scope, first])?;
        }
        for MissingRange { range, reason } in missing {
            let (first, last) = write::bounds(*range);
            execute(transaction, PUT, params![series_id, scope, first, last, reason.name(), now])?;
        }
    }
    Ok(())
}

pub(crate) fn put_reconciled(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    at: Timestamp,
) -> WriteResult<()> {
    let series_id = write::series_id(transaction, series)?;
    let sql = "INSERT OR REPLACE INTO reconciled (series_id, at) VALUES (?, ?)";
    execute(transaction, sql, params![series_id, at.as_millisecond()])?;
    Ok(())
}

fn gap(row: &Row<'_>) -> Result<Option<Gap>> {
    let series = row.get_ref(0)?.as_str()?.parse().ok();
    let range = write::range(row, 2)?;
    let reason = GapReason::from_name(row.get_ref(4)?.as_str()?);
    let scope = ScopeKey::from_store(row.get_ref(1)?.as_str()?);
    let first_seen = Timestamp::from_millisecond(row.get(5)?).unwrap_or(Timestamp::MAX);
    // Rows that cannot be read are left out.
    let (Some(series), Some(range), Some(reason)) = (series, range, reason) else { return Ok(None) };
    let missing = MissingRange { range, reason };
    Ok(Some(Gap { scope_id: ScopeId { series, scope }, missing, first_seen }))
}
