//! `/v1/tokens`: callers that are made at run time. A secret is in one answer, and nowhere else.

use std::time::Duration;

use axum::Json;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bates_api::{IssuedToken, RotationRequest, Token, TokenGrant, TokenPage, TokenRequest};
use bates_core::{
    CallerLimits, CallerToken, ErrorCode, Permissions, Right, Store, Timestamp, TokenError, is_caller_name,
};

use super::permit::Permit;
use super::problem::{JsonResult, Problem, Result};
use super::query::{self, ListQuery, truncate};
use super::request::{JsonBody, OptionalJsonBody};
use super::routes::{Context, Path};
use crate::access::{build_permissions, digest};

const DAY_S: u64 = 24 * 60 * 60;
const OVERLAP_S_MAX: u64 = 30 * DAY_S;
const EXPIRY_S_MAX: u64 = 36_500 * DAY_S;

/// Every node keeps the grants of all tokens in memory.
const GRANT_BYTES_MAX: usize = 4_096;

/// Begins every secret, so that scanners for leaked secrets can find it.
const SECRET_PREFIX: &str = "bates_";

/// A secret of 256 random bits.
fn new_secret() -> Result<String> {
    let mut bytes = [0; 32];
    let no_randomness = |error| {
        Problem::new(ErrorCode::STORE_UNAVAILABLE, format!("the system gives no random bytes: {error}"))
    };
    getrandom::fill(&mut bytes).map_err(no_randomness)?;
    Ok(format!("{SECRET_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// An answer with a secret, which no cache and no log of a proxy should keep.
fn issued(status: StatusCode, token: Token, secret: String) -> Response {
    let no_store = [(header::CACHE_CONTROL, "no-store")];
    (status, no_store, Json(IssuedToken { token, secret })).into_response()
}

fn bad_token(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::BAD_TOKEN, detail)
}

fn to_api_token(token: &CallerToken, grant: TokenGrant) -> Token {
    Token {
        name: token.name.to_string(),
        grant,
        origin: "store".to_owned(),
        created: Some(token.created.to_string()),
        expires: token.expires.map(|expires| expires.to_string()),
        previous_ends: token.previous.map(|previous| previous.ends.to_string()),
    }
}

/// The grant of a token, if this caller manages it: a caller manages only tokens that may do at most what it may itself.
fn managed_grant(permit: &Permit, text: &str) -> Option<TokenGrant> {
    let grant: TokenGrant = serde_json::from_str(text).ok()?;
    let permissions = build_permissions(&grant).ok()?;
    permit.permissions().covers(&permissions).then_some(grant)
}

/// A token that this caller manages; all others do not exist for it.
async fn find_token<S: Store>(
    context: &Context<S>,
    permit: &Permit,
    name: &str,
) -> Result<(CallerToken, TokenGrant)> {
    let unknown = || TokenError::Unknown(truncate(name).into());
    let token = context.machine.find_token(name).await.map_err(|error| match error {
        TokenError::Unknown(_) => unknown(),
        error => error,
    })?;
    let is_own =
        permit.permissions().is_unlimited() || is_below(permit, name) || name == permit.caller.name();
    let grant = managed_grant(permit, &token.grant).filter(|_| is_own).ok_or_else(unknown)?;
    Ok((token, grant))
}

fn check_covers(permit: &Permit, permissions: &Permissions) -> Result<()> {
    let is_limited = !permit.permissions().is_unlimited();
    if is_limited && permissions.has(Right::Define) {
        let detail =
            "a caller with limited rights makes no tokens that define: each would have limits of its own";
        return Err(Problem::new(ErrorCode::FORBIDDEN, detail));
    }
    if permit.permissions().rates() != CallerLimits::default() {
        let detail =
            "a caller with a rate or a quota makes no tokens: each would have a rate and a quota of its own";
        return Err(Problem::new(ErrorCode::FORBIDDEN, detail));
    }
    let Some(what) = permit.permissions().first_beyond(permissions) else { return Ok(()) };
    let detail = format!("the token would have more {what} than the caller that makes it: limit it likewise");
    Err(Problem::new(ErrorCode::FORBIDDEN, detail))
}

/// Add a token
///
/// The answer has its secret, which is never shown again. Every node accepts it within a second. A caller gives a token at
/// most the rights, series, scopes, rate and quota that it has itself.
#[utoipa::path(post, path = "/v1/tokens", tag = "callers",
    request_body = TokenRequest,
    responses((status = 201, body = IssuedToken, description = "The token with its secret"),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "No token was added")))]
