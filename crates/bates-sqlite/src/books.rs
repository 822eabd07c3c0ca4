//! What the embedded store knows of positions, scope by scope, and the gaps that were found in it.

use std::collections::BTreeSet;

use bates_core::{
    CLIENT_LEASE_SPAN, Cursor, Gap, GapFilter, GapStore, KnownFor, KnownRange, KnownScope, Lease, Missing,
    Place, RangeKind, Reason, ScopeKey, SeriesName, StoreError, StoreResult,
};
use jiff::Timestamp;
use rusqlite::{Connection, Result, Row, Transaction, params};

use crate::SqliteStore;
use crate::held::{self, Held};
use crate::outbox::{bounded, millis, strange};
use crate::write::{self, Refusable, ScopeRef, integer, whole};

/// Everything of a scope but its cursor and what processes hold in memory: ranges, each with its kind. `?3` is the run of this
/// process, `?4` the time before which a client was silent for too long.
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
    async fn known(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
        purpose: KnownFor,
    ) -> StoreResult<Vec<KnownScope>> {
        let asker = Asker { run: self.run, now: self.steady.now(), purpose };
        self.read(|connection| {
            // One moment for all that is read, or a document numbered meanwhile would look like one that is missing.
            let snapshot = connection.unchecked_transaction()?;
            asker.scopes(&snapshot, &series, after.as_ref(), limit)
        })
    }

    async fn put_gaps(&self, series: SeriesName, scopes: Vec<(ScopeKey, Vec<Missing>)>) -> StoreResult<()> {
        self.write_now(move |transaction, now| put_gaps(transaction, &series, &scopes, now)).await
    }

    async fn gaps(&self, of: GapFilter, after: Option<(Place, u64)>, limit: usize) -> StoreResult<Vec<Gap>> {
        self.read(|connection| gaps(connection, &of, after.as_ref(), limit))
    }
}

/// Who asks, when and for what.
#[derive(Clone, Copy)]
struct Asker {
    run: i64,
    now: i64,
    purpose: KnownFor,
}

impl Asker {
    fn scopes(
        self,
        connection: &Connection,
        series: &SeriesName,
        after: Option<&ScopeKey>,
        limit: usize,
    ) -> Result<Vec<KnownScope>> {
        let mut statement = connection.prepare_cached(
            "SELECT series_id, scope, next, version, aside_to, gapless_from, held_from, run FROM cursor
             WHERE series_id = (SELECT id FROM series WHERE name = ?) AND (? OR scope > ?) ORDER BY scope LIMIT ?",
        )?;
        let after_key = after.map_or("", ScopeKey::as_str);
        let of = params![series.as_str(), after.is_none(), after_key, bounded(limit)];
        statement.query_map(of, |row| self.scope(connection, row))?.collect()
    }

    fn scope(self, connection: &Connection, row: &Row<'_>) -> Result<KnownScope> {
        let scope = row.get_ref(1)?.as_str()?;
        let at = ScopeRef::new(row.get(0)?, scope);
        let cursor = Cursor { next: whole(row.get(2)?), version: whole(row.get(3)?) };
        let mut ranges = self.ranges(connection, at)?;
        if let Some(from) = row.get::<_, Option<i64>>(6)? {
            let held = Held { from: whole(from), run: row.get(7)? };
            let kind = if held.run == self.run { RangeKind::Held } else { RangeKind::Crashed };
            let left = held::left(connection, at, held, cursor.next)?;
            ranges.extend(left.iter().map(|range| KnownRange { range, kind }));
        }
        let (aside_to, gapless_from) = (whole(row.get(4)?), whole(row.get(5)?));
        Ok(KnownScope { scope: ScopeKey::from_store(scope), cursor, aside_to, gapless_from, ranges })
    }

