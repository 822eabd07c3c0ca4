//! What a configuration connects to besides the store: sinks, document sources and shared pools.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bates_core::{DocumentState, Filler, Machine, Relay, RelaySettings, Store};

use super::offered::{OfferedTasks, PoolTasks, SinkTasks, open_offered_pool};
use crate::background::Background;
use crate::config::{Config, SeriesPool};
use crate::output;

pub(super) fn start_relays<S: Store>(
    tasks: &mut Background,
    machine: &Arc<Machine<S>>,
    config: &Config,
) -> Result<()> {
    let settings = relay_settings(config);
    for (series, sink) in &config.sinks {
        let context = || format!("the sink of series {:?}", series.as_str());
        let sink = sink.open().with_context(context)?;
        let entry = machine.series(series.as_str()).with_context(context)?;
        let stopped = tasks.stopped();
        tasks.finishing.spawn(Relay::new(machine.clone(), entry, sink, settings).run(stopped));
    }
    Ok(())
}

fn relay_settings(config: &Config) -> RelaySettings {
    let default = RelaySettings::default();
    let stop_timeout = default.stop_timeout.min(config.stop_timeout / 4);
    RelaySettings { attempts_max: config.attempts_max, stop_timeout, ..default }
}

pub(super) fn start_offered_sinks<S: Store>(
    tasks: &mut Background,
    machine: &Arc<Machine<S>>,
    config: &Config,
) {
    let settings = relay_settings(config);
    let kind = SinkTasks { machine: machine.clone(), offers: config.offered_sinks.clone(), settings };
    let stopped = tasks.stopped();
    tasks.finishing.spawn(OfferedTasks::new(machine.clone(), kind).run(stopped));
}

pub(crate) fn start_fillers<S: Store>(tasks: &mut Background, machine: &Arc<Machine<S>>, config: &Config) {
    let (offers, configured) = (config.offered_pools.clone(), config.pools.clone());
    let kind = PoolTasks { machine: machine.clone(), offers, configured };
    let stopped = tasks.stopped();
    tasks.finishing.spawn(OfferedTasks::new(machine.clone(), kind).run(stopped));
    for SeriesPool { series, .. } in &config.pools {
        let Some(entry) = machine.series(series.as_str()) else { continue };
        let report = Box::new(|text: &str| output::print_note(text));
        if let Some(filler) = Filler::new(machine.clone(), entry, report) {
            let stopped = tasks.stopped();
            tasks.finishing.spawn(filler.run(stopped));
        }
    }
}

/// Notes documents that wait although their series has no sink.
pub(super) async fn note_undeliverable<S: Store>(machine: &Machine<S>) -> Result<()> {
    for (series, state, count) in machine.count_documents().await? {
        let has_sink = machine.series(series.as_str()).is_some_and(|entry| entry.spec().has_sink);
        if state == DocumentState::Pending && !has_sink {
            let (documents, series) = (output::count_of(count, "document"), series.as_str());
            output::print_note(&format!("series {series:?} has {documents} to deliver and no sink"));
        }
    }
    Ok(())
}

pub(super) fn open_document_sources<S: Store>(machine: &Machine<S>, config: &Config) -> Result<()> {
    let mut sources = HashMap::new();
    for (series, documents) in &config.document_sources {
        let context = || format!("the documents of series {:?}", series.as_str());
        sources.insert(series.clone(), documents.open().with_context(context)?);
    }
    machine.set_document_sources(sources);
    Ok(())
}

/// Gives the series their pools: those of the configuration, and those that it offers.
pub(crate) fn open_pools<S: Store>(machine: &Machine<S>, config: &Config) -> Result<()> {
    for pool in &config.pools {
        let context = || format!("the pool of series {:?}", pool.series.as_str());
        let pools = pool.open(machine.identity()).with_context(context)?;
        machine.set_pools(pool.series.clone(), pools);
    }
    for entry in machine.registry().entries() {
        // The filler reports why a series has no pool.
        let _ = open_offered_pool(machine, entry, &config.offered_pools, &config.pools);
    }
    Ok(())
}
