//! The series and scopes that a list is limited to. Refuses a name that nothing has: with it a list would be empty, and
//! look as if nothing was missing.

use std::collections::BTreeSet;
use std::sync::Arc;

use bates_pattern::{Reset, nearest};

use super::Machine;
use crate::caller::Permissions;
use crate::code::ErrorCode;
use crate::scope::{ScopeFilter, ScopeId, ScopeKey, ScopeKeyError};
use crate::series::{SeriesEntry, SeriesName};
use crate::store::{Store, StoreError};

/// What a caller asks a list for.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListRequest<'a> {
    pub series: Option<&'a SeriesName>,
    /// Some parameters of the scopes, or all.
    pub parameters: &'a [(&'a str, &'a str)],
    pub period: Option<&'a str>,
    /// Parameters of the list itself, which a misspelt one may mean.
    pub own_parameters: &'a [&'a str],
}

/// Why a list cannot be shown. A series that the caller may not read is refused as one that does not exist.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    #[error("there is no series {series:?}{}", suggest(.nearest.as_deref()))]
    UnknownSeries { series: Box<str>, nearest: Option<Box<str>> },
    /// `hint` names the parameter that was probably meant, or those that there are.
    #[error("unknown parameter {parameter:?}: {hint}")]
    UnknownParameter { parameter: Box<str>, hint: Box<str> },
    #[error("there is no period {0:?}: {1}")]
    UnknownPeriod(Box<str>, &'static str),
    #[error("no number was ever issued in the scope {:?}", .0.as_str())]
    UnknownScope(ScopeKey),
    #[error(transparent)]
    Key(#[from] ScopeKeyError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Names of parameters that an error shows: there may be thousands of series.
const NAMES_SHOWN_MAX: usize = 20;

fn shortened(text: &str) -> Box<str> {
    text.chars().take(64).collect::<String>().into()
}

fn suggest(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!(": did you mean {nearest}?"))
}

impl ListError {
    pub fn unknown_parameter<'a>(parameter: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: BTreeSet<&str> = known.into_iter().collect();
        let hint = nearest(parameter, known.iter().copied()).map_or_else(
            || {
                let names: Vec<&str> = known.into_iter().take(NAMES_SHOWN_MAX).collect();
                format!("expected one of {}", names.join(", "))
            },
            |nearest| format!("did you mean {nearest}?"),
        );
        Self::UnknownParameter { parameter: shortened(parameter), hint: hint.into() }
    }

    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownSeries { .. } => ErrorCode::UNKNOWN_SERIES,
            Self::UnknownParameter { .. } => ErrorCode::BAD_ARGUMENTS,
            Self::UnknownScope(_) => ErrorCode::UNKNOWN_SCOPE,
            Self::UnknownPeriod(..) | Self::Key(_) => ErrorCode::BAD_SCOPE,
            Self::Store(error) => error.code(),
        }
    }
}

/// What the scopes of a series consist of.
struct ScopeShape {
    parameters: Vec<String>,
    reset: Reset,
}

impl ScopeShape {
    fn of(entry: &SeriesEntry) -> Self {
        Self { parameters: entry.parameters.clone(), reset: entry.series.pattern().reset() }
    }
}

impl<S: Store> Machine<S> {
    /// Refuses a series that never was, or that the caller may not read. One that was retired is still listed.
    pub async fn check_listed(
        &self,
        permissions: &Permissions,
        series: &SeriesName,
    ) -> Result<(), ListError> {
        self.shape_of(permissions, series).await.map(drop)
    }

    /// The scopes of a list; `None` for all of them.
    pub async fn listed_scopes(
        &self,
        permissions: &Permissions,
        request: ListRequest<'_>,
    ) -> Result<Option<ScopeFilter>, ListError> {
        let ListRequest { series, parameters, period, own_parameters } = request;
        let shapes = match series {
            Some(series) => vec![self.shape_of(permissions, series).await?],
            None => self.readable(permissions).iter().map(|entry| ScopeShape::of(entry)).collect(),
        };
        let known = || shapes.iter().flat_map(|shape| shape.parameters.iter().map(String::as_str));
        if let Some((name, _)) = parameters.iter().find(|(name, _)| !known().any(|known| known == *name)) {
            return Err(ListError::unknown_parameter(name, known().chain(own_parameters.iter().copied())));
        }
        if let Some(period) = period {
            check_period(period, shapes.iter().map(|shape| shape.reset))?;
        }
        if parameters.is_empty() && period.is_none() {
            return Ok(None);
        }
        let key = ScopeKey::named(parameters.iter().copied(), period)?;
        let is_whole = |shape: &ScopeShape| {
            shape.parameters.len() == parameters.len() && (shape.reset == Reset::Never) == period.is_none()
        };
        match series.filter(|_| shapes.iter().all(is_whole)) {
            Some(series) => self.existing_scope(permissions, series, key).await.map(Some),
            None => Ok(Some(ScopeFilter::having(key))),
        }
    }

    async fn existing_scope(
        &self,
        permissions: &Permissions,
        series: &SeriesName,
        scope: ScopeKey,
    ) -> Result<ScopeFilter, ListError> {
        // Not looked up: the time would tell which scopes other callers have.
        let may_see = permissions.check_scope_key(&scope).is_ok();
        let scope_id = ScopeId { series: series.clone(), scope };
        if may_see && self.store().cursor(scope_id.clone()).await?.is_some() {
            return Ok(scope_id.scope.into());
        }
        Err(ListError::UnknownScope(scope_id.scope))
    }

    async fn shape_of(
        &self,
        permissions: &Permissions,
        series: &SeriesName,
    ) -> Result<ScopeShape, ListError> {
        if permissions.series().contains(series) {
            if let Some(entry) = self.series_or_sync(series.as_str()).await {
                return Ok(ScopeShape::of(&entry));
            }
            if let Some(definition) = self.store().definition(series.clone()).await? {
                let parameters = definition.parameters.split_whitespace().map(str::to_owned).collect();
                return Ok(ScopeShape { parameters, reset: definition.reset.parse().unwrap_or_default() });
            }
        }
        let readable = self.readable(permissions);
        let names = readable.iter().map(|entry| entry.series.name().as_str());
        let nearest = nearest(series.as_str(), names).map(Into::into);
        Err(ListError::UnknownSeries { series: series.as_str().into(), nearest })
    }

    fn readable(&self, permissions: &Permissions) -> Vec<Arc<SeriesEntry>> {
        let registry = self.registry();
        let entries = registry.entries().filter(|entry| permissions.series().contains(entry.series.name()));
        entries.cloned().collect()
    }
}

fn check_period(period: &str, mut resets: impl Iterator<Item = Reset> + Clone) -> Result<(), ListError> {
    if resets.clone().any(|reset| reset.period_named(period).is_some()) {
        return Ok(());
    }
    let problem = match resets.find(|reset| *reset != Reset::Never) {
        None => "the numbering never restarts",
        Some(Reset::Yearly) => "expected one such as 2026",
        Some(Reset::Monthly) => "expected one such as 2026-01",
        Some(Reset::Daily) => "expected one such as 2026-01-31",
        Some(_) => "expected one such as 2026-27",
    };
    Err(ListError::UnknownPeriod(shortened(period), problem))
}
