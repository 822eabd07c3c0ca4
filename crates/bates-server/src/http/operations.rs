//! `/v1/operations`: who changed what; and the chains of the log, for a reader that verifies them.

use axum::Json;
use axum::extract::Request;
use axum::http::Extensions;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use bates_api::{ChainList, Operation, OperationPage};
use bates_core::{
    ChainHead, ErrorCode, OperationFilter, OperationKind, OperationRecord, OperationViewer, SeriesSet, Store,
    StoreResult,
};

use super::audit::{parse_after, parse_time};
use super::meter;
use super::permit::Permit;
use super::problem::{JsonResult, Problem, Result};
use super::query::{self, ListQuery, bad_value, parse_printable};
use super::routes::{Context, Path};

/// The texts of a page. It may be exceeded by a batch.
const PAGE_BYTES_MAX: usize = 1024 * 1024;
/// Records that are read together.
const BATCH_RECORDS: usize = 32;
/// Three texts of 4 KiB, each with the digest of a longer text, and the other fields.
const RECORD_BYTES_MAX: usize = 14 * 1024;
/// The fields of a record besides its texts.
const FIELDS_BYTES: usize = 512;
/// The records, and their encoding in a buffer that grows.
const COPIES_MAX: usize = 4;

/// What a caller sees of the log: everything if its rights are not limited, otherwise operations on its series and its own.
fn viewer_of(permit: &Permit) -> Option<OperationViewer> {
    let permissions = permit.permissions();
    let none = || SeriesSet::Patterns([].into());
    (!permissions.is_unlimited()).then(|| OperationViewer {
        series: if permissions.has_all_scopes() { permissions.series().clone() } else { none() },
        caller: permit.caller.name().into(),
    })
}

fn to_api_record(record: OperationRecord) -> Operation {
    let OperationRecord { chain, number, previous, digest, operation } = record;
    Operation {
        chain: Some(chain.into()),
        number: Some(number),
        previous: Some(previous.to_string()),
        digest: Some(digest.to_string()),
        ..to_api_operation(operation)
    }
}

/// Without its place in the chain, which tells how much other callers change.
fn to_api_operation(operation: bates_core::Operation) -> Operation {
    let bates_core::Operation { id, at, caller, channel, kind, series, subject, before, after } = operation;
    Operation {
        at: at.to_string(),
        who: caller.into(),
        how: channel.name().to_owned(),
        kind: kind.name().to_owned(),
        series: series.map(|series| series.to_string()),
        subject: subject.into(),
        before: before.map(Into::into),
        after: after.map(Into::into),
        id: id.to_string(),
        chain: None,
        number: None,
        previous: None,
        digest: None,
    }
}

