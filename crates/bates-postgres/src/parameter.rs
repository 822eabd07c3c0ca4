//! Values of statements, each sent with its type: no statement is prepared, so that all work behind PgBouncer.

use std::borrow::Cow;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use crate::session::Session;

/// A value of a statement.
pub(crate) trait Parameter: ToSql + Sync {
    fn sql_type(&self) -> Type;
}

/// A type of values, alone and as an array.
pub(crate) trait Scalar: ToSql + Sync {
    const TYPES: [Type; 2];
}

impl Scalar for &str {
    const TYPES: [Type; 2] = [Type::TEXT, Type::TEXT_ARRAY];
}

impl Scalar for Cow<'_, str> {
    const TYPES: [Type; 2] = [Type::TEXT, Type::TEXT_ARRAY];
}

impl Scalar for &[u8] {
    const TYPES: [Type; 2] = [Type::BYTEA, Type::BYTEA_ARRAY];
}

impl Scalar for bool {
    const TYPES: [Type; 2] = [Type::BOOL, Type::BOOL_ARRAY];
}

impl Scalar for i32 {
    const TYPES: [Type; 2] = [Type::INT4, Type::INT4_ARRAY];
}

impl Scalar for i64 {
    const TYPES: [Type; 2] = [Type::INT8, Type::INT8_ARRAY];
}

impl Scalar for f64 {
    const TYPES: [Type; 2] = [Type::FLOAT8, Type::FLOAT8_ARRAY];
}

impl Scalar for Uuid {
    const TYPES: [Type; 2] = [Type::UUID, Type::UUID_ARRAY];
}

impl<T: Scalar> Scalar for Option<T> {
    const TYPES: [Type; 2] = T::TYPES;
}

impl<T: Scalar> Parameter for T {
    fn sql_type(&self) -> Type {
        let [alone, _] = T::TYPES;
        alone
    }
}

impl<T: Scalar> Parameter for Vec<T> {
    fn sql_type(&self) -> Type {
        let [_, array] = T::TYPES;
        array
    }
}

impl Session {
    /// The rows that a statement answers with.
    pub(crate) async fn rows(&self, sql: &str, parameters: &[&dyn Parameter]) -> Result<Vec<Row>, Error> {
        self.query_typed(sql, &typed(parameters)).await
    }

    /// Runs a statement; answers how many rows it has written.
    pub(crate) async fn run(&self, sql: &str, parameters: &[&dyn Parameter]) -> Result<u64, Error> {
        self.execute_typed(sql, &typed(parameters)).await
    }
}

fn typed<'p>(parameters: &[&'p dyn Parameter]) -> Vec<(&'p (dyn ToSql + Sync), Type)> {
    parameters.iter().map(|value| (*value as &(dyn ToSql + Sync), value.sql_type())).collect()
}
