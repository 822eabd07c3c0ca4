//! The place of one connection: what its task tells the others, and what it gives back when it ends.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::AbortHandle;

use super::connections::Connection;
use super::{AddressBlock, Defense, SecretRefusal};

/// A connection that is open, until it is dropped.
pub(crate) struct Slot {
    defense: Arc<Defense>,
    connection: Arc<Connection>,
    /// What it holds at least.
    bytes_min: usize,
}

impl Slot {
    pub(super) fn new(defense: Arc<Defense>, connection: Arc<Connection>, bytes_min: usize) -> Self {
        Self { defense, connection, bytes_min }
    }

    /// A way for others to close the connection.
    pub(crate) fn closer(&self) -> impl FnOnce(AbortHandle) + use<> {
        let (defense, id) = (self.defense.clone(), self.connection.id);
        move |task| defense.connections().set_task(id, task)
    }

    /// Sets how many bytes the connection holds. `false`: there is no memory for them, and the connection must end.
    #[inline]
    pub(crate) fn hold(&self, bytes: usize) -> bool {
        self.defense.hold(&self.connection, bytes, self.bytes_min)
    }

    /// As [`Self::hold`], for work that can be refused: closes no connection. `false`: it holds as much as before.
    pub(crate) fn try_hold(&self, bytes: usize) -> bool {
        self.defense.try_hold(&self.connection, bytes, self.bytes_min)
    }

    /// A request is being served from here on.
    #[inline]
    pub(crate) fn begin(&self) {
        self.connection.is_busy.store(true, Ordering::Relaxed);
    }

    /// The connection waits for the client from here on.
    #[inline]
    pub(crate) fn rest(&self) {
        self.connection.is_busy.store(false, Ordering::Relaxed);
    }

    /// The client took part: it is not idle. What a stranger sends does not count.
    #[inline]
    pub(crate) fn touch(&self) {
        if self.connection.is_authenticated.load(Ordering::Relaxed) {
            self.connection.active_at.store(self.defense.coarse_now(), Ordering::Relaxed);
        }
    }

    pub(crate) fn set_authenticated(&self, is_authenticated: bool) {
        self.connection.is_authenticated.store(is_authenticated, Ordering::Relaxed);
    }

    /// As [`Defense::check_secret`], from the address of this connection.
    pub(crate) fn check_secret<C>(
        &self,
        secret: &[u8],
        check: impl FnOnce() -> Option<C>,
    ) -> Result<C, SecretRefusal> {
        self.defense.check_secret(self.connection.block, secret, check)
    }

    pub(crate) fn take_stranger_request(&self) -> Result<(), Duration> {
        self.defense.take_stranger_request(self.block())
    }

    pub(crate) fn give_back_stranger_request(&self) {
        self.defense.give_back_stranger_request(self.block());
    }

    pub(crate) fn has_callers(&self) -> bool {
        self.defense.has_callers_at(self.block())
    }

    fn block(&self) -> AddressBlock {
        self.connection.block
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.defense.connections().remove(self.connection.id);
        self.defense.memory.set(&self.connection.share, 0);
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Slot").field(&self.connection).finish()
    }
}

/// A connection beyond all slots, which serves only probes, until it is dropped.
pub(crate) struct ProbeSlot {
    defense: Arc<Defense>,
    id: u64,
}

impl ProbeSlot {
    /// There is always room: the oldest connection of this kind gives way.
    pub(crate) fn open(defense: &Arc<Defense>) -> Self {
        let id = defense.connections().open_probe();
        Self { defense: defense.clone(), id }
    }

    pub(crate) fn closer(&self) -> impl FnOnce(AbortHandle) + use<> {
        let (defense, id) = (self.defense.clone(), self.id);
        move |task| defense.connections().set_probe_task(id, task)
    }
}

impl Drop for ProbeSlot {
    fn drop(&mut self) {
        self.defense.connections().remove_probe(self.id);
    }
}
