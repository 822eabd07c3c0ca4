//! A connection for one piece of work. It must never return to the pool with an open transaction: it is closed instead.

use std::ops::Deref;
use std::sync::Arc;

use deadpool_postgres::{Object, Pool};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use crate::connect::Settings;
use crate::error::Failure;
use crate::parameter::Parameter;
use crate::retry::with_retries;

pub(crate) struct Session {
    connection: Option<Object>,
    settings: Settings,
}

impl Session {
    pub(crate) async fn take(pool: &Pool, settings: Settings) -> Result<Self, Failure> {
        Ok(Self { connection: Some(pool.get().await?), settings })
    }

    /// The SQL that begins every transaction. It overrides settings of the session and the role, because PgBouncer shares
    /// sessions: commits are on disk, statements see earlier commits, and no lock or sleeping node blocks others forever.
    fn begin_sql(&self) -> String {
        let timeout = self.settings.timeout.as_millis();
        // Shorter than the time that others wait for its locks.
        let idle = timeout / 2;
        format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
             SET LOCAL synchronous_commit = on; \
             SET LOCAL statement_timeout = 0; \
             SET LOCAL lock_timeout = {timeout}; \
             SET LOCAL idle_in_transaction_session_timeout = {idle}"
        )
    }

    pub(crate) async fn query(&self, sql: &str, parameters: &[&dyn Parameter]) -> Result<Vec<Row>, Error> {
        self.query_typed(sql, &typed(parameters)).await
    }

    pub(crate) async fn execute(&self, sql: &str, parameters: &[&dyn Parameter]) -> Result<u64, Error> {
        self.execute_typed(sql, &typed(parameters)).await
    }

    pub(crate) async fn begin(&self) -> Result<(), Failure> {
        Ok(self.batch_execute(&self.begin_sql()).await?)
    }

    pub(crate) async fn commit(&self) -> Result<(), Failure> {
        Ok(self.batch_execute("COMMIT").await?)
    }

    pub(crate) async fn transact<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        self.begin().await?;
        let done = work.await?;
        self.commit().await?;
        Ok(done)
    }

    /// Runs one statement in a transaction of its own.
    pub(crate) async fn query_once(
        &self,
        sql: &str,
        parameters: &[&dyn Parameter],
    ) -> Result<Vec<Row>, Failure> {
        self.transact(async { Ok(self.query(sql, parameters).await?) }).await
    }

    /// Begins a transaction that reads one snapshot. It has no timeout, whatever the role sets.
    pub(crate) async fn begin_snapshot(&self) -> Result<(), Failure> {
        let sql = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0";
        Ok(self.batch_execute(sql).await?)
    }

    /// Returns the connection to the pool. Invariant: no transaction is open.
    pub(crate) fn give_back(mut self) {
        drop(self.connection.take());
    }
}

/// Runs work on a connection, and again after a transient failure: the work must be safe to run twice.
pub(crate) async fn with_session<T, F>(
    pool: &Pool,
    settings: Settings,
    work: impl Fn(Arc<Session>) -> F,
) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    with_retries(settings.timeout, || async {
        let session = Arc::new(Session::take(pool, settings).await?);
        let done = work(session.clone()).await?;
        if let Some(session) = Arc::into_inner(session) {
            session.give_back();
        }
        Ok(done)
    })
    .await
}

fn typed<'p>(parameters: &[&'p dyn Parameter]) -> Vec<(&'p (dyn ToSql + Sync), Type)> {
    parameters.iter().map(|parameter| (*parameter as &(dyn ToSql + Sync), parameter.kind())).collect()
}

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.connection.as_deref().expect("a session has its connection until it is given back")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(Object::take(connection));
        }
    }
}
