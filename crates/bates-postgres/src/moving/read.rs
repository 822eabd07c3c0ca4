//! Pages of the store as another one adopts them, one statement each. An index finds where the page before ended.

use bates_core::{
    DocumentState, Idempotency, MovedAdoptions, MovedDocument, MovedKey, Position, ScopeId, ScopeKey,
    SeriesName, StoreError,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::batch::sql::{integer, position};
use crate::error::Failed;
use crate::outbox::{bounded, list};
use crate::session::Session;

/// Scope, position and number are those of the document as long as it is there.
const REQUESTS: &str = "
    SELECT k.series, coalesce(d.scope, k.scope), k.caller, k.key, k.digest, k.document_id,
           coalesce(d.position, k.position), coalesce(d.number, k.number), coalesce(k.pruned_as, d.state)
    FROM (
        SELECT * FROM bates.idempotency AS known
        WHERE $1::text IS NULL OR (known.caller, known.series, known.key) > ($1, $2, $3)
        ORDER BY known.caller, known.series, known.key LIMIT $4
    ) AS k
    LEFT JOIN LATERAL (
        SELECT scope, position, number, state FROM bates.document WHERE document_id = k.document_id OFFSET 0
    ) AS d ON true
    ORDER BY k.caller, k.series, k.key";

pub(super) async fn all_adopted(
    session: &Session,
    series: &SeriesName,
    after: Option<&(ScopeKey, Position)>,
    limit: usize,
) -> Result<Vec<MovedAdoptions>, Failed> {
    let sql = "SELECT scope, position FROM bates.adopted WHERE series = $1 AND (scope, position) > ($2, $3)
               ORDER BY scope, position LIMIT $4";
    // No scope is smaller than the empty one, and no position than 0.
    let (scope, behind) =
        after.map_or(("", -1), |(scope, position)| (scope.as_str(), integer(position.value())));
    let mut page = Vec::new();
    for row in session.query(sql, &[&series.as_str(), &scope, &behind, &bounded(limit)]).await? {
        MovedAdoptions::add(&mut page, row.get(0), position(&row, 1));
    }
    Ok(page)
}

pub(super) async fn kept(
    session: &Session,
    after: Option<Uuid>,
    limit: usize,
    bytes: usize,
) -> Result<Vec<MovedDocument>, Failed> {
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
    let rows = session.query(&sql, &[&after, &bounded(limit), &bounded(bytes.max(1))]).await?;
    let read = |row: &Row| {
        let body = row.get::<_, Option<&str>>("body").map(Into::into);
        MovedDocument::new(list::read(row), body, row.get("is_claimed"))
    };
    Ok(rows.iter().map(read).collect())
}

pub(super) async fn requests(
    session: &Session,
    after: Option<&MovedKey>,
    limit: usize,
) -> Result<Vec<MovedKey>, Failed> {
    let caller = after.map(|after| &*after.idempotency.caller);
    let series = after.map(|after| after.scope_id.series.as_str());
    let key = after.map(|after| &*after.idempotency.key);
    session.query(REQUESTS, &[&caller, &series, &key, &bounded(limit)]).await?.iter().map(request).collect()
}

/// A key whose document was removed by hand is an error: without the key, the same request would get a second number.
fn request(row: &Row) -> Result<MovedKey, Failed> {
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
            series: row.get::<_, &str>(0).parse().expect("only names were written"),
            scope: ScopeKey::from_store(scope),
        },
        idempotency: Idempotency { caller: text(2), key: text(3), digest },
        document_id: row.get(5),
        position: position(row, 6),
        number: number.into(),
        pruned_as,
    })
}
