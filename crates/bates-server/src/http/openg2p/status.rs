//! The status of the service: its health, its version and its ID types.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bates_core::{NextError, SeriesEntry, Store};
use bates_pattern::Limits;
use serde::Serialize;
use tokio::time::{Instant, sleep};
use utoipa::ToSchema;

use super::envelope::{Envelope, Failure, NOT_READY, STORE_UNAVAILABLE, Success};
use super::id_type;
use crate::http::permit::Permit;
use crate::http::routes::Context;

/// The health of the service.
#[derive(Serialize, ToSchema)]
pub(crate) struct HealthStatus {
    #[schema(example = "UP")]
    status: &'static str,
}

/// The build of the service.
#[derive(Serialize, ToSchema)]
pub(crate) struct BuildInfo {
    #[schema(example = "0.1.0")]
    service_version: &'static str,
    /// The time of the build, or `unknown`.
    build_time: &'static str,
    /// The commit of the build, or `unknown`.
    git_commit: &'static str,
}

/// The ID types and their rejection rules.
#[derive(Serialize, ToSchema)]
pub(crate) struct IdTypeConfig {
    id_types: BTreeMap<String, IdType>,
    /// The rules of every type without `filter_rules` of its own.
    filter_rules: FilterRules,
}

/// An ID type.
#[derive(Serialize, ToSchema)]
pub(crate) struct IdType {
    /// How many digits an ID has, including the check digit.
    #[schema(example = 10)]
    id_length: usize,
    /// The rules of this type, if they differ from the common ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    filter_rules: Option<FilterRules>,
}

/// Rejection rules. A limit of 0 switches a rule off.
#[derive(Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct FilterRules {
    sequence_limit: usize,
    repeating_limit: usize,
    repeating_block_limit: usize,
    conjugative_even_digits_limit: usize,
    digits_group_limit: usize,
    reverse_digits_group_limit: usize,
    not_start_with: Vec<String>,
    restricted_numbers: Vec<String>,
}

impl FilterRules {
    fn of_series(entry: &SeriesEntry) -> Self {
        let reject = entry.series().pattern().reject();
        let rules = reject.digit_rules().map(|rules| Self::from_limits(rules.limits())).unwrap_or_default();
        Self { restricted_numbers: reject.restricted().map(str::to_owned).collect(), ..rules }
    }

    fn from_limits(limits: &Limits) -> Self {
        Self {
            sequence_limit: limits.sequence,
            repeating_limit: limits.repeating,
            repeating_block_limit: limits.repeating_block,
            conjugative_even_digits_limit: limits.even_run,
            digits_group_limit: limits.group,
            reverse_digits_group_limit: limits.reverse_group,
            not_start_with: limits.not_start_with.iter().map(ToString::to_string).collect(),
            restricted_numbers: vec![],
        }
    }
}

/// Check that the service can issue IDs
///
/// 503 `IDG-005`: an ID type cannot issue yet. 503 `IDG-006`: the store cannot be written.
#[utoipa::path(get, path = "/health", tag = "openg2p",
    responses((status = 200, body = Envelope<HealthStatus>),
        (status = "default", body = Envelope<HealthStatus>, description = "The service cannot issue IDs; `errors` says why")))]
pub(crate) async fn check_health<S: Store>(context: Context<S>) -> Result<Success<HealthStatus>, Failure> {
    let checked = context.health.check(&context.machine).await;
    checked.map_err(|error| Failure::new(STORE_UNAVAILABLE, error.to_string()))?;
    // Without a secret, an answer names no series.
    match context.ready_id_types.are_ready(&context).await {
        Ok(true) => Ok(Success(HealthStatus { status: "UP" })),
        Ok(false) => Err(Failure::new(NOT_READY, "an ID type cannot issue yet")),
        Err(_) => Err(Failure::new(STORE_UNAVAILABLE, "an ID type cannot be granted numbers")),
    }
}

/// Show the version of the service
#[utoipa::path(get, path = "/version", tag = "openg2p", responses((status = 200, body = Envelope<BuildInfo>)))]
pub(crate) async fn show_version() -> Success<BuildInfo> {
    Success(BuildInfo {
        service_version: env!("CARGO_PKG_VERSION"),
        build_time: option_env!("BATES_BUILD_TIME").unwrap_or("unknown"),
        git_commit: option_env!("BATES_GIT_COMMIT").unwrap_or("unknown"),
    })
}

/// Show the ID types and their rules
#[utoipa::path(get, path = "/config", tag = "openg2p",
    responses((status = 200, body = Envelope<IdTypeConfig>),
        (status = "default", body = Envelope<IdTypeConfig>, description = "The caller may not read ID types")))]
pub(crate) async fn show_config<S: Store>(context: Context<S>, permit: Permit) -> Success<IdTypeConfig> {
    let mut types = id_type::list(&context);
    types.retain(|_, (entry, _)| permit.sees_all_of(entry.series().name()));
    let first = types.values().next().map(|(entry, _)| FilterRules::of_series(entry));
    let filter_rules = first.unwrap_or_else(|| FilterRules::from_limits(&Limits::default()));
    let id_types = types.into_iter().map(|(name, (entry, id_length))| {
        let own_rules = Some(FilterRules::of_series(&entry)).filter(|rules| *rules != filter_rules);
        (name, IdType { id_length, filter_rules: own_rules })
    });
    Success(IdTypeConfig { id_types: id_types.collect(), filter_rules })
}

/// How long a health check waits for the first numbers of a type.
const READY_TIMEOUT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// ID types that could issue, or were exhausted, at an earlier health check. A type stays ready: requests for IDs report
/// later failures.
#[derive(Default)]
pub(crate) struct ReadyIdTypes(Mutex<HashSet<String>>);

impl ReadyIdTypes {
    async fn are_ready<S: Store>(&self, context: &Context<S>) -> Result<bool, NextError> {
        let deadline = Instant::now() + READY_TIMEOUT;
        for (name, (entry, _)) in id_type::list(context) {
            while !self.names().contains(&name) {
                if context.machine.is_ready(&entry).await? {
                    self.names().insert(name.clone());
                } else if Instant::now() >= deadline {
                    return Ok(false);
                } else {
                    sleep(POLL_INTERVAL).await;
                }
            }
        }
        Ok(true)
    }

    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