pub(super) async fn add_token<S: Store>(
    context: Context<S>,
    permit: Permit,
    JsonBody(TokenRequest { name, grant, expires_in_s }): JsonBody<TokenRequest>,
) -> Result<Response> {
    if !is_caller_name(&name) {
        let rule = "a lower-case letter, then up to 63 of a-z, 0-9, _, - and ., and not a reserved word";
        return Err(bad_token(format!("name is {:?}; expected {rule}", truncate(&name))));
    }
    check_name_is_own(&permit, &name)?;
    if context.access.is_open() {
        let detail = "this server has no secret, so every caller has every right and a token would protect nothing: \
                      configure `secret` or `tokens` first";
        return Err(Problem::new(ErrorCode::FORBIDDEN, detail));
    }
    let permissions = build_permissions(&grant).map_err(bad_token)?;
    check_covers(&permit, &permissions)?;
    if context.access.configured_tokens().iter().any(|(configured, _)| *configured == name) {
        return Err(TokenError::InFile(name.into()).into());
    }
    let expires = expiry(&permit, context.machine.now(), expires_in_s)?;
    let stored_grant = to_stored_grant(&grant)?;
    let secret = new_secret()?;
    let token = CallerToken {
        name: name.into(),
        grant: stored_grant,
        digest: digest(secret.as_bytes()),
        previous: None,
        created: to_micros(context.machine.now()),
        expires,
    };
    let is_limited = !permit.permissions().is_unlimited();
    context.machine.add_token(token.clone(), is_limited, permit.actor()).await?;
    context.apply_tokens();
    Ok(issued(StatusCode::CREATED, to_api_token(&token, grant), secret))
}

/// A caller with limited rights names tokens below its own name: it must not learn which other names exist, or take the
/// name, and so the leases and keys, of another caller.
fn check_name_is_own(permit: &Permit, name: &str) -> Result<()> {
    if permit.permissions().is_unlimited() || is_below(permit, name) {
        return Ok(());
    }
    let (own, name) = (permit.caller.name(), truncate(name));
    Err(bad_token(format!("name is {name:?}; a caller with limited rights names its tokens {own}.…")))
}

/// Whether a name begins with that of the caller and a dot.
fn is_below(permit: &Permit, name: &str) -> bool {
    name.strip_prefix(permit.caller.name()).is_some_and(|rest| rest.starts_with('.'))
}

/// The grant as the store keeps it.
fn to_stored_grant(grant: &TokenGrant) -> Result<Box<str>> {
    let text = serde_json::to_string(grant).expect("all keys of a grant are strings");
    if text.len() > GRANT_BYTES_MAX {
        let length = text.len();
        return Err(bad_token(format!(
            "the grant has {length} bytes as JSON; the limit is {GRANT_BYTES_MAX}"
        )));
    }
    Ok(text.into())
}

/// A token ends no later than the one that makes it.
fn expiry(permit: &Permit, now: Timestamp, seconds: Option<u64>) -> Result<Option<Timestamp>> {
    let Some(seconds) = seconds else { return Ok(permit.caller.expires()) };
    if !(1..=EXPIRY_S_MAX).contains(&seconds) {
        return Err(bad_token(format!("expires_in_s is {seconds}; expected 1 to {EXPIRY_S_MAX}")));
    }
    let expires =
        now.checked_add(Duration::from_secs(seconds)).map_err(|error| bad_token(error.to_string()))?;
    Ok(Some(to_micros(permit.caller.expires().map_or(expires, |own| own.min(expires)))))
}

