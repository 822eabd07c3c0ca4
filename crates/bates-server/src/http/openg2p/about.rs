//! How the service is: its health, its version, and which ID types it has.

use std::collections::BTreeMap;

use axum::extract::State;
use bates_core::{Entry, Store};
use bates_pattern::Limits;
use serde::Serialize;
use utoipa::ToSchema;

use super::envelope::{Answer, Envelope, Failure};
use super::id_type;
use crate::http::routes::Context;

/// How the service is.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Health {
    #[schema(example = "UP")]
    status: &'static str,
}

/// Which build it is.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Release {
    #[schema(example = "0.1.0")]
    service_version: &'static str,
    /// When it was built, if whoever built it said so.
    build_time: &'static str,
    /// From which commit, if whoever built it said so.
    git_commit: &'static str,
}

/// Which ID types there are, and what they reject.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Config {
    id_types: BTreeMap<String, IdType>,
    /// The rules of all types, but for those that have some of their own.
    filter_rules: Rules,
}

/// An ID type.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct IdType {
    /// Digits of an ID, with its check digit.
    #[schema(example = 10)]
    id_length: usize,
    /// Its rules, where they are not those of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    filter_rules: Option<Rules>,
}

/// What is rejected. A limit of 0 means that a rule is off.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::http) struct Rules {
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
        let restricted = reject.restricted().map(str::to_owned).collect();
        match reject.digit_rules() {
            Some(rules) => Self::with(rules.limits(), restricted),
            None => Self {
                sequence_limit: 0,
                repeating_limit: 0,
                repeating_block_limit: 0,
                conjugative_even_digits_limit: 0,
                digits_group_limit: 0,
                reverse_digits_group_limit: 0,
                not_start_with: vec![],
                restricted_numbers: restricted,
            },
        }
    }

    fn with(limits: &Limits, restricted: Vec<String>) -> Self {
        Self {
            sequence_limit: limits.sequence,
            repeating_limit: limits.repeating,
            repeating_block_limit: limits.repeating_block,
            conjugative_even_digits_limit: limits.even_run,
            digits_group_limit: limits.group,
            reverse_digits_group_limit: limits.reverse_group,
            not_start_with: limits.not_start_with.iter().map(ToString::to_string).collect(),
            restricted_numbers: restricted,
        }
    }
}

/// Whether IDs can be issued
///
/// 503 `IDG-005`: a type cannot issue yet. 503 `IDG-006`: the store cannot be written.
#[utoipa::path(get, path = "/v1/idgenerator/health", tag = "openg2p",
    responses((status = 200, body = Envelope<Health>),
        (status = "default", body = Envelope<Health>, description = "They cannot; `errors` tells why")))]
pub(in crate::http) async fn health<S: Store>(
    State(context): State<Context<S>>,
) -> Result<Answer<Health>, Failure> {
    let checked = context.health.check(&context.machine).await;
    checked.map_err(|error| Failure::store_away(error.to_string()))?;
    match context.ready.missing(&context).await {
        Ok(None) => Ok(Answer(Health { status: "UP" })),
        Ok(Some(name)) => Err(Failure::starting(format!("ID type {name:?} cannot issue yet"))),
        Err(error) => Err(Failure::store_away(error.to_string())),
    }
}

/// Which build this is
#[utoipa::path(get, path = "/v1/idgenerator/version", tag = "openg2p", responses((status = 200, body = Envelope<Release>)))]
pub(in crate::http) async fn version<S: Store>(State(_): State<Context<S>>) -> Answer<Release> {
    Answer(Release {
        service_version: env!("CARGO_PKG_VERSION"),
        build_time: option_env!("BATES_BUILD_TIME").unwrap_or("unknown"),
        git_commit: option_env!("BATES_GIT_COMMIT").unwrap_or("unknown"),
    })
}

/// Which ID types there are
#[utoipa::path(get, path = "/v1/idgenerator/config", tag = "openg2p", responses((status = 200, body = Envelope<Config>)))]
pub(in crate::http) async fn config<S: Store>(State(context): State<Context<S>>) -> Answer<Config> {
    let types = id_type::all(&context);
    let first = types.values().next().map(|(entry, _)| Rules::of(entry));
    let filter_rules = first.unwrap_or_else(|| Rules::with(&Limits::default(), vec![]));
    let id_types = types.into_iter().map(|(name, (entry, id_length))| {
        let own = Some(Rules::of(&entry)).filter(|own| *own != filter_rules);
        (name, IdType { id_length, filter_rules: own })
    });
    let id_types = id_types.collect();
    Answer(Config { id_types, filter_rules })
}
