//! What the embedded store knows of positions, scope by scope, and the gaps that were found in it.

use std::collections::BTreeSet;

use bates_core::{
    CLIENT_LEASE_TTL, Cursor, Gap, GapFilter, GapReason, GapStore, MissingRange, RangeKind, RangeRecord,
    ReadPurpose, ScopeId, ScopeKey, ScopeRecord, SeriesName, StoreResult,
};
use jiff::Timestamp;
use rusqlite::{Connection, Result, Row, Transaction, params};

use crate::SqliteStore;
use crate::held::{self, Held};
use crate::outbox::millis;
use crate::write::{self, Refusable, ScopeRef, bounded, execute, integer, rows, strange, whole};

/// All ranges of a scope, each with its kind, except those that processes hold in memory. `?3` is the run of this process;
/// clients whose leases are older than `?4` are silent.
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

/// Gaps that are found again keep the time when they were seen.
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
        let sql = "SELECT series_id, scope, next, version, adopted_to, gapless_from, held_from, run FROM cursor
             WHERE series_id = (SELECT id FROM series WHERE name = ?) AND (? OR scope > ?) ORDER BY scope LIMIT ?";
        let after_key = after.as_ref().map_or("", ScopeKey::as_str);
        let of = params![series.as_str(), after.is_none(), after_key, bounded(limit)];
        let asker = Asker { run: self.run, now: self.steady.now(), purpose };
        self.read(|connection| {
            // One snapshot: otherwise a document numbered meanwhile would look like a missing one.
            let snapshot = connection.unchecked_transaction()?;
            rows(&snapshot, sql, of, |row| asker.scope(&snapshot, row))
        })
    }

    async fn replace_gaps(
        &self,
        series: SeriesName,
        scopes: Vec<(ScopeKey, Vec<MissingRange>)>,
    ) -> StoreResult<()> {
        self.write_now(move |transaction, now| put_gaps(transaction, &series, &scopes, now)).await
    }

    async fn gaps(
        &self,
        of: GapFilter,
        after: Option<(ScopeId, u64)>,
        limit: usize,
    ) -> StoreResult<Vec<Gap>> {
        let sql = "SELECT series.name, gap.scope, gap.first, gap.last, gap.reason, gap.seen_at
                   FROM gap JOIN series ON series.id = gap.series_id
                   WHERE (?1 IS NULL OR series.name = ?1) AND (?2 IS NULL OR gap.scope = ?2)
                       AND (series.name, gap.scope, gap.first) > (?3, ?4, ?5)
                   ORDER BY series.name, gap.scope, gap.first LIMIT ?6";
        let (series, scope) =
            (of.series.as_ref().map(SeriesName::as_str), of.scope.as_ref().map(ScopeKey::as_str));
        // No name is smaller than the empty one.
        let (name, key, first) = after.as_ref().map_or(("", "", 0), |(ScopeId { series, scope }, first)| {
            (series.as_str(), scope.as_str(), integer(*first))
        });
        let of = params![series, scope, name, key, first, bounded(limit)];
        Ok(self.read(|connection| rows(connection, sql, of, gap))?.into_iter().flatten().collect())
    }
}

#[derive(Clone, Copy)]
struct Asker {
    run: i64,
    now: i64,
    purpose: ReadPurpose,
}

impl Asker {
    fn scope(self, connection: &Connection, row: &Row<'_>) -> Result<ScopeRecord> {
        let scope = row.get_ref(1)?.as_str()?;
        let at = ScopeRef::new(row.get(0)?, scope);
        let cursor = Cursor { next: whole(row.get(2)?), version: whole(row.get(3)?) };
        let mut ranges = self.ranges(connection, at)?;
        if let Some(from) = row.get::<_, Option<i64>>(6)? {
            let held = Held { from: whole(from), run: row.get(7)? };
            let kind = if held.run == self.run { RangeKind::Held } else { RangeKind::Crashed };
            let left = held::left(connection, at, held, cursor.next)?;
            ranges.extend(left.iter().map(|range| RangeRecord { range, kind }));
        }
        let (adopted_to, gapless_from) = (whole(row.get(4)?), whole(row.get(5)?));
        Ok(ScopeRecord { scope: ScopeKey::from_store(scope), cursor, adopted_to, gapless_from, ranges })
    }

    fn ranges(self, connection: &Connection, at: ScopeRef<'_>) -> Result<Vec<RangeRecord>> {
        let documents = if self.purpose == ReadPurpose::Reconcile { DOCUMENTS } else { "" };
        let silent = self.now.saturating_sub(millis(CLIENT_LEASE_TTL));
        let of = params![at.series_id, at.scope, self.run, silent];
        rows(connection, &[RANGES, documents].concat(), of, |row| {
            let range = write::range(row, 0)?.ok_or_else(|| strange(1))?;
            let kind = RangeKind::from_name(row.get_ref(2)?.as_str()?).ok_or_else(|| strange(2))?;
            Ok(RangeRecord { range, kind })
        })
    }
}

fn put_gaps(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    scopes: &[(ScopeKey, Vec<MissingRange>)],
    now: i64,
) -> Refusable<()> {
    let Some(series_id) = write::series(transaction, series)? else { return Ok(Err(write::unknown(series))) };
    let found = "SELECT first FROM gap WHERE series_id = ? AND scope = ?";
    let close = "DELETE FROM gap WHERE series_id = ? AND scope = ? AND first = ?";
    for (scope, missing) in scopes {
        let scope = scope.as_str();
        let firsts: BTreeSet<i64> = missing.iter().map(|missing| integer(missing.range.from())).collect();
        let before: Vec<i64> = rows(transaction, found, params![series_id, scope], |row| row.get(0))?;
        for first in before.iter().filter(|first| !firsts.contains(first)) {
            execute(transaction, close, params![series_id, scope, first])?;
        }
        for MissingRange { range, reason } in missing {
            let (first, last) = (integer(range.from()), integer(range.to() - 1));
            execute(transaction, PUT, params![series_id, scope, first, last, reason.name(), now])?;
        }
    }
    Ok(Ok(()))
}

fn gap(row: &Row<'_>) -> Result<Option<Gap>> {
    let series = row.get_ref(0)?.as_str()?.parse().ok();
    let range = write::range(row, 2)?;
    let reason = GapReason::from_name(row.get_ref(4)?.as_str()?);
    let scope = ScopeKey::from_store(row.get_ref(1)?.as_str()?);
    let seen = Timestamp::from_millisecond(row.get(5)?).unwrap_or(Timestamp::MAX);
    // Rows that cannot be read are left out.
    let (Some(series), Some(range), Some(reason)) = (series, range, reason) else { return Ok(None) };
    Ok(Some(Gap {
        scope_id: ScopeId { series, scope },
        missing: MissingRange { range, reason },
        first_seen: seen,
    }))
}
