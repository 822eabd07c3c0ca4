//! What lies beside a list. The braces are a hash tag: in a cluster, all keys of a pool have the slot of its list,
//! whose own key holds no braces.

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
        Self {
            list,
            marker: format!("{{{list}}}:bates"),
            lock: format!("{{{list}}}:bates:lock"),
            stage: format!("{{{list}}}:bates:stage"),
        }
    }
}
