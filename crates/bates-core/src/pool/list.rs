//! The port to the server of shared pools: lists of numbers that any program may take from.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::ServerIdentity;
use crate::machine::Numbers;

/// A server that holds the lists of shared pools. It may lose data, go back to an older state, hang, or answer wrongly at any
/// time. No answer can make Bates push a number twice, because each grant is pushed at most once.
pub trait PoolServer: Send + Sync + 'static {
    /// The identity of the server now, and the state of these lists, in their order.
    fn status<'a>(&'a self, keys: &'a [Box<str>]) -> PoolFuture<'a, ServerStatus>;

    /// Locks a list for a filler, if no other filler has the lock, for at most this time. Only this filler knows `token`.
    fn lock<'a>(&'a self, key: &'a str, token: &'a str, lasts: Duration) -> PoolFuture<'a, bool>;

    /// Extends a lock to this time from now, if the filler still has it.
    fn extend<'a>(&'a self, key: &'a str, token: &'a str, lasts: Duration) -> PoolFuture<'a, bool>;

    /// Ends a lock, if the filler still has it.
    fn unlock<'a>(&'a self, key: &'a str, token: &'a str) -> PoolFuture<'a, ()>;

    /// Empties each list that has this epoch, an older one or none. Does nothing if the server has another identity by then.
    fn discard<'a>(&'a self, lists: &'a [(Box<str>, u64)], server: &'a ServerIdentity) -> PoolFuture<'a, ()>;

    /// Empties a list and begins an epoch in it, if its epoch is older. Only the filler that raised the epoch in the store
    /// may call it.
    fn renew<'a>(
        &'a self,
        key: &'a str,
        epoch: u64,
        server: &'a ServerIdentity,
    ) -> PoolFuture<'a, Result<(), ListRefusal>>;

    /// Pushes all numbers or none. A repeated push does nothing. The call packs the numbers; the future sends them.
    fn push<'a>(&'a self, key: &str, push: PushRequest<'_>) -> PoolFuture<'a, Result<(), ListRefusal>>;

    /// The address of the server, for people, without a secret.
    fn describe(&self) -> String;
}

/// A request to the server. The error is for people.
pub type PoolFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Box<str>>> + Send + 'a>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    pub server: ServerIdentity,
    pub lists: Vec<ListStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListStatus {
    /// The length of the list.
    pub level: u64,
    /// The first element, which is taken next.
    pub head: Option<Box<str>>,
    /// Whether its marker names another store: another installation fills it.
    pub is_of_other_store: bool,
    pub epoch: Option<u64>,
    /// The first position past all that were pushed in this epoch.
    pub pushed_to: Option<u64>,
    /// Whether its key holds something that is not a list.
    pub is_not_a_list: bool,
}

#[derive(Clone, Copy)]
pub struct PushRequest<'a> {
    pub epoch: u64,
    /// The server on which the epoch began.
    pub server: &'a ServerIdentity,
    /// The token of the filler, which must still have the lock.
    pub token: &'a str,
    /// The version of the cursor after the grant. The server refuses a grant that is older than one already pushed.
    pub fence: u64,
    pub from: u64,
    /// Exclusive.
    pub to: u64,
    pub numbers: &'a Numbers,
}

/// Why a list was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListRefusal {
    /// The list has this epoch, or none, and not the expected one.
    #[error("the list was renewed, or is gone")]
    Epoch(Option<u64>),
    /// The server has this identity now, not the expected one.
    #[error("its server restarted, or another one took over")]
    Server(ServerIdentity),
    /// A later grant was pushed, or the filler lost its lock.
    #[error("another filler has the lock, or pushed a later grant")]
    Fenced,
    /// Its marker names another store.
    #[error("another installation fills its list")]
    OtherStore,
    #[error("its key holds a value that is not a list")]
    NotAList,
    /// The server failed, and certainly changed nothing.
    #[error("{0}")]
    Unable(Box<str>),
}
