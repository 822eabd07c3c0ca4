//! Refuses to serve until all identifiers of an OpenG2P id-generator are adopted.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bates_core::{Machine, Position, ScopeKey, SeriesEntry, Store};
use bates_postgres::IdPools;
use bates_server::http;

use crate::config::Config;
use crate::output;

/// Adopted positions read at a time.
const PAGE: usize = 100_000;

/// Checks every identifier, so that an interrupted adoption is found as well.
pub(super) async fn refuse_unadopted<S: Store>(machine: &Machine<S>, config: &Config) -> Result<()> {
    if config.openg2p_without_secret {
        output::print_note(
            "openg2p_without_secret: any client that can connect may take identifiers under /v1/idgenerator",
        );
    }
    let is_id_type = |entry: &&Arc<SeriesEntry>| http::id_length(entry).is_some();
    let id_types: Vec<_> = machine.registry().entries().filter(is_id_type).cloned().collect();
    let databases = config.store.address().into_iter().chain(&config.id_generator_database);
    for address in databases.filter(|_| !id_types.is_empty()) {
        let pools = IdPools::connect(address).await;
        let pools = pools.context("cannot read which identifiers the OpenG2P id-generator issued")?;
        for entry in &id_types {
            let name = entry.series().name();
            if pools.has_taken(name.as_str()).await? == Some(true) {
                let missing = missing(machine, entry, &pools).await?;
                if let Some(first) = missing.first() {
                    bail!(
                        "table id_pool_{name} has {} identifiers, such as {first}, that the id-generator issued and Bates has not \
                         adopted: they could be issued again. Stop the id-generator and run `bates adopt --openg2p` with \
                         the same configuration",
                        missing.len()
                    );
                }
            }
        }
    }
    Ok(())
}

async fn missing<S: Store>(machine: &Machine<S>, entry: &SeriesEntry, ids: &IdPools) -> Result<Vec<String>> {
    let mut taken: Vec<(Position, String)> = Vec::new();
    // Bates never issues a text that does not parse.
    let parse = |id: &str| Some((entry.series().pattern().parse(id).ok()?.position(), id.to_owned()));
    ids.taken(entry.series().name().as_str(), |id| taken.extend(parse(id))).await?;
    taken.sort_unstable();
    let (scope, mut from, mut adopted) = (ScopeKey::new([], None)?, 0, Vec::new());
    loop {
        let page = machine.adopted_positions(entry, &scope, from, PAGE).await?;
        let Some(last) = page.last() else { break };
        from = last.value() + 1;
        adopted.extend(page);
    }
    taken.retain(|(position, _)| adopted.binary_search(position).is_err());
    Ok(taken.into_iter().map(|(_, id)| id).collect())
}
