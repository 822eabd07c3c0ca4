//! Callers in the embedded store: their tokens and quotas.

use std::time::Duration;

use bates_core::{
    CallerStore, CallerToken, DrawnQuota, Operation, PreviousSecret, QuotaDraw, QuotaRequest, StoreResult,
    TokenChange,
};
use jiff::Timestamp;
use rusqlite::{Connection, Result, Row, Transaction, params};

use crate::SqliteStore;
use crate::operation;
use crate::write::{execute, invalid_column, row, rows, to_i64, to_u64};

const COLUMNS: &str = "name, permissions, digest, previous_digest, previous_ends, created_at, expires_at";

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

impl CallerStore for SqliteStore {
    async fn tokens(&self) -> StoreResult<Vec<CallerToken>> {
        let sql = format!("SELECT {COLUMNS} FROM token ORDER BY name");
        self.read(|connection| rows(connection, &sql, [], read))
    }

    async fn change_token(&self, change: TokenChange, operation: Operation) -> StoreResult<bool> {
        self.write(move |transaction| {
            let fits = change.fits(find(transaction, &change.name)?.as_ref());
            if fits {
                execute(transaction, "DELETE FROM token WHERE name = ?", [&*change.name])?;
                change.after.iter().try_for_each(|token| insert(transaction, token))?;
                operation::append(transaction, Some(&operation))?;
            }
            Ok(fits)
        })
        .await
    }

    async fn draw_quota(&self, request: QuotaRequest) -> StoreResult<QuotaDraw> {
        self.write_now(move |transaction, now| Ok(draw(transaction, &request, now)?)).await
    }

    async fn drawn_quotas(&self) -> StoreResult<Vec<DrawnQuota>> {
        let sql = "SELECT caller, day, drawn FROM quota ORDER BY caller";
        let read = |row: &Row<'_>| {
            Ok(DrawnQuota { caller: row.get(0)?, day: row.get(1)?, drawn: to_u64(row.get(2)?) })
        };
        self.read(|connection| rows(connection, sql, [], read))
    }
}

fn find(connection: &Connection, name: &str) -> Result<Option<CallerToken>> {
    row(connection, &format!("SELECT {COLUMNS} FROM token WHERE name = ?"), [name], read)
}

pub(crate) fn insert(transaction: &Transaction<'_>, token: &CallerToken) -> Result<()> {
    let CallerToken { name, grant, digest, previous, created, expires } = token;
    let sql = format!("INSERT OR REPLACE INTO token ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)");
    let previous_digest = previous.map(|previous| previous.digest);
    let previous_ends = previous.map(|previous| previous.ends.as_microsecond());
    let (created, expires) = (created.as_microsecond(), expires.map(Timestamp::as_microsecond));
    let values = params![name, grant, digest, previous_digest, previous_ends, created, expires];
    execute(transaction, &sql, values).map(drop)
}

fn read(row: &Row<'_>) -> Result<CallerToken> {
    let time = |column: usize, micros: Option<i64>| {
        micros.map(Timestamp::from_microsecond).transpose().map_err(|_| invalid_column(column))
    };
    let previous = row.get::<_, Option<[u8; 32]>>(3)?.zip(time(4, row.get(4)?)?);
    Ok(CallerToken {
        name: row.get::<_, String>(0)?.into(),
        grant: row.get::<_, String>(1)?.into(),
        digest: row.get(2)?,
        previous: previous.map(|(digest, ends)| PreviousSecret { digest, ends }),
        created: time(5, row.get(5)?)?.ok_or_else(|| invalid_column(5))?,
        expires: time(6, row.get(6)?)?,
    })
}

/// A clock that was set back draws from the day that was drawn from last: a day is never begun twice.
fn draw(transaction: &Transaction<'_>, request: &QuotaRequest, now: i64) -> Result<QuotaDraw> {
    let QuotaRequest { caller, quota, needed, slice } = request;
    let sql = "SELECT day, drawn FROM quota WHERE caller = ?";
    let last = row(transaction, sql, [caller], |row| Ok((row.get::<_, i64>(0)?, to_u64(row.get(1)?))))?;
    let today = now.div_euclid(DAY_MS);
    let (day, drawn) = last.filter(|(day, _)| *day >= today).unwrap_or((today, 0));
    let granted = QuotaDraw::decide(drawn, *quota, *needed, *slice);
    put_quota(transaction, &DrawnQuota { caller: caller.clone(), day, drawn: drawn + granted })?;
    let ends = u64::try_from((day + 1) * DAY_MS - now).unwrap_or_default();
    Ok(QuotaDraw { granted, day_ends_in: Duration::from_millis(ends) })
}

pub(crate) fn put_quota(transaction: &Transaction<'_>, quota: &DrawnQuota) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO quota (caller, day, drawn) VALUES (?, ?, ?)";
    execute(transaction, sql, params![quota.caller, quota.day, to_i64(quota.drawn)]).map(drop)
}
