//! The hot path: numbers by the key of their scope, out of memory, for whoever must not wait.

use super::Machine;
use crate::range::Taken;
use crate::series::Entry;
use crate::store::Store;

impl<S: Store> Machine<S> {
    /// The next `count` positions of the scope that `key` names, without a hole, if they are held in memory: for
    /// the hot path. `scope` is the caller's room for the scope's key.
    pub fn try_next_by_key(&self, entry: &Entry, key: &str, count: u64, scope: &mut String) -> Option<Taken> {
        if entry.is_awaited {
            return None;
        }
        scope.clear();
        entry.key()?.write_scope(key, scope);
        let taken = self.dispenser.try_take_run(&entry.series, scope, count)?;
        entry.counts.add_issued(count);
        Some(taken)
    }

    /// Fetches the first numbers of the scope that `key` names, if it is not in memory: for somebody who is about
    /// to ask for it, and for others, and would otherwise wait for one after the other.
    pub fn warm_by_key(&self, key: &str) {
        let Some(entry) = self.of_key(key) else { return };
        let Some(parameters) = entry.key().and_then(|template| template.read(key)) else { return };
        let parameters: Vec<(&str, &str)> = parameters.collect();
        if let Ok((_, scope)) = entry.scope((&*parameters).into(), || self.runtime.now()) {
            self.dispenser.warm(&entry.series, &scope);
        }
    }
}
