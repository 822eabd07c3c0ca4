//! Reads pages for another store, one statement each. An index finds where the last page ended.

use bates_core::{
    DocumentState, Idempotency, MovedAdoptions, MovedDocument, MovedKey, Position, ScopeId, ScopeKey,
    SeriesName, StoreError,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::batch::sql::{get_position, to_i64};
use crate::error::Failure;
use crate::outbox::{list, to_limit};
use crate::session::Session;

/// Scope, position and number come from the document as long as it exists.
const KEYS: &str = "
    SELECT k.series, coalesce(d.scope, k.scope), k.caller, k.key, k.digest, k.document_id,
           coalesce(d.position, k.position), coalesce(d.number, k.number), coalesce(k.pruned_as, d.state)
    FROM (
        SELECT * FROM bates.idempotency AS page
        WHERE $1::text IS NULL OR (page.caller, page.series, page.key) > ($1, $2, $3)
        ORDER BY page.caller, page.series, page.key LIMIT $4
    ) AS k
    LEFT JOIN LATERAL (
        SELECT scope, position, number, state FROM bates.document WHERE document_id = k.document_id OFFSET 0
    ) AS d ON true
    ORDER BY k.caller, k.series, k.key";

pub(super) async fn adoptions(
    session: &Session,
    series: &SeriesName,
    after: Option<&(ScopeKey, Position)>,
    limit: usize,
) -> Result<Vec<MovedAdoptions>, Failure> {
    let sql = "SELECT scope, position FROM bates.adopted WHERE series = $1 AND (scope, position) > ($2, $3)
               ORDER BY scope, position LIMIT $4";
    // Every scope and position follows ("", -1).
    let (scope, last) =
        after.map_or(("", -1), |(scope, position)| (scope.as_str(), to_i64(position.value())));
    let mut page = Vec::new();
    for row in session.query(sql, &[&series.as_str(), &scope, &last, &to_limit(limit)]).await? {
        MovedAdoptions::add(&mut page, row.get(0), get_position(&row, 1));
    }
    Ok(page)
}

pub(super) async fn documents(
    session: &Session,
    after: Option<Uuid>,
    limit: usize,
    bytes: usize,
) -> Result<Vec<MovedDocument>, Failure> {
    let sql = format!(
        "SELECT {}, body, is_claimed FROM (
             SELECT *, sum(coalesce(octet_length(body), 0)) OVER (ORDER BY document_id)
                 - coalesce(octet_length(body), 0) AS before
             FROM (
                 SELECT * FROM bates.document WHERE $1::uuid IS NULL OR document_id > $1
                 ORDER BY document_id LIMIT $2
             ) AS page
         ) AS fitting WHERE before < $3 ORDER BY document_id",
        list::COLUMNS
    );
    let rows = session.query(&sql, &[&after, &to_limit(limit), &to_limit(bytes.max(1))]).await?;
    let read = |row: &Row| {
        let body = row.get::<_, Option<&str>>("body").map(Into::into);
        MovedDocument::new(list::read(row), body, row.get("is_claimed"))
    };
    Ok(rows.iter().map(read).collect())
}

pub(super) async fn keys(
    session: &Session,
    after: Option<&MovedKey>,
    limit: usize,
) -> Result<Vec<MovedKey>, Failure> {
    let caller = after.map(|after| &*after.idempotency.caller);
    let series = after.map(|after| after.scope_id.series.as_str());
    let key = after.map(|after| &*after.idempotency.key);
    session.query(KEYS, &[&caller, &series, &key, &to_limit(limit)]).await?.iter().map(moved_key).collect()
}

/// Fails if the document of a key was removed by hand: without the key, the same request would get a second number.
fn moved_key(row: &Row) -> Result<MovedKey, Failure> {
    let text = |column: usize| row.get::<_, &str>(column).into();
    let (scope, number) = (row.get::<_, Option<&str>>(1), row.get::<_, Option<&str>>(7));
    let digest = row.get::<_, &[u8]>(4).try_into().ok();
    let pruned_as =
        row.get::<_, Option<&str>>(8).and_then(DocumentState::from_name).map(DocumentState::pruned_as);
    let (Some(scope), Some(number), Some(digest), Some(pruned_as)) = (scope, number, digest, pruned_as)
    else {
        return Err(StoreError::KeyLost { series: text(0), key: text(3) }.into());
    };
    Ok(MovedKey {
        scope_id: ScopeId {
            series: row.get::<_, &str>(0).parse().expect("Bates writes only valid series names"),
            scope: ScopeKey::from_store(scope),
        },
        idempotency: Idempotency { caller: text(2), key: text(3), digest },
        document_id: row.get(5),
        position: get_position(row, 6),
        number: number.into(),
        pruned_as,
    })
}
