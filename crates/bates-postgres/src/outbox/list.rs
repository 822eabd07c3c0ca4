//! Reads documents: one, or a page of them. Each read is one statement and sees one snapshot.

use bates_core::{Document, DocumentFilter, DocumentState, ScopeId, ScopeKey, SeriesName};
use jiff::Timestamp;
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use super::to_limit;
use crate::batch::sql::get_position;
use crate::listed::like_patterns;
use crate::parameter::Parameter;
use crate::session::Session;

/// The columns that [`read`] expects. Times are microseconds since 1970.
pub(crate) const COLUMNS: &str = "document_id, series, scope, position, number, state, attempts, last_error,
    (extract(epoch FROM created_at) * 1000000)::bigint,
    (extract(epoch FROM updated_at) * 1000000)::bigint,
    (extract(epoch FROM due_at) * 1000000)::bigint, in_doubt, caller";

pub(super) struct Condition<'f> {
    pub(super) text: String,
    values: Vec<Box<dyn Parameter + Send + 'f>>,
}

impl<'f> Condition<'f> {
    pub(super) fn of(filter: &'f DocumentFilter, after: Option<Uuid>) -> Self {
        let text = |text: &'f str| -> Box<dyn Parameter + Send + 'f> { Box::new(text) };
        let id = |document_id: Uuid| -> Box<dyn Parameter + Send + 'f> { Box::new(document_id) };
        // PostgreSQL cannot store NUL, so no number contains one.
        let number = filter.number.as_deref().filter(|number| !number.contains('\0'));
        let among = like_patterns(&filter.among);
        let conditions = [
            (
                "series LIKE ANY",
                filter.among.patterns().map(|_| -> Box<dyn Parameter + Send + 'f> { Box::new(among) }),
            ),
            ("series =", filter.series.as_ref().map(|name| text(name.as_str()))),
            ("scope =", filter.scope.as_ref().map(|scope| text(scope.as_str()))),
            ("state =", filter.state.map(|state| text(state.name()))),
            ("number =", number.map(text)),
            ("document_id =", filter.document_id.map(id)),
            ("document_id >", after.map(id)),
        ];
        let can_match = filter.number.is_some() == number.is_some();
        let mut condition = Self { text: can_match.to_string(), values: Vec::new() };
        for (sql, value) in conditions {
            if let Some(value) = value {
                condition.values.push(value);
                let at = condition.values.len().to_string();
                condition.text.extend([" AND ", sql, " ($", &at, ")"]);
            }
        }
        condition
    }

    pub(super) fn parameters(&self) -> Vec<&dyn Parameter> {
        self.values.iter().map(|value| &**value as &dyn Parameter).collect()
    }
}

pub(super) async fn documents(
    session: &Session,
    filter: &DocumentFilter,
    after: Option<Uuid>,
    limit: usize,
) -> Result<Vec<Document>, Error> {
    let condition = Condition::of(filter, after);
    let sql = format!(
        "SELECT {COLUMNS} FROM bates.document WHERE {} ORDER BY document_id LIMIT {}",
        condition.text,
        to_limit(limit)
    );
    let rows = session.query(&sql, &condition.parameters()).await?;
    Ok(rows.iter().map(read).collect())
}

pub(crate) fn read(row: &Row) -> Document {
    Document {
        id: row.get(0),
        scope_id: ScopeId { series: name(row, 1), scope: ScopeKey::from_store(row.get(2)) },
        position: get_position(row, 3),
        number: row.get::<_, &str>(4).into(),
        state: state(row, 5),
        attempts: to_attempts(row.get(6)),
        last_error: row.get::<_, Option<&str>>(7).map(Into::into),
        created: moment(row.get(8)),
        updated: moment(row.get(9)),
        due: row.get::<_, Option<i64>>(10).map(moment),
        in_doubt: row.get(11),
        caller: row.get::<_, &str>(12).into(),
    }
}

pub(super) fn name(row: &Row, column: usize) -> SeriesName {
    row.get::<_, &str>(column).parse().expect("Bates writes only valid series names")
}

pub(super) fn state(row: &Row, column: usize) -> DocumentState {
    DocumentState::from_name(row.get(column)).expect("Bates writes only known states")
}

pub(super) fn moment(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

pub(super) fn to_attempts(count: i32) -> u32 {
    u32::try_from(count).unwrap_or(0)
}
