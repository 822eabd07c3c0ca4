//! `bates series promise`: changes the promise that the store has pinned for a series.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use bates_api::SeriesDescription;
use bates_core::{Actor, Machine, Promise, SeriesName, SeriesOrigin, SeriesSpec, Store, SystemRuntime};
use bates_server::series;
use bates_sqlite::OpenMode;
use clap::Args;

use crate::config::{Config, ConfigArgs, OpenStore};
use crate::operator::command_user;
use crate::output::Output;
use crate::recall::{RecallArgs, Stage};

/// Change what a series promises: unique, ordered or gapless
///
/// The store pins the promise of a series. A series that becomes gapless is gapless from its next number on. Stop the
/// server of a data folder first, or send it PATCH /v1/series/NAME instead. Nodes on PostgreSQL may keep running:
/// they release their numbers of the series, and follow within a second. If the configuration file describes the
/// series, change it as well: a node whose file disagrees does not start.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates series promise invoice gapless\n  \
    bates series promise ticket ordered --config /etc/bates.yaml")]
pub(crate) struct PromiseArgs {
    /// The series
    series: String,

    /// The new promise
    #[arg(value_parser = ["unique", "ordered", "gapless"])]
    promise: String,

    #[command(flatten)]
    recall: RecallArgs,

    #[command(flatten)]
    config: ConfigArgs,
}

impl PromiseArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> Result<()> {
        let config = self.config.load(None, None)?;
        match config.open_store(OpenMode::Existing).await? {
            OpenStore::Folder(store) => change(store, config, self, out).await,
            OpenStore::Postgres(store) => change(store, config, self, out).await,
        }
    }
}

async fn change(store: impl Store, config: Config, args: &PromiseArgs, out: &mut Output) -> Result<()> {
    let (name, to): (SeriesName, Promise) = (args.series.parse()?, args.promise.parse()?);
    let described = config.series.iter().find(|spec| spec.name == name).map(|spec| spec.promise);
    let machine = open_as_pinned(store, config.series).await?;
    let Some(entry) = machine.series(name.as_str()) else { bail!("unknown series {:?}", name.as_str()) };
    let user = command_user();
    let actor = Actor::command(&user);
    let (from, keeps_order) = (entry.spec().promise, to != Promise::Unique);
    if keeps_order && config.pools.iter().any(|pool| pool.series == name) {
        bail!(
            "series {:?} has a shared pool, whose numbers are not taken in order: remove the pool from the configuration, \
             then change the promise",
            name.as_str()
        );
    }
    if from != to {
        args.recall.release(&machine, &name, Stage::Before, |_, _| keeps_order).await?;
        match entry.origin() {
            SeriesOrigin::File => machine.change_promise(&name, to, actor).await?,
            SeriesOrigin::Api => machine.change_series(&name, |spec| described_as(spec, to), actor).await?,
        }
    }
    if keeps_order {
        // Also if the promise is the same: an earlier run may have been interrupted here.
        args.recall.release(&machine, &name, Stage::After, |_, _| true).await?;
    }
    machine.close().await;
    if from == to {
        writeln!(out, "series {name} promises {to}, as before")?;
    } else {
        writeln!(out, "series {name} promises {to} from now on, instead of {from}")?;
    }
    if let Some(described) = described.filter(|described| *described != to) {
        writeln!(out, "the configuration still says {described}: change it before the next start")?;
    }
    Ok(())
}

/// Opens each series with its pinned promise, because the file may describe the new one already.
async fn open_as_pinned<S: Store>(store: S, mut specs: Vec<SeriesSpec>) -> Result<Machine<S>> {
    for (series, promise) in store.promises().await? {
        specs.iter_mut().filter(|spec| spec.name == series).for_each(|spec| spec.promise = promise);
    }
    let machine = Machine::open(Arc::new(store), specs, Arc::new(SystemRuntime)).await?;
    machine.load_series(series::parse_spec).await?;
    Ok(machine)
}

fn described_as(spec: &SeriesSpec, promise: Promise) -> Result<SeriesSpec> {
    let mut description: SeriesDescription =
        serde_json::from_str(&spec.description).context("cannot read its description")?;
    promise.name().clone_into(&mut description.promise);
    Ok(series::build_spec(&description, spec.name.clone())?)
}
