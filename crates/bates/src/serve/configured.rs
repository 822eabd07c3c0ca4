//! Records in the operations log when a server starts with another configuration than before: a person who edits
//! the file changes series, callers and audits too. Must never record a secret.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use bates_core::{
    Actor, Channel, Machine, Operation, OperationFilter, OperationKind, OperationRecord, SeriesOrigin, Store,
    host_name,
};
use bates_server::Access;
use serde_json::{Value, json};

use crate::config::Config;

const PAGE: usize = 1_000;

pub(super) async fn record_change<S: Store>(machine: &Machine<S>, config: &Config) -> Result<()> {
    let (rights, series) = (describe_rights(config), describe_series(machine));
    for (subject, state) in [("rights and records", rights), ("series", series)] {
        let before = last_recorded(machine, subject).await.unwrap_or_else(|error| {
            let hint = "check it with `bates audit verify`";
            crate::output::print_note(&format!("the operations log cannot be read: {error}; {hint}"));
            None
        });
        let actor = Actor { caller: "configuration", channel: Channel::Server };
        let operation = machine.operation(actor, OperationKind::ConfigurationChanged, None).on(subject);
        let operation = operation.between(None, Some(&state.to_string()));
        // Long texts are cut, with their digest: they are compared as they were recorded.
        if operation.after != before {
            machine.append_operation(Operation { before, ..operation }).await?;
        }
    }
    Ok(())
}

/// What the last server on this host recorded.
async fn last_recorded<S: Store>(machine: &Machine<S>, subject: &str) -> Result<Option<Box<str>>> {
    let (host, mut last, mut after) = (host_name(), None, None);
    loop {
        let kind = Some(OperationKind::ConfigurationChanged);
        let filter = OperationFilter { kind, ..OperationFilter::default() };
        let page = machine.operations(filter, after, PAGE).await?;
        let Some(end) = page.last() else { return Ok(last) };
        after = Some((end.operation.at, end.operation.id));
        let is_wanted =
            |record: &OperationRecord| record.chain == host && *record.operation.subject == *subject;
        last = page.into_iter().filter(is_wanted).last().map_or(last, |record| record.operation.after);
    }
}

fn describe_series<S: Store>(machine: &Machine<S>) -> Value {
    let registry = machine.registry();
    let of_file = registry.entries().filter(|entry| entry.origin() == SeriesOrigin::File);
    let series: BTreeMap<String, Value> = of_file
        .map(|entry| {
            let description = serde_json::from_str(&entry.spec().description).unwrap_or_default();
            (entry.series().name().to_string(), description)
        })
        .collect();
    json!(series)
}

/// Who may do what, and how long it is recorded.
fn describe_rights(config: &Config) -> Value {
    let tokens: BTreeMap<_, _> = config.access.configured_tokens().into_iter().collect();
    json!({
        "secret": if config.access.is_open() { "none" } else { "set" },
        "openg2p_without_secret": config.openg2p_without_secret,
        "operations_retention_days": config.operations_retention.map(|time| time.as_secs() / 86_400),
        "tokens": tokens,
        "secret_marks": config.access.secret_marks(),
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
