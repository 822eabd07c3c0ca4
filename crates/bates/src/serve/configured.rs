//! Records in the operations log when a server starts with another configuration than before: a person who edits
//! the file changes series, callers and audits too. Must never record a secret.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use bates_core::{
    Actor, Channel, Machine, Operation, OperationFilter, OperationKind, SeriesOrigin, Store, host_name,
};
use bates_server::Access;
use serde_json::{Value, json};

use crate::config::Config;

const PAGE: usize = 1_000;

pub(super) async fn record_change<S: Store>(machine: &Machine<S>, config: &Config) -> Result<()> {
    let before = last_recorded(machine).await?;
    let actor = Actor { caller: "configuration", channel: Channel::Server };
    let operation = machine.operation(actor, OperationKind::ConfigurationChanged, None);
    let file = config.file.as_ref().map_or_else(|| "built in".to_owned(), |file| file.display().to_string());
    let text = describe(machine, config).to_string();
    let operation = operation.on(&file).between(before.as_deref(), Some(&text));
    if operation.before != operation.after {
        machine.append_operation(operation).await?;
    }
    Ok(())
}

/// What the last server on this host recorded.
async fn last_recorded<S: Store>(machine: &Machine<S>) -> Result<Option<Box<str>>> {
    let (host, mut last, mut after) = (host_name(), None, None);
    loop {
        let kind = Some(OperationKind::ConfigurationChanged);
        let filter = OperationFilter { kind, ..OperationFilter::default() };
        let page = machine.operations(filter, after, PAGE).await?;
        let Some(end) = page.last() else { return Ok(last) };
        after = Some((end.operation.at, end.operation.id));
        let on_host = page.into_iter().filter(|record| record.chain == host);
        last = on_host.last().map_or(last, |record| {
            let Operation { after, .. } = record.operation;
            after
        });
    }
}

/// The part of the configuration that decides on rights and records.
fn describe<S: Store>(machine: &Machine<S>, config: &Config) -> Value {
    let registry = machine.registry();
    let of_file = registry.entries().filter(|entry| entry.origin() == SeriesOrigin::File);
    let series: BTreeMap<String, Value> = of_file
        .map(|entry| {
            let description = serde_json::from_str(&entry.spec().description).unwrap_or_default();
            (entry.series().name().to_string(), description)
        })
        .collect();
    let tokens: BTreeMap<_, _> = config.access.configured_tokens().into_iter().collect();
    json!({
        "tokens": tokens,
        "secret": if config.access.is_open() { "none" } else { "set" },
        "openg2p_without_secret": config.openg2p_without_secret,
        "operations_retention_days": config.operations_retention.map(|time| time.as_secs() / 86_400),
        "series": series,
    })
}

/// Accepts the tokens that this node knows, now and at each call, and notes those that it cannot read, once.
pub(super) fn token_reader<S: Store>(machine: Arc<Machine<S>>, access: Arc<Access>) -> impl FnMut() {
    let mut noted: Vec<Box<str>> = Vec::new();
    let mut apply = move || {
        let unreadable = access.apply_tokens(|| machine.tokens(), machine.now());
        for name in unreadable.iter().filter(|name| !noted.contains(name)) {
            let problem = format!("the token {name:?} of the store cannot be read and is refused");
            crate::output::print_note(&problem);
        }
        noted = unreadable;
    };
    apply();
    apply
}
