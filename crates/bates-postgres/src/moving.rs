//! What only a move needs: everything read, everything written as it was elsewhere, and the mark that keeps two
//! stores from serving.

use bates_core::{Adopted, Mark, Movable, Pinning, SeriesName, StoreError};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::PostgresStore;
use crate::batch::sql::{self, integer};
use crate::error::{Failed, OpenError};
use crate::read;
use crate::session::Session;

impl Movable for PostgresStore {
    async fn definitions(&self) -> Result<Vec<Pinning>, StoreError> {
        self.done(|session| async move { definitions(&session).await }).await
    }

    async fn adopt(&self, series: SeriesName, scopes: Vec<Adopted>) -> Result<(), StoreError> {
        let (series, scopes, node) = (&series, &*scopes, self.node());
        self.done(|session| async move { adopt(&session, node, series, scopes).await }).await
    }

    async fn marked(&self) -> Result<Option<Mark>, StoreError> {
        self.done(|session| async move {
            let mark = marked(&session).await?;
            // A store that has stopped for another reason is not moved: what it knows may be too little.
            if mark.is_none() {
                self.ask(&session).await?;
            }
            Ok(mark)
        })
        .await
    }

    async fn mark(&self, mark: Option<Mark>) -> Result<(), StoreError> {
        let mark = mark.as_ref();
        self.done(|session| async move { put_mark(&session, mark).await }).await
    }
}

async fn definitions(session: &Session) -> Result<Vec<Pinning>, Failed> {
    let rows = session.query_typed("SELECT name FROM bates.series ORDER BY name", &[]).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let name: SeriesName = row.get::<_, &str>(0).parse().expect("only names were written");
        found.extend(read::pinned(session, &name).await?);
    }
    Ok(found)
}

/// One transaction for all of them; a cursor that is here already never falls.
async fn adopt(session: &Session, node: Uuid, series: &SeriesName, scopes: &[Adopted]) -> Result<(), Failed> {
    let sql = "INSERT INTO bates.cursor AS found (series, scope, next, version)
               SELECT $1, * FROM UNNEST($2, $3, $4)
               ON CONFLICT (series, scope) DO UPDATE SET
                   next = greatest(found.next, excluded.next),
                   version = greatest(found.version, excluded.version)
               RETURNING (xmax = 0)";
    let name = series.as_str();
    session.begin().await?;
    if sql::lock_series(session, &[name]).await?.is_empty() {
        return Err(StoreError::UnknownSeries(name.into()).into());
    }
    let keys: Vec<&str> = scopes.iter().map(|adopted| adopted.scope.as_str()).collect();
    let nexts: Vec<i64> = scopes.iter().map(|adopted| integer(adopted.cursor.next)).collect();
    let versions: Vec<i64> = scopes.iter().map(|adopted| integer(adopted.cursor.version)).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
        (&name, Type::TEXT),
        (&keys, Type::TEXT_ARRAY),
        (&nexts, Type::INT8_ARRAY),
        (&versions, Type::INT8_ARRAY),
    ];
    let rows = session.query_typed(sql, &parameters).await?;
    let made = rows.iter().filter(|row| row.get(0)).count() as u64;
    sql::count_scopes(session, &[(name, made)]).await?;
    write_ledger(session, node, name, scopes).await?;
    Ok(session.batch_execute("COMMIT").await?)
}

async fn write_ledger(session: &Session, node: Uuid, series: &str, scopes: &[Adopted]) -> Result<(), Failed> {
    let sql = "INSERT INTO bates.ledger (series, scope, first, last, node, batch)
               SELECT $1, issued.*, $5, $6 FROM UNNEST($2, $3, $4) AS issued
               ON CONFLICT (series, scope, first) DO UPDATE SET last = excluded.last";
    let ranges = scopes.iter().flat_map(|adopted| adopted.ledger.iter().map(|lease| (&adopted.scope, lease)));
    let (mut keys, mut firsts, mut lasts) = (Vec::new(), Vec::new(), Vec::new());
    for (scope, lease) in ranges {
        keys.push(scope.as_str());
        firsts.push(integer(lease.from()));
        lasts.push(integer(lease.to() - 1));
    }
    let batch = Uuid::now_v7();
    let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
        (&series, Type::TEXT),
        (&keys, Type::TEXT_ARRAY),
        (&firsts, Type::INT8_ARRAY),
        (&lasts, Type::INT8_ARRAY),
        (&node, Type::UUID),
        (&batch, Type::UUID),
    ];
    session.query_typed(sql, &parameters).await?;
    Ok(())
}

async fn marked(session: &Session) -> Result<Option<Mark>, Failed> {
    let rows = session.query_typed("SELECT mark, mark_store FROM bates.store", &[]).await?;
    let row = rows.first().ok_or(Failed::Refused(OpenError::Emptied))?;
    let store = || row.get::<_, &str>(1).into();
    Ok(row
        .get::<_, Option<&str>>(0)
        .map(|mark| if mark == "left" { Mark::Left(store()) } else { Mark::Arriving(store()) }))
}

/// Invariant: when it is committed, no batch is under way that did not see it. Each batch enters itself into
/// `last_commit` with the statement that reads whether the store is stopped, so whoever locks that table waits for
/// all that read too early, and keeps out all that would.
async fn put_mark(session: &Session, mark: Option<&Mark>) -> Result<(), Failed> {
    let sql = "UPDATE bates.store SET mark = $1, mark_store = $2, stopped = $3 RETURNING true";
    let (kind, store, stopped) = match mark {
        None => (None, None, None),
        Some(Mark::Left(to)) => {
            let told =
                format!("this store was left for {to}, and numbering goes on there: it is not served again");
            (Some("left"), Some(to), Some(told))
        }
        Some(Mark::Arriving(from)) => {
            let told = format!(
                "this store is being filled from {from}: run `bates move-store` again, which finishes it"
            );
            (Some("arriving"), Some(from), Some(told))
        }
    };
    session.begin().await?;
    session.batch_execute("LOCK TABLE bates.last_commit IN EXCLUSIVE MODE").await?;
    if let Some(Mark::Left(_)) = mark {
        check_outbox(session).await?;
    }
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&kind, Type::TEXT), (&store.map(|store| &**store), Type::TEXT), (&stopped, Type::TEXT)];
    let rows = session.query_typed(sql, &parameters).await?;
    session.batch_execute("COMMIT").await?;
    if rows.is_empty() { Err(Failed::Refused(OpenError::Emptied)) } else { Ok(()) }
}

/// Documents and keys are not copied. What is still to be delivered or decided would be forgotten with them, gaps
/// would lose their reasons, and the same request would get a second number: so a store that has any is not left.
async fn check_outbox(session: &Session) -> Result<(), Failed> {
    let sql = "SELECT EXISTS (SELECT FROM bates.document WHERE state NOT IN ('delivered', 'confirmed'))
                   OR EXISTS (SELECT FROM bates.idempotency)";
    let rows = session.query_typed(sql, &[]).await?;
    if rows.iter().any(|row| row.get(0)) {
        let told = "it has documents or idempotency keys, and those cannot be moved yet";
        return Err(StoreError::Unavailable(told.into()).into());
    }
    Ok(())
}
