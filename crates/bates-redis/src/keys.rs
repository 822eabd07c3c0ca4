//! What lies beside a list: keys that begin with that of its marker, and so have the slot of the list in a cluster.

/// The keys of a pool.
pub(crate) struct Keys<'k> {
    /// The list itself.
    pub(crate) list: &'k str,
    /// A hash: the epoch, the fence of the last push, and the position pushed to.
    pub(crate) marker: String,
    /// The token of the filler that has the lock.
    pub(crate) lock: String,
    /// Where the list is while numbers are pushed; there only within a transaction.
    pub(crate) stage: String,
}

impl<'k> Keys<'k> {
    pub(crate) fn of(list: &'k str) -> Self {
        let marker = bates_api::marker_key(list);
        Self { list, lock: format!("{marker}:lock"), stage: format!("{marker}:stage"), marker }
    }
}
