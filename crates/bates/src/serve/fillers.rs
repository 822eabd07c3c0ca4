//! What keeps shared pools full, beside whatever else a process does.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Context as _;
use bates_core::{Filler, KeptPools, Machine, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::PoolOf;
use crate::output;

/// Lets a machine know the pools of a configuration.
pub(crate) fn know_pools<S: Store>(machine: &Machine<S>, pools: &[PoolOf]) -> anyhow::Result<()> {
    let mut known = HashMap::new();
    for PoolOf { series, pool, settings } in pools {
        let list = pool
            .open(machine.identity())
            .with_context(|| format!("the pool of series {:?}", series.as_str()))?;
        known.insert(series.clone(), Arc::new(KeptPools::new(Box::new(list), settings.clone())));
    }
    machine.know_pools(known);
    Ok(())
}

/// The fillers of a process: one for each series with pools.
pub(crate) struct Fillers {
    stopping: watch::Sender<bool>,
    running: JoinSet<()>,
}

impl Fillers {
    pub(crate) fn start<S: Store>(machine: &Arc<Machine<S>>, pools: &[PoolOf]) -> Self {
        let (stopping, stopped) = watch::channel(false);
        let mut running = JoinSet::new();
        for PoolOf { series, .. } in pools {
            let Some(entry) = machine.named(series.as_str()) else { continue };
            let tell = Box::new(|text: &str| output::print_note(text));
            if let Some(filler) = Filler::new(machine.clone(), entry, tell) {
                running.spawn(filler.run(stopped.clone()));
            }
        }
        Self { stopping, running }
    }

    /// Ends what is under way.
    pub(crate) async fn stop(mut self) {
        // Those that have ended already need not hear of it.
        let _ = self.stopping.send(true);
        while self.running.join_next().await.is_some() {}
    }
}
