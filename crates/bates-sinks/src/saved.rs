//! The documents that a user has in a PostgreSQL of their own: the numbers that a query of theirs gives. Must never
//! write there.

use std::path::PathBuf;
use std::pin::pin;

use bates_connect::Address;
use bates_core::{Reading, Saved};
use futures_util::TryStreamExt as _;
use serde::Deserialize;

use crate::description::SinkError;
use crate::postgres::{connector, parse, reason};
use crate::secret::{self, Secret};

const URL: &str = "documents.url";

/// Where a user's own documents are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentsDescription {
    /// `postgres://user:password@host:port/database?sslmode=…&sslrootcert=…`.
    pub url: Secret,
    /// A file with the password instead.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// What gives the number of each document, as its first column.
    pub query: String,
}

impl DocumentsDescription {
    /// Where they are, without the password.
    pub fn describe(&self) -> Result<String, SinkError> {
        Ok(parse(&self.url, URL)?.to_string())
    }

    /// The documents. Nothing is connected to yet.
    pub fn open(&self) -> Result<Box<dyn Saved>, SinkError> {
        let mut address = parse(&self.url, URL)?;
        if let Some(password) =
            secret::given(None, self.password_file.as_deref(), URL, "documents.password_file")?
        {
            address.config.password(password.reveal());
        }
        let tls = connector(&address, URL)?;
        if self.query.trim().is_empty() {
            return Err(SinkError::new("documents.query", "it is empty"));
        }
        Ok(Box::new(Table { address, tls, query: self.query.clone() }))
    }
}

struct Table {
    address: Address,
    tls: tokio_postgres_rustls::MakeRustlsConnect,
    query: String,
}

impl Saved for Table {
    fn numbers<'a>(&'a self, take: &'a mut (dyn FnMut(&str) + Send)) -> Reading<'a> {
        Box::pin(async move {
            let (client, connection) =
                self.address.config.connect(self.tls.clone()).await.map_err(|error| reason(&error))?;
            let running = tokio::spawn(connection);
            let read = async {
                // Whatever the query is, it changes nothing.
                client.batch_execute("BEGIN READ ONLY").await?;
                let rows = client.query_raw::<_, &str, _>(&self.query, []).await?;
                let mut rows = pin!(rows);
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
