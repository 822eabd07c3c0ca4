//! The port to where shared pools are: lists of numbers that any program may take from.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::Server;
use crate::machine::Numbers;

/// A server that holds shared pools. It may forget, rewind, hang or lie at any time: nothing that it answers can make
/// a number come twice, because numbers are pushed once, from positions granted for it.
pub trait SharedPool: Send + Sync + 'static {
    /// Which memory the server has now, and how the lists of these keys stand, in their order.
    fn look<'a>(&'a self, keys: &'a [Box<str>]) -> Asking<'a, Looked>;

    /// Locks a list for a filler, if it is free, for so long at the most. `token` is known to that filler alone.
    fn lock<'a>(&'a self, key: &'a str, token: &'a str, lasts: Duration) -> Asking<'a, bool>;

    /// Lets a lock last so long from now on, if it is still the filler's.
    fn extend<'a>(&'a self, key: &'a str, token: &'a str, lasts: Duration) -> Asking<'a, bool>;

    /// Ends a lock, if it is still the filler's.
    fn unlock<'a>(&'a self, key: &'a str, token: &'a str) -> Asking<'a, ()>;

    /// Empties lists of these epochs or older ones, unless the server has another memory by then.
    fn discard<'a>(&'a self, lists: &'a [(Box<str>, u64)], server: &'a Server) -> Asking<'a, ()>;

    /// Begins an epoch in a list of an older one. Only the process that moved the epoch in the store may do so.
    fn renew<'a>(&'a self, key: &'a str, epoch: u64, server: &'a Server) -> Asking<'a, Result<(), Refusal>>;

    /// Pushes numbers, all or none, and once however often it is asked. Packs them at once, sends them when polled.
    fn push<'a>(&'a self, key: &str, push: Push<'_>) -> Asking<'a, Result<(), Refusal>>;

    /// Where it is, for people, without a secret.
    fn describe(&self) -> String;
}

/// Something asked of the server. The error is for people.
pub type Asking<'a, T> = Pin<Box<dyn Future<Output = Result<T, Box<str>>> + Send + 'a>>;

/// What a look at lists has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Which memory the server has.
    pub server: Server,
    /// Each list.
    pub lists: Vec<ListLook>,
}

/// How a list stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListLook {
    /// Numbers in it.
    pub level: u64,
    /// The one that is taken next.
    pub head: Option<Box<str>>,
    /// Whether its marker names another store: another installation fills it.
    pub is_foreign: bool,
    /// The epoch that it is of, if it is of any.
    pub epoch: Option<u64>,
    /// The first position past all that were pushed in this epoch.
    pub pushed_to: Option<u64>,
    /// Whether something else than a list is there.
    pub is_other: bool,
}

/// Numbers to be pushed.
#[derive(Clone, Copy)]
pub struct Push<'a> {
    /// The epoch that they are for.
    pub epoch: u64,
    /// Where the epoch began.
    pub server: &'a Server,
    /// The token of the filler, which must have the lock still.
    pub token: &'a str,
    /// The version of the cursor after their grant: what was granted before something that was pushed comes too late.
    pub fence: u64,
    /// The first position of them.
    pub from: u64,
    /// The first position past them.
    pub to: u64,
    /// Their texts.
    pub numbers: &'a Numbers,
}

/// Why a list was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is of another epoch, or of none.
    #[error("its list was begun anew, or forgotten")]
    Epoch(Option<u64>),
    /// The server has another memory than the one that was named.
    #[error("its server restarted, or another one took over")]
    Server(Server),
    /// Something that was granted later was pushed before.
    #[error("another filler was faster")]
    Fenced,
    /// Its marker names another store.
    #[error("another installation fills its list")]
    Foreign,
    /// What is there is no list.
    #[error("something that is no list has its key")]
    NotAList,
    /// The server could not, and surely did nothing.
    #[error("{0}")]
    Unable(Box<str>),
}
