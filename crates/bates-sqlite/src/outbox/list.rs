//! Reads documents: one, a page, or their count.

use bates_core::{Document, DocumentFilter, DocumentState, SeriesName};
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, Result, Row, params_from_iter};
use uuid::Uuid;

use crate::listed::glob_patterns;
use crate::write::{invalid_column, position, rows, scope_id, to_limit, to_u64};

/// The columns that [`read`] expects.
pub(crate) const COLUMNS: &str =
    "document_id, (SELECT name FROM series WHERE id = series_id), scope, position, number, state, attempts, last_error,
     created_at, updated_at, due_at, in_doubt, caller";

pub(super) struct Condition {
    pub(super) text: String,
    pub(super) values: Vec<Value>,
}

impl Condition {
    pub(super) fn of(filter: &DocumentFilter, after: Option<Uuid>) -> Self {
        let blob = |document_id: Uuid| Value::Blob(document_id.as_bytes().to_vec());
        let text = |text: &str| Value::Text(text.to_owned());
        let among = filter.among.patterns().map(|_| Value::Text(glob_patterns(&filter.among)));
        let conditions = [
            ("series_id IN (SELECT series.id FROM series, json_each(?) WHERE series.name GLOB value)", among),
            (
                "series_id = (SELECT id FROM series WHERE name = ?)",
                filter.series.as_ref().map(|name| text(name.as_str())),
            ),
            ("scope = ?", filter.scope.as_ref().map(|scope| text(scope.as_str()))),
            ("state = ?", filter.state.map(|state| text(state.name()))),
            ("number = ?", filter.number.as_deref().map(text)),
            ("document_id = ?", filter.document_id.map(blob)),
            ("document_id > ?", after.map(blob)),
        ];
        let mut condition = Self { text: "true".to_owned(), values: Vec::new() };
        for (sql, value) in conditions {
            if let Some(value) = value {
                condition.text.extend([" AND ", sql]);
                condition.values.push(value);
            }
        }
        condition
    }
}

pub(crate) fn documents(
    connection: &Connection,
    filter: &DocumentFilter,
    after: Option<Uuid>,
    limit: usize,
) -> Result<Vec<Document>> {
    let Condition { text, mut values } = Condition::of(filter, after);
    values.push(Value::Integer(to_limit(limit)));
    let sql = format!("SELECT {COLUMNS} FROM document WHERE {text} ORDER BY document_id LIMIT ?");
    rows(connection, &sql, params_from_iter(values), read)
}

pub(crate) fn read(row: &Row<'_>) -> Result<Document> {
    let moment = |millis: i64| Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    Ok(Document {
        id: Uuid::from_bytes(row.get(0)?),
        scope_id: scope_id(row, 1)?,
        position: position(row.get(3)?),
        number: row.get::<_, String>(4)?.into(),
        state: DocumentState::from_name(row.get_ref(5)?.as_str()?).ok_or_else(|| invalid_column(5))?,
        attempts: row.get(6)?,
        last_error: row.get::<_, Option<String>>(7)?.map(Into::into),
        created: moment(row.get(8)?),
        updated: moment(row.get(9)?),
        due: row.get::<_, Option<i64>>(10)?.map(moment),
        in_doubt: row.get(11)?,
        caller: row.get::<_, String>(12)?.into(),
    })
}

pub(crate) fn count(connection: &Connection) -> Result<Vec<(SeriesName, DocumentState, u64)>> {
    let sql = "SELECT series.name, document.state, count(*) FROM document JOIN series ON series.id = document.series_id
               GROUP BY series.name, document.state";
    let read = |row: &Row<'_>| {
        let series = row.get_ref(0)?.as_str()?.parse().map_err(|_| invalid_column(0))?;
        let state = DocumentState::from_name(row.get_ref(1)?.as_str()?).ok_or_else(|| invalid_column(1))?;
        Ok((series, state, to_u64(row.get(2)?)))
    };
    let mut counts = rows(connection, sql, [], read)?;
    counts.sort();
    Ok(counts)
}
