//! The port to the series: pins, descriptions, promises and floors.

use bates_core::{
    COUNTED_SCOPES_MAX, Definition, DescriptionChange, Operation, PinOutcome, Promise, PromiseChange,
    SeriesName, SeriesStore, StoreResult, StoreTotals,
};
use rusqlite::{Row, params};
use uuid::Uuid;

use crate::SqliteStore;
use crate::write::{self, rows, to_i64, to_u64};
use crate::{operation, pin};

impl SeriesStore for SqliteStore {
    fn identity(&self) -> Uuid {
        self.identity
    }

    async fn totals(&self) -> StoreResult<StoreTotals> {
        self.merge_new_scopes().await?;
        self.read(|connection| {
            let sql = "SELECT count(*), coalesce(sum(scopes), 0) FROM series";
            let (series, scopes) =
                connection.query_row(sql, [], |row| Ok((to_u64(row.get(0)?), to_u64(row.get(1)?))))?;
            if scopes > COUNTED_SCOPES_MAX {
                return Ok(StoreTotals { series, scopes, granted: None });
            }
            let sql = "SELECT coalesce(sum(next - start), 0) FROM cursor JOIN series ON id = series_id";
            let granted = connection.query_row(sql, [], |row| row.get(0).map(to_u64))?;
            Ok(StoreTotals { series, scopes, granted: Some(granted) })
        })
    }

    async fn pin(&self, definition: Definition, fresh_key: Option<Vec<u8>>) -> StoreResult<PinOutcome> {
        self.write(move |transaction| pin::pin(transaction, &definition, fresh_key.as_deref())).await
    }

    async fn describe(
        &self,
        series: SeriesName,
        change: DescriptionChange,
        operation: Option<Operation>,
    ) -> StoreResult<bool> {
        self.write(move |transaction| {
            let fits = write::describe(transaction, &series, &change)?;
            operation::append(transaction, operation.as_ref().filter(|_| fits))?;
            Ok(fits)
        })
        .await
    }

    async fn definition(&self, series: SeriesName) -> StoreResult<Option<Definition>> {
        let pinned = self.read(|connection| pin::pinned(connection, &series))?;
        Ok(pinned.map(|(definition, _)| definition))
    }

    async fn descriptions(&self) -> StoreResult<Vec<(SeriesName, Box<str>)>> {
        let sql = "SELECT name, description FROM series WHERE description IS NOT NULL ORDER BY name";
        let read = |row: &Row<'_>| {
            let name = row.get_ref(0)?.as_str()?.parse().expect("Bates writes only valid series names");
            Ok((name, row.get::<_, String>(1)?.into()))
        };
        self.read(|connection| rows(connection, sql, [], read))
    }

    async fn change_promise(
        &self,
        series: SeriesName,
        change: PromiseChange,
        described: Option<DescriptionChange>,
        operation: Option<Operation>,
    ) -> StoreResult<bool> {
        self.write(move |transaction| {
            let is_changed = pin::change_promise(transaction, &series, change, described.as_ref())?;
            operation::append(transaction, operation.as_ref().filter(|_| is_changed))?;
            Ok(is_changed)
        })
        .await
    }

    async fn promises(&self) -> StoreResult<Vec<(SeriesName, Promise)>> {
        self.read(pin::promises)
    }

    async fn series_floors(&self) -> StoreResult<Vec<(SeriesName, u64)>> {
        let sql = "SELECT name, floor FROM series WHERE floor > 0 ORDER BY name";
        let read = |row: &Row<'_>| {
            let name = row.get_ref(0)?.as_str()?.parse().expect("Bates writes only valid series names");
            Ok((name, to_u64(row.get(1)?)))
        };
        self.read(|connection| rows(connection, sql, [], read))
    }

    async fn raise_series_floor(&self, series: SeriesName, floor: u64) -> StoreResult<()> {
        self.write(move |transaction| {
            let sql = "UPDATE series SET floor = max(floor, ?) WHERE name = ?";
            let raised = write::execute(transaction, sql, params![to_i64(floor), series.as_str()])?;
            if raised == 0 { Err(write::unknown(&series).into()) } else { Ok(()) }
        })
        .await
    }

    async fn probe(&self) -> StoreResult<()> {
        self.write_beside_cursors(write::probe).await
    }
}
