//! Inserts a batch with one statement, and decides what a failure means. Must never answer before the commit is on the
//! disk of the server, as far as its settings allow.

use bates_core::Delivery;
use deadpool_postgres::{Client, Transaction};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use super::table::Table;

pub(super) enum Failed {
    /// The server refuses one of the documents.
    Document(Box<str>),
    /// The table, the database or the connection failed.
    Sink(Box<str>),
    /// The connection failed, and the rows may have been committed.
    Commit(Box<str>),
}

pub(super) struct Insert {
    pub(super) table: Table,
    settings: String,
    sql: String,
}

const TYPES: [Type; 7] = [
    Type::UUID_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::INT8_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::TIMESTAMPTZ_ARRAY,
];

impl Insert {
    /// An existing row stays: the row of an event never changes, and an update would only make the table grow. The server
    /// enforces the timeout: otherwise each attempt would leave a statement that waits for a lock.
    pub(super) fn into(table: Table, timeout_ms: u64) -> Self {
        // The commit waits for the disk even if the settings of the server say otherwise.
        let settings = format!(
            "SELECT set_config('statement_timeout', '{timeout_ms}', true); \
             SELECT set_config('synchronous_commit', 'on', true) \
             WHERE current_setting('synchronous_commit') = 'off'"
        );
        let sql = format!(
            "INSERT INTO {table} (event, series, scope, position, number, document, created_at) \
             SELECT event, series, scope, position, number, document::jsonb, created_at \
             FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], \
             $7::timestamptz[]) AS given (event, series, scope, position, number, document, created_at) \
             ON CONFLICT (event) DO NOTHING"
        );
        Self { table, settings, sql }
    }

    pub(super) async fn run(&self, client: &mut Client, deliveries: &[Delivery]) -> Result<(), Failed> {
        let transaction = self.insert(client, deliveries).await.map_err(|error| self.judge(&error))?;
        // Without an error from the server, the rows may have been committed.
        let judge = |error: tokio_postgres::Error| match error.code() {
            Some(_) => self.judge(&error),
            None => Failed::Commit(reason(&error)),
        };
        transaction.commit().await.map_err(judge)
    }

    /// The statement is not prepared, so that it works behind PgBouncer.
    async fn insert<'c>(
        &self,
        client: &'c mut Client,
        deliveries: &[Delivery],
    ) -> Result<Transaction<'c>, tokio_postgres::Error> {
        let events: Vec<_> = deliveries.iter().map(|it| it.document_id).collect();
        let series: Vec<_> = deliveries.iter().map(|it| it.scope_id.series.as_str()).collect();
        let scopes: Vec<_> = deliveries.iter().map(|it| it.scope_id.scope.as_str()).collect();
        let positions: Vec<_> = deliveries.iter().map(|it| it.position.value().cast_signed()).collect();
        let numbers: Vec<_> = deliveries.iter().map(|it| &*it.number).collect();
        let documents: Vec<_> = deliveries.iter().map(|it| &*it.body).collect();
        let created: Vec<_> = deliveries.iter().map(|it| it.created).collect();
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
            [&events, &series, &scopes, &positions, &numbers, &documents, &created];
        let values: Vec<_> = values.into_iter().zip(TYPES).collect();
        let transaction = client.transaction().await?;
        transaction.batch_execute(&self.settings).await?;
        transaction.query_typed(&self.sql, &values).await?;
        Ok(transaction)
    }

    fn judge(&self, error: &tokio_postgres::Error) -> Failed {
        let Some(code) = error.code() else { return Failed::Sink(reason(error)) };
        if [SqlState::UNDEFINED_TABLE, SqlState::UNDEFINED_COLUMN, SqlState::INVALID_SCHEMA_NAME]
            .contains(code)
        {
            let definition = self.table.definition();
            return Failed::Sink(format!("{}; create the table with: {definition}", reason(error)).into());
        }
        // Bad data, a constraint, a limit of the program, and errors raised by a trigger.
        if ["22", "23", "54", "P0"].contains(&&code.code()[..2]) {
            Failed::Document(reason(error))
        } else {
            Failed::Sink(reason(error))
        }
    }
}

/// The message of the server, without the details that quote rows.
pub(crate) fn reason(error: &(dyn std::error::Error + 'static)) -> Box<str> {
    let innermost = std::iter::successors(Some(error), |&error| error.source()).last().unwrap_or(error);
    match innermost.downcast_ref::<tokio_postgres::error::DbError>() {
        Some(error) => format!("{} ({})", error.message(), error.code().code()).into(),
        None => innermost.to_string().into(),
    }
}
