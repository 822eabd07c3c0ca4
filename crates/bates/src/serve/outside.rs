//! What a configuration has outside the store: sinks of documents, users' own documents, and shared pools.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bates_core::{Filler, KeptPools, Machine, Relay, RelaySettings, State, Store};

use crate::background::Background;
use crate::config::{Config, PoolOf};
use crate::output;

pub(super) fn start_relays<S: Store>(
    tasks: &mut Background,
    machine: &Arc<Machine<S>>,
    config: &Config,
) -> Result<()> {
    for (series, sink) in &config.sinks {
        let context = || format!("the sink of series {:?}", series.as_str());
        let sink = sink.open().with_context(context)?;
        let entry = machine.named(series.as_str()).with_context(context)?;
        let settings = RelaySettings { tries_max: config.tries_max, ..RelaySettings::default() };
        let stopped = tasks.stopped();
        tasks.finishing.spawn(Relay::new(machine.clone(), entry, sink, settings).run(stopped));
    }
    Ok(())
}

pub(crate) fn start_fillers<S: Store>(tasks: &mut Background, machine: &Arc<Machine<S>>, pools: &[PoolOf]) {
    for PoolOf { series, .. } in pools {
        let Some(entry) = machine.named(series.as_str()) else { continue };
        let tell = Box::new(|text: &str| output::print_note(text));
        if let Some(filler) = Filler::new(machine.clone(), entry, tell) {
            let stopped = tasks.stopped();
            tasks.finishing.spawn(filler.run(stopped));
        }
    }
}

/// Notes documents that wait for a sink that is no longer configured.
pub(super) async fn tell_undeliverable<S: Store>(machine: &Machine<S>) -> Result<()> {
    for (series, state, count) in machine.tally().await? {
        let has_sink = machine.named(series.as_str()).is_some_and(|entry| entry.spec().has_sink);
        if state == State::Pending && !has_sink {
            let (documents, series) = (output::counted(count, "document"), series.as_str());
            output::print_note(&format!("{documents} of series {series:?} wait, and it has no sink"));
        }
    }
    Ok(())
}

pub(super) fn know_documents<S: Store>(machine: &Machine<S>, config: &Config) -> Result<()> {
    let mut known = HashMap::new();
    for (series, documents) in &config.documents {
        let context = || format!("the documents of series {:?}", series.as_str());
        known.insert(series.clone(), documents.open().with_context(context)?);
    }
    machine.know_documents(known);
    Ok(())
}

pub(crate) fn know_pools<S: Store>(machine: &Machine<S>, pools: &[PoolOf]) -> Result<()> {
    let mut known = HashMap::new();
    for PoolOf { series, pool, settings } in pools {
        let context = || format!("the pool of series {:?}", series.as_str());
        let list = pool.open(machine.identity()).with_context(context)?;
        known.insert(series.clone(), Arc::new(KeptPools::new(Box::new(list), settings.clone())));
    }
    machine.know_pools(known);
    Ok(())
}
