//! Which right a route needs, and what a caller with it may reach. `routes.rs` is the table.
//!
//! Must never let a request reach a handler without a right: [`needs`] wraps every route that is not public.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use axum::extract::{FromRequestParts, Request};
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use bates_core::{
    Actor, Denial, ErrorCode, Machine, Permissions, Right, ScopeId, ScopeKey, ScopeParams, SeriesName, Store,
    StoreResult,
};
use bates_pattern::Date;
use futures_util::future::Either;
use tower_layer::Layer;
use tower_service::Service;
use utoipa_axum::router::UtoipaMethodRouter;

use super::problem::{Problem, Result};
use crate::Caller;

/// Routes that a caller reaches only with this right.
pub(super) fn needs<S: Clone + Send + Sync + 'static>(
    right: Right,
    (schemas, paths, methods): UtoipaMethodRouter<S>,
) -> UtoipaMethodRouter<S> {
    (schemas, paths, methods.layer(GuardLayer(right)))
}

#[derive(Clone)]
pub(super) struct GuardLayer(pub(super) Right);

impl<T> Layer<T> for GuardLayer {
    type Service = Guard<T>;

    fn layer(&self, inner: T) -> Guard<T> {
        Guard { inner, right: self.0 }
    }
}

#[derive(Clone)]
pub(super) struct Guard<T> {
    inner: T,
    right: Right,
}

impl<T: Service<Request, Response = Response, Error = Infallible>> Service<Request> for Guard<T> {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<Ready<Result<Response, Infallible>>, T::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        match self.admit(&request) {
            Ok(caller) => {
                request.extensions_mut().insert(Permit { caller, right: self.right });
                Either::Right(self.inner.call(request))
            }
            Err(problem) => Either::Left(ready(Ok(problem.into_response()))),
        }
    }
}

impl<T> Guard<T> {
    fn admit(&self, request: &Request) -> Result<Caller> {
        // No request comes here without admission.
        let caller = request.extensions().get::<Caller>().ok_or(Denial::MissingRight(self.right))?;
        check_right(caller.permissions(), self.right, request.uri().path())?;
        let is_change = request.method() != Method::GET && !matches!(self.right, Right::Read | Right::Take);
        if is_change && let Err(wait) = caller.count_change() {
            let detail = "this tenant has made 300 changes at once, and may make one more each second";
            return Err(Problem::new(ErrorCode::RATE_EXCEEDED, detail).with_retry_after(wait));
        }
        Ok(caller.clone())
    }
}

/// Without the right, a series in the path is still told apart: one that the caller may not read does not exist for it.
fn check_right(permissions: &Permissions, right: Right, path: &str) -> Result<(), Denial> {
    if permissions.has(right) {
        return Ok(());
    }
    let series = path.strip_prefix("/v1/series/").and_then(|rest| rest.split('/').next());
    match series.and_then(|name| name.parse::<SeriesName>().ok()) {
        Some(series) => permissions.check(right, &series),
        None => Err(Denial::MissingRight(right)),
    }
}

/// The caller of a request, and the right that its route needs, which the caller has for some series.
#[derive(Clone, Debug)]
pub(in crate::http) struct Permit {
    pub(super) caller: Caller,
    right: Right,
}

pub(super) fn ended_secret() -> Problem {
    let detail = "the secret of this request was revoked, replaced or has expired";
    Problem::new(ErrorCode::UNAUTHORIZED, detail)
}

impl Permit {
    pub(super) fn permissions(&self) -> &Permissions {
        self.caller.permissions()
    }

    /// Refuses a caller whose secret was revoked or has expired since its request began.
    pub(super) fn check_valid(&self) -> Result<()> {
        if self.caller.has_ended() { Err(ended_secret()) } else { Ok(()) }
    }

    /// Takes `count` numbers within the rate and quota of the caller; `got` is how many of them it got.
    pub(super) async fn take<S: Store, T, E>(
        &self,
        machine: &Machine<S>,
        count: u64,
        take: impl Future<Output = Result<T, E>>,
        got: impl FnOnce(&T) -> u64,
    ) -> Result<T>
    where
        Problem: From<E>,
    {
        let take = async { Ok(take.await?) };
        self.caller.take_within_allowance(machine, count, take, got).await
    }

    pub(super) fn actor(&self) -> Actor<'_> {
        Actor::http(self.caller.name())
    }

    pub(super) fn check_series(&self, series: &SeriesName) -> Result<(), Denial> {
        self.permissions().check(self.right, series)
    }

    /// Whether the caller may use every scope of the series as the route does.
    pub(super) fn sees_all_of(&self, series: &SeriesName) -> bool {
        self.permissions().has_all_scopes() && self.check_series(series).is_ok()
    }

    /// Whether the caller may use this scope as the route does.
    pub(super) fn check_scope_id(&self, scope_id: &ScopeId) -> Result<(), Denial> {
        self.check_series(&scope_id.series)?;
        self.permissions().check_scope_key(&scope_id.scope)
    }

    /// A scope that the request names, if the caller may use it.
    pub(super) fn scope<'a>(
        &self,
        parameters: &'a [(&'a str, &'a str)],
        date: Option<Date>,
    ) -> Result<ScopeParams<'a>, Denial> {
        if !self.permissions().has_all_scopes() {
            self.permissions().check_scope(parameters)?;
        }
        Ok(ScopeParams { parameters, date })
    }
}

impl Permit {
    /// A page of the items whose scope the caller may see. Reads on until the page is full, so that the `after` of a page
    /// never names an item of another scope.
    pub(super) async fn page<T, A, F: Future<Output = StoreResult<Vec<T>>>>(
        &self,
        limit: usize,
        mut after: Option<A>,
        fetch: impl Fn(Option<A>, usize) -> F,
        after_of: fn(&T) -> A,
        scope_of: fn(&T) -> &ScopeKey,
    ) -> StoreResult<Vec<T>> {
        let mut shown = Vec::new();
        loop {
            let items = fetch(after, limit).await?;
            let is_last = items.len() < limit || self.permissions().has_all_scopes();
            after = items.last().map(after_of);
            shown.extend(
                items.into_iter().filter(|item| self.permissions().check_scope_key(scope_of(item)).is_ok()),
            );
            if is_last || shown.len() >= limit {
                shown.truncate(limit);
                return Ok(shown);
            }
        }
    }
}

impl<C: Send + Sync> FromRequestParts<C> for Permit {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &C) -> Result<Self> {
        let missing = || Problem::new(ErrorCode::FORBIDDEN, "this path has no right assigned to it");
        parts.extensions.get::<Self>().cloned().ok_or_else(missing)
    }
}
