//! Callers in the shared store: their tokens and quotas. Days are those of the database.

use std::time::Duration;

use bates_core::{
    CallerStore, CallerToken, DrawnQuota, Operation, PreviousSecret, QuotaDraw, QuotaRequest, StoreResult,
    TokenChange,
};
use jiff::Timestamp;
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::audit::micros;
use crate::batch::sql::{get_u64, to_i64};
use crate::error::Failure;
use crate::moving::{check_not_left, lock_unmarked};
use crate::operation;
use crate::outbox::without_nul;
use crate::parameter::Parameter;
use crate::session::Session;

/// The columns that [`read`] expects.
const SELECT: &str = "SELECT name, permissions, digest, previous_digest,
        (extract(epoch FROM previous_ends) * 1000000)::bigint, (extract(epoch FROM created_at) * 1000000)::bigint,
        (extract(epoch FROM expires_at) * 1000000)::bigint
    FROM bates.token";

const INSERT: &str = "
    INSERT INTO bates.token (name, permissions, digest, previous_digest, previous_ends, created_at, expires_at)
    VALUES ($1, $2, $3, $4, 'epoch'::timestamptz + $5 * interval '1 microsecond',
        'epoch'::timestamptz + $6 * interval '1 microsecond', 'epoch'::timestamptz + $7 * interval '1 microsecond')
    ON CONFLICT (name) DO UPDATE SET permissions = excluded.permissions, digest = excluded.digest,
        previous_digest = excluded.previous_digest, previous_ends = excluded.previous_ends,
        created_at = excluded.created_at, expires_at = excluded.expires_at";

impl CallerStore for PostgresStore {
    async fn tokens(&self) -> StoreResult<Vec<CallerToken>> {
        Ok(self.query(&format!("{SELECT} ORDER BY name"), &[]).await?.iter().map(read).collect())
    }

    async fn change_token(&self, change: TokenChange, operation: Operation) -> StoreResult<bool> {
        let (change, operation) = (&change, &operation);
        self.with_session(|session| async move {
            session.transact(change_token(&session, change, operation)).await
        })
        .await
    }

    async fn draw_quota(&self, request: QuotaRequest) -> StoreResult<QuotaDraw> {
        let request = &request;
        self.with_session(|session| async move { session.transact(draw(&session, request)).await }).await
    }

    async fn drawn_quotas(&self) -> StoreResult<Vec<DrawnQuota>> {
        let sql = "SELECT caller, (day - DATE '1970-01-01')::bigint, drawn FROM bates.quota ORDER BY caller";
        let read = |row: &Row| DrawnQuota { caller: row.get(0), day: row.get(1), drawn: get_u64(row, 2) };
        Ok(self.query(sql, &[]).await?.iter().map(read).collect())
    }
}

/// The row of the store is locked until the commit, so changes of tokens come one after the other.
async fn change_token(
    session: &Session,
    change: &TokenChange,
    operation: &Operation,
) -> Result<bool, Failure> {
    lock_unmarked(session).await?;
    let rows = session.query(&format!("{SELECT} WHERE name = $1"), &[&change.name]).await?;
    if !change.fits(rows.first().map(read).as_ref()) {
        return Ok(false);
    }
    match &change.after {
        Some(token) => insert(session, token).await?,
        None => {
            session.query("DELETE FROM bates.token WHERE name = $1", &[&change.name]).await?;
        }
    }
    session.query("UPDATE bates.store SET revision = revision + 1", &[]).await?;
    operation::append(session, Some(operation)).await?;
    Ok(true)
}

pub(crate) async fn insert(session: &Session, token: &CallerToken) -> Result<(), Failure> {
    let CallerToken { name, grant, digest, previous, created, expires } = token;
    let previous_digest = previous.as_ref().map(|previous| &previous.digest[..]);
    let ends = previous.map(|previous| micros(previous.ends));
    let parameters: [&dyn Parameter; 7] =
        [name, grant, &&digest[..], &previous_digest, &ends, &micros(*created), &expires.map(micros)];
    session.query(INSERT, &parameters).await?;
    Ok(())
}

fn read(row: &Row) -> CallerToken {
    let time = |micros: i64| Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX);
    let digest = |bytes: &[u8]| bytes.try_into().unwrap_or_default();
    let previous = row.get::<_, Option<&[u8]>>(3).zip(row.get::<_, Option<i64>>(4));
    CallerToken {
        name: row.get::<_, &str>(0).into(),
        grant: row.get::<_, &str>(1).into(),
        digest: digest(row.get(2)),
        previous: previous.map(|(bytes, ends)| PreviousSecret { digest: digest(bytes), ends: time(ends) }),
        created: time(row.get(5)),
        expires: row.get::<_, Option<i64>>(6).map(time),
    }
}

/// A clock that was set back draws from the day that was drawn from last: a day is never begun twice.
async fn draw(session: &Session, request: &QuotaRequest) -> Result<QuotaDraw, Failure> {
    let QuotaRequest { caller, quota, needed, slice } = request;
    let caller = without_nul(caller);
    let begin = "INSERT INTO bates.quota AS stored (caller, day, drawn)
                 VALUES ($1, (now() AT TIME ZONE 'UTC')::date, 0)
                 ON CONFLICT (caller) DO UPDATE SET
                     drawn = CASE WHEN stored.day < excluded.day THEN 0 ELSE stored.drawn END,
                     day = greatest(stored.day, excluded.day)
                 RETURNING drawn,
                     (extract(epoch FROM (day + 1)::timestamp - (now() AT TIME ZONE 'UTC')) * 1000)::bigint";
    let rows = session.query(begin, &[&caller]).await?;
    let (drawn, ends) = rows.first().map_or((0, 0), |row| (get_u64(row, 0), get_u64(row, 1)));
    let granted = QuotaDraw::decide(drawn, *quota, *needed, *slice);
    let sql = "UPDATE bates.quota SET drawn = $2 WHERE caller = $1";
    session.query(sql, &[&caller, &to_i64(drawn + granted)]).await?;
    check_not_left(session).await?;
    Ok(QuotaDraw { granted, day_ends_in: Duration::from_millis(ends) })
}

pub(crate) async fn put_quota(session: &Session, quota: &DrawnQuota) -> Result<(), Failure> {
    let sql =
        "INSERT INTO bates.quota (caller, day, drawn) VALUES ($1, DATE '1970-01-01' + $2::bigint::int, $3)
               ON CONFLICT (caller) DO UPDATE SET day = excluded.day, drawn = excluded.drawn";
    session.query(sql, &[&without_nul(&quota.caller), &quota.day, &to_i64(quota.drawn)]).await?;
    Ok(())
}
