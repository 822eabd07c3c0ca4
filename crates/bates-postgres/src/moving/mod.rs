//! What only a move needs: everything read, everything written as it was elsewhere, and the mark that keeps two
//! stores from serving.

mod read;
mod scopes;
mod write;

use bates_core::{
    Adopted, Kept, Mark, Movable, Page, Pinning, Request, ScopeKey, SeriesName, SetAside, StoreError,
};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::PostgresStore;
use crate::error::{Failed, OpenError};
use crate::session::Session;

impl Movable for PostgresStore {
    async fn definitions(&self) -> Result<Vec<Pinning>, StoreError> {
        self.done(|session| async move { definitions(&session).await }).await
    }

    async fn leaving(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> Result<Vec<Adopted>, StoreError> {
        let (series, after) = (&series, after.as_ref());
        self.done(|session| async move { read::leaving(&session, series, after, limit).await }).await
    }

    async fn all_aside(
        &self,
        series: SeriesName,
        after: Option<(ScopeKey, u64)>,
        limit: usize,
    ) -> Result<Vec<SetAside>, StoreError> {
        let (series, after) = (&series, after.as_ref());
        self.done(|session| async move { read::all_aside(&session, series, after, limit).await }).await
    }

    async fn kept(&self, after: Option<Uuid>, limit: usize, bytes: usize) -> Result<Vec<Kept>, StoreError> {
        self.done(|session| async move { read::kept(&session, after, limit, bytes).await }).await
    }

    async fn requests(&self, after: Option<Request>, limit: usize) -> Result<Vec<Request>, StoreError> {
        let after = after.as_ref();
        self.done(|session| async move { read::requests(&session, after, limit).await }).await
    }

    async fn adopt(&self, page: Page) -> Result<(), StoreError> {
        let (page, node) = (&page, self.node());
        self.done(|session| async move {
            match page {
                Page::Scopes(series, scopes) => scopes::adopt(&session, node, series, scopes).await,
                Page::Aside(series, scopes) => scopes::set_aside(&session, series, scopes).await,
                Page::Pools(series, pools) => write::pools(&session, series, pools).await,
                Page::Documents(kept) => write::documents(&session, kept).await,
                Page::Requests(requests) => write::requests(&session, requests).await,
                Page::Gaps(gaps) => write::gaps(&session, gaps).await,
                Page::Records(records) => write::records(&session, records).await,
            }
        })
        .await
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
        found.extend(crate::read::pinned(session, &name).await?);
    }
    Ok(found)
}

async fn marked(session: &Session) -> Result<Option<Mark>, Failed> {
    let rows = session.query_typed("SELECT mark, mark_store FROM bates.store", &[]).await?;
    let row = rows.first().ok_or(Failed::Refused(OpenError::Emptied))?;
    let store = || row.get::<_, &str>(1).into();
    Ok(row
        .get::<_, Option<&str>>(0)
        .map(|mark| if mark == "left" { Mark::Left(store()) } else { Mark::Arriving(store()) }))
}

/// Refuses to claim or to decide about documents, to write about pools, or to record, of a store that was left: nobody
/// would hear of it where they are now.
/// Asked in the transaction that has written them, which a mark waits for, or else is seen here.
pub(crate) async fn check_not_left(session: &Session) -> Result<(), Failed> {
    let rows = session.query_typed("SELECT stopped FROM bates.store WHERE mark = 'left'", &[]).await?;
    match rows.first() {
        None => Ok(()),
        Some(row) => {
            let told = row.get::<_, Option<&str>>(0).unwrap_or("this store was left");
            Err(StoreError::Poisoned(told.into()).into())
        }
    }
}

/// Invariant: when it is committed, no batch is under way that did not see it. Each batch enters itself into
/// `last_commit` with the statement that reads whether the store is stopped, so whoever locks that table waits for
/// all that read too early, and keeps out all that would. So it is with documents that are claimed or decided on, with
/// pools, and with records.
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
    session
        .batch_execute(
            "LOCK TABLE bates.last_commit, bates.document, bates.pool, bates.audit IN EXCLUSIVE MODE",
        )
        .await?;
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&kind, Type::TEXT), (&store.map(|store| &**store), Type::TEXT), (&stopped, Type::TEXT)];
    let rows = session.query_typed(sql, &parameters).await?;
    session.batch_execute("COMMIT").await?;
    if rows.is_empty() { Err(Failed::Refused(OpenError::Emptied)) } else { Ok(()) }
}
