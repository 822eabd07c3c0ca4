//! The user's own documents in a PostgreSQL database, for reconciliation: a query of the user returns their numbers. Must
//! never write there.

use std::path::PathBuf;
use std::pin::pin;

use bates_connect::Address;
use bates_core::{DocumentSource, ReadNumbersFuture};
use futures_util::TryStreamExt as _;
use serde::Deserialize;

use crate::description::SinkError;
use crate::postgres::{connector, parse, read_password, reason};
use crate::secret::Secret;

const URL: &str = "documents.url";

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentSourceDescription {
    /// `postgres://user:password@host:port/database?sslmode=…&sslrootcert=…`.
    pub url: Secret,
    /// A file with the password instead.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// Its first column has the number of each document.
    pub query: String,
}

impl DocumentSourceDescription {
    /// Without the password.
    pub fn describe(&self) -> Result<String, SinkError> {
        Ok(parse(&self.url, URL)?.to_string())
    }

    /// Does not connect yet.
    pub fn open(&self) -> Result<Box<dyn DocumentSource>, SinkError> {
        let mut address = parse(&self.url, URL)?;
        read_password(&mut address, self.password_file.as_deref(), URL, "documents.password_file")?;
        let tls = connector(&address, URL)?;
        if self.query.trim().is_empty() {
            return Err(SinkError::new("documents.query", "the query is empty"));
        }
        Ok(Box::new(Table { address, tls, query: self.query.clone() }))
    }
}

struct Table {
    address: Address,
    tls: tokio_postgres_rustls::MakeRustlsConnect,
    query: String,
}

impl DocumentSource for Table {
    fn numbers<'a>(&'a self, take: &'a mut (dyn FnMut(&str) + Send)) -> ReadNumbersFuture<'a> {
        Box::pin(async move {
            let (client, connection) =
                self.address.config.connect(self.tls.clone()).await.map_err(|error| reason(&error))?;
            let running = tokio::spawn(connection);
            let read = async {
                // The query must not change anything.
                client.batch_execute("BEGIN READ ONLY").await?;
                let mut rows = pin!(client.query_raw::<_, &str, _>(&self.query, []).await?);
                while let Some(row) = rows.try_next().await? {
                    if let Some(number) = row.try_get::<_, Option<&str>>(0)? {
                        take(number);
                    }
                }
                Ok::<_, tokio_postgres::Error>(())
            };
            let read = read.await.map_err(|error| reason(&error));
            running.abort();
            read
        })
    }
}