/// List operations
///
/// Every change that callers made other than by taking numbers: of series, tokens, floors, documents and pools. Oldest
/// first. A page ends after about a megabyte, so it may have fewer operations than `limit`. A caller with limited rights sees operations on its series, and its own, without their places in a chain. With
/// `Accept: text/csv` the page is CSV.
#[utoipa::path(get, path = "/v1/operations", tag = "callers",
    params(("series" = Option<String>, Query, description = "Only operations on this series"),
        ("who" = Option<String>, Query, description = "Only operations of this caller"),
        ("kind" = Option<String>, Query, description = "Only this kind", example = "series_changed"),
        ("since" = Option<String>, Query, description = "Only from this time on: RFC 3339, or a date"),
        ("until" = Option<String>, Query, description = "Only before this time: RFC 3339, or a date"),
        ("after" = Option<String>, Query, description = "The `after` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 10_000, description = "The maximum number of operations: 1 to 10,000, by default 1,000")),
    responses((status = 200, description = "A page of operations", content((OperationPage = "application/json"), (String = "text/csv"))),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is invalid, or the store failed")))]
pub(super) async fn list_operations<S: Store>(
    context: Context<S>,
    permit: Permit,
    request: Request,
) -> Result<Response> {
    let (Parts { uri, headers, extensions, .. }, _) = request.into_parts();
    let mut query = ListQuery::parse(&uri, query::LARGE_PAGE)?;
    let filter = OperationFilter {
        seen_by: viewer_of(&permit),
        series: query.take_listed_series(&context.machine, &permit).await?,
        caller: query.take("who", |who| parse_printable("who", who))?.map(Into::into),
        kind: query.take("kind", parse_kind)?,
        since: query.take("since", |since| parse_time("since", since))?,
        until: query.take("until", |until| parse_time("until", until))?,
    };
    query.check_rest(&["series", "who", "kind", "since", "until", "after", "limit"])?;
    let after = query.after(parse_after)?;
    let fetch = |after, limit| context.machine.operations(filter.clone(), after, limit);
    let after_of = |last: &OperationRecord| Some((last.operation.at, last.operation.id));
    let Page { records, is_last } = read_page(&extensions, query.limit, after, fetch, after_of).await?;
    let key =
        |last: &OperationRecord| format!("{}|{}", last.operation.at.as_microsecond(), last.operation.id);
    let after = records.last().filter(|_| !is_last).map(key);
    let is_cut = !is_last && records.len() < query.limit;
    let is_limited = !permit.permissions().is_unlimited();
    let describe = |record: OperationRecord| {
        if is_limited { to_api_operation(record.operation) } else { to_api_record(record) }
    };
    let operations: Vec<Operation> = records.into_iter().map(describe).collect();
    if let Some(csv) = query::csv_response(&headers, Operation::CSV_HEADER, &operations, Operation::csv_row) {
        return if is_cut { Err(cut_table(operations.len())) } else { Ok(csv) };
    }
    Ok(Json(OperationPage { operations, after }).into_response())
}

/// A table does not say where the next page begins, so one that lacks rows would look complete.
fn cut_table(count: usize) -> Problem {
    let detail = format!(
        "the operations have more text than the {PAGE_BYTES_MAX} bytes of a page: set limit to {count} or less, or ask for \
         JSON, whose pages say where the next one begins"
    );
    Problem::new(ErrorCode::BAD_COUNT, detail)
}

struct Page {
    records: Vec<OperationRecord>,
    is_last: bool,
}

/// Reads records in batches until the page is full. Memory for them is reserved before each batch.
async fn read_page<A, F: Future<Output = StoreResult<Vec<OperationRecord>>>>(
    extensions: &Extensions,
    limit: usize,
    mut after: A,
    fetch: impl Fn(A, usize) -> F,
    after_of: impl Fn(&OperationRecord) -> A,
) -> Result<Page> {
    let (mut records, mut bytes) = (Vec::new(), 0);
    loop {
        let count = BATCH_RECORDS.min(limit - records.len());
        meter::reserve(extensions, (bytes + count * RECORD_BYTES_MAX) * COPIES_MAX)?;
        let batch = fetch(after, count).await?;
        let is_last = batch.len() < count;
        bytes += batch.iter().map(text_bytes).sum::<usize>();
        records.extend(batch);
        match records.last() {
            Some(last) if !is_last && records.len() < limit && bytes < PAGE_BYTES_MAX => {
                after = after_of(last);
            }
            _ => return Ok(Page { records, is_last }),
        }
    }
}

fn text_bytes(OperationRecord { chain, operation, .. }: &OperationRecord) -> usize {
    let optional = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
    let texts = operation.subject.len() + optional(&operation.before) + optional(&operation.after);
    FIELDS_BYTES + chain.len() + operation.caller.len() + texts
}

fn parse_kind(text: &str) -> Result<OperationKind> {
    OperationKind::from_name(text).ok_or_else(|| {
        let kinds = OperationKind::ALL.map(OperationKind::name).join(", ");
        bad_value("kind", text, &format!("is not a kind: expected one of {kinds}"))
    })
}

fn check_sees_chains(permit: &Permit) -> Result<()> {
    if permit.permissions().is_unlimited() {
        return Ok(());
    }
    let detail = "a chain has operations on all series: its reader needs rights that are not limited";
    Err(Problem::new(ErrorCode::FORBIDDEN, detail))
}

/// List the chains of the operations log
///
/// Each host has a chain. Keep their heads elsewhere: they show whether the log was rewritten since.
#[utoipa::path(get, path = "/v1/operations/chains", tag = "callers",
    responses((status = 200, body = ChainList),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The caller may not, or the store failed")))]
pub(super) async fn list_chains<S: Store>(context: Context<S>, permit: Permit) -> JsonResult<ChainList> {
    check_sees_chains(&permit)?;
    let chains = context.machine.chains().await?.into_iter();
    let chains = chains.map(|ChainHead { chain, number, digest }| bates_api::ChainHead {
        chain: chain.into(),
        number,
        digest: digest.to_string(),
    });
    Ok(Json(ChainList { chains: chains.collect() }))
}

/// List the records of a chain
///
/// In the order of their numbers. The digest of each record covers its fields and the digest of the one before. A page ends
/// after about a megabyte, so it may have fewer records than `limit`.
#[utoipa::path(get, path = "/v1/operations/chains/{chain}", tag = "callers",
    params(("chain" = String, Path, description = "The name of the chain"),
        ("after" = Option<String>, Query, description = "The `after` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 10_000, description = "The maximum number of records: 1 to 10,000, by default 1,000")),
    responses((status = 200, body = OperationPage),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The caller may not, the query is invalid, or the store failed")))]
pub(super) async fn list_chain_records<S: Store>(
    context: Context<S>,
    permit: Permit,
    Path(chain): Path<String>,
    request: Request,
) -> JsonResult<OperationPage> {
    let (Parts { uri, extensions, .. }, _) = request.into_parts();
    check_sees_chains(&permit)?;
    let query = ListQuery::parse(&uri, query::LARGE_PAGE)?;
    query.check_rest(&["after", "limit"])?;
    // A store keeps numbers as signed integers.
    let after = query.after(|after| after.parse().ok().filter(|after| i64::try_from(*after).is_ok()))?;
    let fetch = |after, limit| context.machine.chain_records(&chain, after, limit);
    let after = after.unwrap_or_default();
    let page = read_page(&extensions, query.limit, after, fetch, |last| last.number).await?;
    let Page { records, is_last } = page;
    let after = records.last().filter(|_| !is_last).map(|last| last.number.to_string());
    let operations = records.into_iter().map(to_api_record).collect();
    Ok(Json(OperationPage { operations, after }))
}
