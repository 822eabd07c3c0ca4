//! A connection for one piece of work. Must never go back to the pool with a transaction open: it is closed instead.

use std::ops::Deref;

use deadpool_postgres::{Object, Pool};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use crate::connect::Settings;
use crate::error::Failed;
use crate::parameter::Parameter;

pub(crate) struct Session {
    connection: Option<Object>,
    settings: Settings,
}

impl Session {
    pub(crate) async fn take(pool: &Pool, settings: Settings) -> Result<Self, Failed> {
        Ok(Self { connection: Some(pool.get().await?), settings })
    }

    /// Begins every transaction. It overrides what the session or its role has set, because PgBouncer shares sessions: a
    /// commit is on disk, a statement sees earlier commits, and neither a lock nor a sleeping node blocks others for ever.
    pub(crate) fn opening(&self) -> String {
        let patience = self.settings.patience.as_millis();
        // Shorter than others wait for its locks.
        let idle = patience / 2;
        format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
             SET LOCAL synchronous_commit = on; \
             SET LOCAL statement_timeout = 0; \
             SET LOCAL lock_timeout = {patience}; \
             SET LOCAL idle_in_transaction_session_timeout = {idle}"
        )
    }

    pub(crate) async fn query(&self, sql: &str, parameters: &[&dyn Parameter]) -> Result<Vec<Row>, Error> {
        self.query_typed(sql, &typed(parameters)).await
    }

    pub(crate) async fn execute(&self, sql: &str, parameters: &[&dyn Parameter]) -> Result<u64, Error> {
        self.execute_typed(sql, &typed(parameters)).await
    }

    pub(crate) async fn begin(&self) -> Result<(), Failed> {
        Ok(self.batch_execute(&self.opening()).await?)
    }

    pub(crate) async fn commit(&self) -> Result<(), Failed> {
        Ok(self.batch_execute("COMMIT").await?)
    }

    pub(crate) async fn transact<T>(
        &self,
        work: impl Future<Output = Result<T, Failed>>,
    ) -> Result<T, Failed> {
        self.begin().await?;
        let done = work.await?;
        self.commit().await?;
        Ok(done)
    }

    /// One statement in a transaction of its own.
    pub(crate) async fn query_once(&self, sql: &str, of: &[&dyn Parameter]) -> Result<Vec<Row>, Failed> {
        self.transact(async { Ok(self.query(sql, of).await?) }).await
    }

    /// Begins a transaction that reads one moment of the database. It may read for long, whatever the role allows.
    pub(crate) async fn begin_snapshot(&self) -> Result<(), Failed> {
        let sql = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0";
        Ok(self.batch_execute(sql).await?)
    }

    /// Gives the connection back. Invariant: no transaction is open.
    pub(crate) fn give_back(mut self) {
        drop(self.connection.take());
    }
}

fn typed<'p>(parameters: &[&'p dyn Parameter]) -> Vec<(&'p (dyn ToSql + Sync), Type)> {
    parameters.iter().map(|parameter| (*parameter as &(dyn ToSql + Sync), parameter.kind())).collect()
}

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.connection.as_deref().expect("it is there until the session is given back")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(Object::take(connection));
        }
    }
}
