//! The tables of the OpenG2P id-generator in PostgreSQL, `id_pool_…` for each ID type. Must never write there.

use std::pin::pin;

use bates_connect::Address;
use futures_util::TryStreamExt as _;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

use crate::connect;
use crate::error::{Failure, OpenError};

pub struct IdPools {
    client: Client,
    address: Address,
}

impl IdPools {
    pub async fn connect(address: &Address) -> Result<Self, OpenError> {
        let connected = address.config.connect(connect::connector(address)?).await;
        let (client, connection) = connected.map_err(|error| open_error(address, error))?;
        tokio::spawn(connection);
        Ok(Self { client, address: address.clone() })
    }

    /// Whether the table of an ID type has an identifier that was given out; `None` if the table does not exist.
    pub async fn has_taken(&self, id_type: &str) -> Result<Option<bool>, OpenError> {
        let table = table(id_type);
        let sql = "SELECT to_regclass($1) IS NOT NULL";
        let found = self.client.query_typed(sql, &[(&table, Type::TEXT)]).await;
        let found = found.map_err(|error| self.open_error(error))?;
        if !found.first().is_some_and(|row| row.get(0)) {
            return Ok(None);
        }
        let taken = format!("SELECT true FROM {table} WHERE status = 'TAKEN' LIMIT 1");
        let rows = self.client.query_typed(&taken, &[]).await.map_err(|error| self.open_error(error))?;
        Ok(Some(!rows.is_empty()))
    }

    /// Calls `take` with each identifier that was given out, in any order.
    pub async fn taken(&self, id_type: &str, mut take: impl FnMut(&str)) -> Result<(), OpenError> {
        let read = async {
            let sql = format!("SELECT id_value FROM {} WHERE status = 'TAKEN'", table(id_type));
            let mut rows = pin!(self.client.query_typed_raw(&sql, Vec::<(i32, Type)>::new()).await?);
            while let Some(row) = rows.try_next().await? {
                take(row.try_get(0)?);
            }
            Ok(())
        };
        read.await.map_err(|error| self.open_error(error))
    }

    fn open_error(&self, error: Error) -> OpenError {
        open_error(&self.address, error)
    }
}

fn open_error(address: &Address, error: Error) -> OpenError {
    Failure::from(error).into_open_error(address)
}

/// Names of ID types need no escaping; they are quoted all the same.
fn table(id_type: &str) -> String {
    format!("\"id_pool_{}\"", id_type.replace('"', "\"\""))
}
