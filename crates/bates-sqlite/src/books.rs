//! What the embedded store knows of positions, scope by scope, and the gaps that were found in it.

use std::collections::BTreeMap;

use bates_core::{
    Account, Gap, GapFilter, GapStore, Lease, Missing, Place, Reason, ScopeKey, SeriesName, StoreError,
};
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, Result, Row, Transaction, params, params_from_iter};

use crate::SqliteStore;
use crate::client_lease;
use crate::held::{self, Held};
use crate::write::{self, Refusable, ScopeRef, integer, whole};

impl GapStore for SqliteStore {
    async fn accounts(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> std::result::Result<Vec<(ScopeKey, Account)>, StoreError> {
        let moment = Moment { run: self.run, now: self.steady.now() };
        self.read(|connection| accounts(connection, &series, after.as_ref(), limit, moment))
    }

    async fn put_gaps(
        &self,
        series: SeriesName,
        scopes: Vec<(ScopeKey, Vec<Missing>)>,
    ) -> std::result::Result<(), StoreError> {
        let now = self.steady.now();
        self.write(move |transaction| put_gaps(transaction, &series, &scopes, now)).await
    }

    async fn gaps(
        &self,
        of: GapFilter,
        after: Option<(Place, u64)>,
        limit: usize,
    ) -> std::result::Result<Vec<Gap>, StoreError> {
        self.read(|connection| gaps(connection, &of, after.as_ref(), limit))
    }
}

/// For whom an account is, and when.
#[derive(Clone, Copy)]
struct Moment {
    run: i64,
    now: i64,
}

fn accounts(
    connection: &Connection,
    series: &SeriesName,
    after: Option<&ScopeKey>,
    limit: usize,
    moment: Moment,
) -> Result<Vec<(ScopeKey, Account)>> {
    // One moment for all that is read, or a document numbered meanwhile would look like one that is missing.
    let snapshot = connection.unchecked_transaction()?;
    let mut scopes: Vec<(i64, Box<str>, Account, Option<Held>)> = Vec::new();
    let mut statement = snapshot.prepare_cached(
        "SELECT series_id, scope, next, held_from, run, gapless_from FROM cursor
         WHERE series_id = (SELECT id FROM series WHERE name = ?) AND (? OR scope > ?) ORDER BY scope LIMIT ?",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let after = params![series.as_str(), after.is_none(), after.map_or("", ScopeKey::as_str), limit];
    let mut rows = statement.query(after)?;
    while let Some(row) = rows.next()? {
        let held = match row.get::<_, Option<i64>>(3)? {
            Some(from) => Some(Held { from: whole(from), run: row.get(4)? }),
            None => None,
        };
        let account =
            Account { next: whole(row.get(2)?), gapless_from: whole(row.get(5)?), ..Account::default() };
        scopes.push((row.get(0)?, row.get::<_, String>(1)?.into(), account, held));
    }
    let read = |(series_id, scope, account, held): (i64, Box<str>, Account, Option<Held>)| {
        let account = fill(&snapshot, ScopeRef::new(series_id, &scope), account, held, moment)?;
        Ok((ScopeKey::from_store(&scope), account))
    };
    scopes.into_iter().map(read).collect()
}

fn fill(
    connection: &Connection,
    at: ScopeRef<'_>,
    mut account: Account,
    held: Option<Held>,
    Moment { run, now }: Moment,
) -> Result<Account> {
    let ranges = |sql: &str| ranges(connection, at, sql);
    let ledger = "SELECT first, last, '' FROM ledger WHERE series_id = ? AND scope = ?";
    account.issued = ranges(ledger)?.into_iter().map(|(lease, _)| lease).collect();
    for (range, reason) in ranges("SELECT first, last, reason FROM lost WHERE series_id = ? AND scope = ?")? {
        account.lost.extend(Reason::named(&reason).map(|reason| Missing { range, reason }));
    }
    let undelivered =
        "SELECT position, position, iif(in_doubt AND state <> 'voided', 'in doubt', state) FROM document
        WHERE series_id = ? AND scope = ? AND state IN ('dead', 'abandoned', 'voided')";
    for (range, state) in ranges(undelivered)? {
        account.undelivered.extend(reason_of(&state).map(|reason| Missing { range, reason }));
    }
    let pending = "SELECT position, position, state FROM document
        WHERE series_id = ? AND scope = ? AND state IN ('pending', 'reserved')";
    account.pending = ranges(pending)?.into_iter().map(|(lease, _)| lease).collect();
    let aside_to = "SELECT aside_to - 1, aside_to - 1, '' FROM cursor WHERE series_id = ? AND scope = ? AND aside_to > 0";
    account.aside_to = ranges(aside_to)?.first().map_or(0, |(last, _)| last.to());
    enter_pooled(connection, at, &mut account, run)?;
    let (with_clients, lost) = client_lease::of_scope(connection, at, now)?;
    account.with_clients = with_clients;
    account.lost.extend(lost);
    if let Some(held) = held {
        let left = held::left(connection, at, held, account.next)?;
        if held.run == run {
            account.held.extend(left.iter());
        } else {
            account.lost.extend(left.iter().map(|range| Missing { range, reason: Reason::CrashSkip }));
        }
    }
    Ok(account)
}

/// What is in a pool, or with a process that lives and fills it, is held.
fn enter_pooled(connection: &Connection, at: ScopeRef<'_>, account: &mut Account, run: i64) -> Result<()> {
    let pooled = "SELECT first, last, iif(state = 'pushed', '', CAST(run AS TEXT)) FROM pooled
        WHERE series_id = ? AND scope = ? AND state IN ('granted', 'pushed')";
    let ours = run.to_string();
    for (range, whose) in ranges(connection, at, pooled)? {
        if whose.is_empty() || whose == ours {
            account.held.push(range);
        } else {
            account.lost.push(Missing { range, reason: Reason::CrashSkip });
        }
    }
    Ok(())
}

/// Ranges of a scope, with what is said of each.
fn ranges(connection: &Connection, at: ScopeRef<'_>, sql: &str) -> Result<Vec<(Lease, String)>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![at.series_id, at.scope])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let lease = Lease::new(whole(row.get(0)?), whole(row.get(1)?) + 1);
        let said = row.get(2)?;
        found.extend(lease.map(|lease| (lease, said)));
    }
    Ok(found)
}

fn reason_of(state: &str) -> Option<Reason> {
    match state {
        "dead" => Some(Reason::OutboxDlq),
        "abandoned" => Some(Reason::Abandoned),
        "in doubt" => Some(Reason::DeliveryUnknown),
        "voided" => Some(Reason::Voided),
        _ => None,
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
    for (scope, missing) in scopes {
        let scope = scope.as_str();
        let mut statement = transaction
            .prepare_cached("SELECT first, reason, seen_at FROM gap WHERE series_id = ? AND scope = ?")?;
        let read = |row: &Row<'_>| Ok(((row.get(0)?, row.get(1)?), row.get(2)?));
        let seen = statement.query_map(params![series_id, scope], read)?;
        let seen: BTreeMap<(i64, String), i64> = seen.collect::<Result<_>>()?;
        if seen.is_empty() && missing.is_empty() {
            continue;
        }
        transaction
            .prepare_cached("DELETE FROM gap WHERE series_id = ? AND scope = ?")?
            .execute(params![series_id, scope])?;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO gap (series_id, scope, first, last, reason, seen_at) VALUES (?, ?, ?, ?, ?, ?)",
        )?;
        for Missing { range, reason } in missing {
            let (first, last) = (integer(range.from()), integer(range.to() - 1));
            let seen_at = seen.get(&(first, reason.name().to_owned())).copied().unwrap_or(now);
            insert.execute(params![series_id, scope, first, last, reason.name(), seen_at])?;
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
    let mut sql = "SELECT series.name, gap.scope, gap.first, gap.last, gap.reason, gap.seen_at
        FROM gap JOIN series ON series.id = gap.series_id WHERE true"
        .to_owned();
    let text = |text: &str| Value::Text(text.to_owned());
    let mut values = Vec::new();
    if let Some(series) = &of.series {
        sql.push_str(" AND series.name = ?");
        values.push(text(series.as_str()));
    }
    if let Some(scope) = &of.scope {
        sql.push_str(" AND gap.scope = ?");
        values.push(text(scope.as_str()));
    }
    if let Some((Place { series, scope }, first)) = after {
        sql.push_str(" AND (series.name, gap.scope, gap.first) > (?, ?, ?)");
        values.extend([text(series.as_str()), text(scope.as_str()), Value::Integer(integer(*first))]);
    }
    sql.push_str(" ORDER BY series.name, gap.scope, gap.first LIMIT ?");
    values.push(Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut gaps = Vec::new();
    while let Some(row) = rows.next()? {
        gaps.extend(gap(row)?);
    }
    Ok(gaps)
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