/// Stores keep times to the microsecond.
fn to_micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

/// List tokens
///
/// Those of the configuration file and of the store, without their secrets. A caller sees the tokens that may do at most
/// what it may itself.
#[utoipa::path(get, path = "/v1/tokens", tag = "callers",
    params(("after" = Option<String>, Query, description = "The `after` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000, description = "The maximum number of tokens: 1 to 1,000, by default 100")),
    responses((status = 200, body = TokenPage),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "The query is invalid, or the store failed")))]
pub(super) async fn list_tokens<S: Store>(
    context: Context<S>,
    permit: Permit,
    uri: Uri,
) -> JsonResult<TokenPage> {
    let query = ListQuery::parse(&uri, query::SMALL_PAGE)?;
    query.check_rest(&["after", "limit"])?;
    let after = query.after(|after| Some(after.to_owned()))?;
    let in_file = context.access.configured_tokens().into_iter().filter_map(|(name, grant)| {
        let permissions = build_permissions(&grant).ok()?;
        let origin = "file".to_owned();
        let token = Token { name, grant, origin, created: None, expires: None, previous_ends: None };
        permit.permissions().covers(&permissions).then_some(token)
    });
    let stored = context.machine.tokens();
    let in_store =
        stored.iter().filter_map(|token| Some(to_api_token(token, managed_grant(&permit, &token.grant)?)));
    let mut tokens: Vec<Token> = in_file.chain(in_store).collect();
    tokens.sort_by(|one, other| one.name.cmp(&other.name));
    tokens.retain(|token| after.as_ref().is_none_or(|after| token.name > *after));
    tokens.truncate(query.limit);
    let after = query.next_after(&tokens, |last| last.name.clone());
    Ok(Json(TokenPage { tokens, after }))
}

/// Give a token a new secret
///
/// The secret before is accepted too until the overlap ends; an older one ends now.
#[utoipa::path(post, path = "/v1/tokens/{name}/rotate", tag = "callers",
    params(("name" = String, Path, description = "The name of the token", example = "acme")),
    request_body(content = Option<RotationRequest>),
    responses((status = 200, body = IssuedToken, description = "The token with its new secret"),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "Nothing changed")))]
pub(super) async fn rotate_token<S: Store>(
    context: Context<S>,
    permit: Permit,
    Path(name): Path<String>,
    OptionalJsonBody(RotationRequest { overlap_s }): OptionalJsonBody<RotationRequest>,
) -> Result<Response> {
    let overlap = overlap_s.unwrap_or(DAY_S);
    if overlap > OVERLAP_S_MAX {
        return Err(bad_token(format!("overlap_s is {overlap}; expected 0 to {OVERLAP_S_MAX}")));
    }
    let (token, grant) = find_token(&context, &permit, &name).await?;
    let (secret, overlap) = (new_secret()?, Duration::from_secs(overlap));
    let digest = digest(secret.as_bytes());
    let rotated = context.machine.rotate_token(token, digest, overlap, permit.actor()).await?;
    context.apply_tokens();
    Ok(issued(StatusCode::OK, to_api_token(&rotated, grant), secret))
}

/// Revoke a token
///
/// Its secrets are refused at once by this server, and within a second by every node; connections that used them end their
/// authentication. A later token of its name takes over its idempotency keys, leases and reservations.
#[utoipa::path(delete, path = "/v1/tokens/{name}", tag = "callers",
    params(("name" = String, Path, description = "The name of the token", example = "acme")),
    responses((status = 200, body = Token, description = "The token as it was"),
        (status = "default", body = bates_api::Problem, content_type = "application/problem+json", description = "Nothing changed")))]
pub(super) async fn revoke_token<S: Store>(
    context: Context<S>,
    permit: Permit,
    Path(name): Path<String>,
) -> JsonResult<Token> {
    let (token, grant) = find_token(&context, &permit, &name).await?;
    let revoked = to_api_token(&token, grant);
    context.machine.revoke_token(token, permit.actor()).await?;
    context.apply_tokens();
    Ok(Json(revoked))
}