    fn ranges(self, connection: &Connection, at: ScopeRef<'_>) -> Result<Vec<KnownRange>> {
        let documents = if self.purpose == KnownFor::Account { DOCUMENTS } else { "" };
        let mut statement = connection.prepare_cached(&[RANGES, documents].concat())?;
        let silent = self.now.saturating_sub(millis(CLIENT_LEASE_SPAN));
        let rows = statement.query_map(params![at.series_id, at.scope, self.run, silent], |row| {
            let range = Lease::new(whole(row.get(0)?), whole(row.get(1)?) + 1).ok_or_else(|| strange(1))?;
            let kind = RangeKind::named(row.get_ref(2)?.as_str()?).ok_or_else(|| strange(2))?;
            Ok(KnownRange { range, kind })
        })?;
        rows.collect()
    }
}

fn put_gaps(
    transaction: &Transaction<'_>,
    series: &SeriesName,
    scopes: &[(ScopeKey, Vec<Missing>)],
    now: i64,
) -> Refusable<(), StoreError> {
    let Some((series_id, _)) = write::series(transaction, series)? else {
        return Ok(Err(StoreError::UnknownSeries(series.as_str().into())));
    };
    let mut found = transaction.prepare_cached("SELECT first FROM gap WHERE series_id = ? AND scope = ?")?;
    let mut close =
        transaction.prepare_cached("DELETE FROM gap WHERE series_id = ? AND scope = ? AND first = ?")?;
    let mut put = transaction.prepare_cached(PUT)?;
    for (scope, missing) in scopes {
        let scope = scope.as_str();
        let firsts: BTreeSet<i64> = missing.iter().map(|missing| integer(missing.range.from())).collect();
        let before = found.query_map(params![series_id, scope], |row| row.get(0))?;
        for first in before.collect::<Result<BTreeSet<i64>>>()?.difference(&firsts) {
            close.execute(params![series_id, scope, first])?;
        }
        for Missing { range, reason } in missing {
            let (first, last) = (integer(range.from()), integer(range.to() - 1));
            put.execute(params![series_id, scope, first, last, reason.name(), now])?;
        }
    }
    Ok(Ok(()))
}

fn gaps(
    connection: &Connection,
    of: &GapFilter,
    after: Option<&(Place, u64)>,
    limit: usize,
) -> Result<Vec<Gap>> {
    let mut statement = connection.prepare_cached(
        "SELECT series.name, gap.scope, gap.first, gap.last, gap.reason, gap.seen_at
         FROM gap JOIN series ON series.id = gap.series_id
         WHERE (?1 IS NULL OR series.name = ?1) AND (?2 IS NULL OR gap.scope = ?2)
             AND (series.name, gap.scope, gap.first) > (?3, ?4, ?5)
         ORDER BY series.name, gap.scope, gap.first LIMIT ?6",
    )?;
    let (series, scope) =
        (of.series.as_ref().map(SeriesName::as_str), of.scope.as_ref().map(ScopeKey::as_str));
    // Nothing is smaller than an empty name.
    let (name, key, first) = after.map_or(("", "", 0), |(Place { series, scope }, first)| {
        (series.as_str(), scope.as_str(), integer(*first))
    });
    let rows = statement.query_map(params![series, scope, name, key, first, bounded(limit)], gap)?;
    rows.filter_map(Result::transpose).collect()
}

fn gap(row: &Row<'_>) -> Result<Option<Gap>> {
    let series = row.get_ref(0)?.as_str()?.parse().ok();
    let range = Lease::new(whole(row.get(2)?), whole(row.get(3)?) + 1);
    let reason = Reason::named(row.get_ref(4)?.as_str()?);
    let scope = ScopeKey::from_store(row.get_ref(1)?.as_str()?);
    let seen = Timestamp::from_millisecond(row.get(5)?).unwrap_or(Timestamp::MAX);
    // Only what is read as it was written is a gap.
    let (Some(series), Some(range), Some(reason)) = (series, range, reason) else { return Ok(None) };
    Ok(Some(Gap { place: Place { series, scope }, missing: Missing { range, reason }, seen }))
}
