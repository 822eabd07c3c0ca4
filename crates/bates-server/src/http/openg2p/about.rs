//! How the service is: its health, its version, which ID types it has and whether each can issue.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bates_core::{Entry, NextError, Store};
use bates_pattern::Limits;
use serde::Serialize;
use tokio::time::{Instant, sleep};
use utoipa::ToSchema;

use super::envelope::{Answer, Envelope, Failure, STARTING, STORE_AWAY};
use super::id_type;
use crate::http::routes::Context;

/// How the service is.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    #[schema(example = "UP")]
    status: &'static str,
}

/// Which build it is.
#[derive(Serialize, ToSchema)]
pub(crate) struct Release {
    #[schema(example = "0.1.0")]
    service_version: &'static str,
    /// When it was built, if whoever built it said so.
    build_time: &'static str,
    /// From which commit, if whoever built it said so.
    git_commit: &'static str,
}

/// Which ID types there are, and what they reject.
#[derive(Serialize, ToSchema)]
pub(crate) struct Config {
    id_types: BTreeMap<String, IdType>,
    /// The rules of all types, but for those that have some of their own.
    filter_rules: Rules,
}

/// An ID type.
#[derive(Serialize, ToSchema)]
pub(crate) struct IdType {
    /// Digits of an ID, with its check digit.
    #[schema(example = 10)]
    id_length: usize,
    /// Its rules, where they are not those of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    filter_rules: Option<Rules>,
}

/// What is rejected. A limit of 0 means that a rule is off.
#[derive(Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Rules {
    sequence_limit: usize,
    repeating_limit: usize,
    repeating_block_limit: usize,
    conjugative_even_digits_limit: usize,
    digits_group_limit: usize,
    reverse_digits_group_limit: usize,
    not_start_with: Vec<String>,
    restricted_numbers: Vec<String>,
}

impl Rules {
    fn of(entry: &Entry) -> Self {
        let reject = entry.series().pattern().reject();
        let rules = reject.digit_rules().map(|rules| Self::within(rules.limits())).unwrap_or_default();
        Self { restricted_numbers: reject.restricted().map(str::to_owned).collect(), ..rules }
    }

    fn within(limits: &Limits) -> Self {
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

/// Whether IDs can be issued
///
/// 503 `IDG-005`: a type cannot issue yet. 503 `IDG-006`: the store cannot be written.
#[utoipa::path(get, path = "/health", tag = "openg2p",
    responses((status = 200, body = Envelope<Health>),
        (status = "default", body = Envelope<Health>, description = "They cannot; `errors` tells why")))]
pub(crate) async fn health<S: Store>(context: Context<S>) -> Result<Answer<Health>, Failure> {
    let checked = context.health.check(&context.machine).await;
    checked.map_err(|error| Failure::new(STORE_AWAY, error.to_string()))?;
    match context.ready.missing(&context).await {
        Ok(None) => Ok(Answer(Health { status: "UP" })),
        Ok(Some(name)) => Err(Failure::new(STARTING, format!("ID type {name:?} cannot issue yet"))),
        Err(error) => Err(Failure::new(STORE_AWAY, error.to_string())),
    }
}

/// Which build this is
#[utoipa::path(get, path = "/version", tag = "openg2p", responses((status = 200, body = Envelope<Release>)))]
pub(crate) async fn version() -> Answer<Release> {
    Answer(Release {
        service_version: env!("CARGO_PKG_VERSION"),
        build_time: option_env!("BATES_BUILD_TIME").unwrap_or("unknown"),
        git_commit: option_env!("BATES_GIT_COMMIT").unwrap_or("unknown"),
    })
}

/// Which ID types there are
#[utoipa::path(get, path = "/config", tag = "openg2p", responses((status = 200, body = Envelope<Config>)))]
pub(crate) async fn config<S: Store>(context: Context<S>) -> Answer<Config> {
    let types = id_type::all(&context);
    let first = types.values().next().map(|(entry, _)| Rules::of(entry));
    let filter_rules = first.unwrap_or_else(|| Rules::within(&Limits::default()));
    let id_types = types.into_iter().map(|(name, (entry, id_length))| {
        let own = Some(Rules::of(&entry)).filter(|own| *own != filter_rules);
        (name, IdType { id_length, filter_rules: own })
    });
    Answer(Config { id_types: id_types.collect(), filter_rules })
}

/// For numbers that are being fetched.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);

/// ID types that could issue, or were exhausted, when they were looked at. A type stays ready: later failures are
/// answered to requests for IDs.
#[derive(Default)]
pub(crate) struct Ready(Mutex<HashSet<String>>);

impl Ready {
    async fn missing<S: Store>(&self, context: &Context<S>) -> Result<Option<String>, NextError> {
        let until = Instant::now() + PATIENCE;
        for (name, (entry, _)) in id_type::all(context) {
            while !self.seen().contains(&name) {
                if context.machine.is_ready(&entry).await? {
                    self.seen().insert(name.clone());
                } else if Instant::now() >= until {
                    return Ok(Some(name));
                } else {
                    sleep(LOOK).await;
                }
            }
        }
        Ok(None)
    }

    fn seen(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
