//! What an OpenG2P id-generator has given out: nothing is issued before all of it was adopted.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bates_core::{Entry, Machine, Position, ScopeKey, Store};
use bates_postgres::{Address, IdPools};
use bates_server::http;

use crate::config::Config;
use crate::output;

/// Numbers of an earlier system that are read together.
const ASIDE_AT_ONCE: usize = 100_000;

/// Refuses to issue as long as a table of an id-generator has identifiers that it gave out and that were not adopted: they
/// could come again. Looks at each of them, so that an adoption that broke off is seen, too.
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

/// Identifiers that were given out and that Bates would issue.
async fn unadopted<S: Store>(machine: &Machine<S>, entry: &Entry, pools: &IdPools) -> Result<Vec<String>> {
    let mut taken: Vec<(Position, String)> = Vec::new();
    pools
        .taken(entry.series().name().as_str(), |id| {
            // What is no identifier of the type is never issued.
            if let Ok(parsed) = entry.series().pattern().parse(id) {
                taken.push((parsed.position(), id.to_owned()));
            }
        })
        .await?;
    taken.sort_unstable();
    let (scope, mut from, mut aside) = (ScopeKey::new([], None)?, 0, Vec::new());
    loop {
        let page = machine.aside(entry, &scope, from, ASIDE_AT_ONCE).await?;
        let is_last = page.len() < ASIDE_AT_ONCE;
        from = page.last().map_or(from, |last| last.value() + 1);
        aside.extend(page);
        if is_last {
            break;
        }
    }
    taken.retain(|(position, _)| aside.binary_search(position).is_err());
    Ok(taken.into_iter().map(|(_, id)| id).collect())
}
