//! What an OpenG2P id-generator has given out from the same database: nothing is issued before it was adopted.

use anyhow::bail;
use bates_core::{Machine, ScopeName, SeriesName, Store};
use bates_postgres::{Address, IdPools};

/// Refuses ID types that Bates has never issued from and of which the id-generator has given identifiers out: they could
/// come again.
pub(super) async fn refuse_unadopted<S: Store>(
    machine: &Machine<S>,
    address: &Address,
    id_types: &[SeriesName],
) -> anyhow::Result<()> {
    if id_types.is_empty() {
        return Ok(());
    }
    let pools = IdPools::connect(address).await?;
    for id_type in id_types {
        let Some(entry) = machine.named(id_type.as_str()) else { continue };
        let is_known = machine.peek(&entry, ScopeName::default()).await?.exists;
        if !is_known && pools.has_taken(id_type.as_str()).await? == Some(true) {
            bail!(
                "table id_pool_{id_type} has identifiers that the id-generator gave out, and they could come again: \
                 stop it and run `bates adopt --openg2p` with the same configuration first"
            );
        }
    }
    Ok(())
}
