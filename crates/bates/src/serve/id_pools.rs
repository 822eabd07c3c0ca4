//! Refuses to serve before all identifiers of an OpenG2P id-generator were adopted.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bates_core::{Entry, Machine, Position, ScopeKey, Store};
use bates_postgres::{Address, IdPools};
use bates_server::http;

use crate::config::Config;
use crate::output;

const ASIDE_AT_ONCE: usize = 100_000;

/// Looks at each identifier, so that an interrupted adoption is found, too.
pub(super) async fn refuse_unadopted<S: Store>(machine: &Machine<S>, config: &Config) -> Result<()> {
    if config.openg2p_is_open {
        output::print_note(
            "openg2p_open: whoever can connect takes identifiers under /v1/idgenerator without a secret",
        );
    }
    let databases: Vec<&Address> = config.store.address().into_iter().chain(&config.id_generator).collect();
    let id_types: Vec<Arc<Entry>> = {
        let registry = machine.registry();
        registry.entries().filter(|entry| http::id_length(entry).is_some()).cloned().collect()
    };
    for address in databases.iter().filter(|_| !id_types.is_empty()) {
        let pools = IdPools::connect(address).await;
        let pools = pools.context("cannot look what an OpenG2P id-generator has given out")?;
        for entry in &id_types {
            let name = entry.series().name();
            if pools.has_taken(name.as_str()).await? == Some(true) {
                let forgotten = unadopted(machine, entry, &pools).await?;
                if let Some(first) = forgotten.first() {
                    bail!(
                        "table id_pool_{name} has {} identifiers, such as {first}, that the id-generator gave out and that were \
                         not adopted: they could come again. Stop it and run `bates adopt --openg2p` with the same configuration",
                        forgotten.len()
                    );
                }
            }
        }
    }
    Ok(())
}

async fn unadopted<S: Store>(machine: &Machine<S>, entry: &Entry, pools: &IdPools) -> Result<Vec<String>> {
    let mut taken: Vec<(Position, String)> = Vec::new();
    pools
        .taken(entry.series().name().as_str(), |id| {
            // Other texts are never issued.
            if let Ok(parsed) = entry.series().pattern().parse(id) {
                taken.push((parsed.position(), id.to_owned()));
            }
        })
        .await?;
    taken.sort_unstable();
    let (scope, mut from, mut aside) = (ScopeKey::new([], None)?, 0, Vec::new());
    loop {
        let page = machine.aside(entry, &scope, from, ASIDE_AT_ONCE).await?;
        let Some(last) = page.last() else { break };
        from = last.value() + 1;
        aside.extend(page);
    }
    taken.retain(|(position, _)| aside.binary_search(position).is_err());
    Ok(taken.into_iter().map(|(_, id)| id).collect())
}
