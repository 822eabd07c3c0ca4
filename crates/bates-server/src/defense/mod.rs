//! What both ports do against abuse: rates for strangers and wrong secrets, slots for connections, and one budget for the
//! memory that connections hold. Must never know a protocol, nor slow down a caller that has shown its secret.

mod address;
mod address_table;
mod connections;
mod counts;
mod memory;
mod rate;
mod slot;

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

pub(crate) use address::AddressBlock;
use address_table::AddressTable;
use connections::{Connection, Connections};
use counts::Counts;
pub(crate) use counts::Event;
use memory::MemoryBudget;
pub(crate) use memory::{COUNTED_ANSWER_MIN, answer_bytes};
use rate::RateLimit;
pub(crate) use slot::{ProbeSlot, Slot};

/// Wrong secrets come back one by one after this time.
const SECRET_INTERVAL: Duration = Duration::from_secs(1);
/// A share of the slots is freed at once, so that a flood of connections does not search them for each.
const SLOTS_FREED: usize = 64;
/// As [`SLOTS_FREED`], of the memory.
const MEMORY_FREED: usize = 16;

/// How much strangers and callers may demand.
#[derive(Clone, Debug)]
pub struct DefenseSettings {
    /// Bytes that requests, answers and connections may hold.
    pub memory_bytes_max: usize,
    /// Connections of both ports.
    pub connections_max: usize,
    /// Connections from one address; 0: no limit. `None`: half of all, and no limit for loopback addresses.
    pub connections_per_address_max: Option<usize>,
    /// Wrong secrets that an address may send at once; one more each second.
    pub wrong_secrets_max: u32,
    /// Requests without a secret that an address may send at once, and each second.
    pub stranger_requests_max: u32,
    /// An authenticated connection that was not served for this long may be closed when slots run out.
    pub idle_min: Duration,
}

impl Default for DefenseSettings {
    fn default() -> Self {
        Self {
            memory_bytes_max: memory::default_budget(),
            connections_max: 10_000,
            connections_per_address_max: None,
            wrong_secrets_max: 10,
            stranger_requests_max: 100,
            idle_min: Duration::from_secs(10),
        }
    }
}

/// The state that both ports share.
pub struct Defense {
    settings: DefenseSettings,
    addresses: AddressTable,
    memory: MemoryBudget,
    connections: Mutex<Connections>,
    counts: Counts,
    started: Instant,
    /// In milliseconds, moved on once a second: reading the time for every read of a connection would cost more.
    coarse_clock: AtomicU64,
}

/// Why a connection is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Slots,
    SlotsOfAddress,
    Memory,
}

/// Why a secret is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretRefusal {
    Wrong,
    /// Not checked: too many wrong ones came from the address. One may be tried after this time.
    Unchecked(Duration),
}

impl Defense {
    pub fn new(settings: DefenseSettings) -> Self {
        Self {
            addresses: AddressTable::new(),
            memory: MemoryBudget::new(settings.memory_bytes_max),
            connections: Mutex::default(),
            counts: Counts::default(),
            started: Instant::now(),
            coarse_clock: AtomicU64::new(0),
            settings,
        }
    }

    /// Refusals and closed connections since the last note, for the operator. At most one note a minute.
    pub fn note(&self) -> Option<String> {
        self.counts.note(self.now())
    }

    /// Called once a second.
    pub(crate) fn tick(&self) {
        let now = u64::try_from(self.now().as_millis()).unwrap_or(u64::MAX);
        self.coarse_clock.store(now, Ordering::Relaxed);
    }

    pub(crate) fn total(&self, event: Event) -> u64 {
        self.counts.total(event)
    }

    pub(crate) fn connection_count(&self) -> usize {
        self.connections().count()
    }

    /// Bytes that count, and how many may.
    pub(crate) fn memory(&self) -> (usize, usize) {
        (self.memory.used(), self.memory.max())
    }

    /// Admits a connection that holds `bytes` from its start. If slots or memory ran out, closes others first.
    pub(crate) fn admit(self: &Arc<Self>, address: Option<IpAddr>, bytes: usize) -> Result<Slot, Refusal> {
        let block = AddressBlock::new(address);
        let admitted = self.open(block, bytes);
        match admitted {
            Ok(_) => {}
            Err(Refusal::Memory) => self.counts.add(Event::MemoryRefused, 1),
            Err(_) => self.counts.add(Event::ConnectionRefused, 1),
        }
        admitted.map(|connection| Slot::new(self.clone(), connection, bytes))
    }

    fn open(&self, block: AddressBlock, bytes: usize) -> Result<Arc<Connection>, Refusal> {
        let mut connections = self.connections();
        if connections.count_of(block) >= self.connections_max_of(block) {
            return Err(Refusal::SlotsOfAddress);
        }
        let (count, max) = (connections.count(), self.settings.connections_max);
        if count >= max {
            self.close_idle(&mut connections, max.div_ceil(SLOTS_FREED));
        }
        if connections.count() >= max {
            return Err(Refusal::Slots);
        }
        let connection = connections.open(block, self.coarse_now());
        if self.memory.set(&connection.share, bytes) || self.make_room(&mut connections, &connection, bytes) {
            return Ok(connection);
        }
        connections.remove(connection.id);
        self.memory.set(&connection.share, 0);
        Err(Refusal::Memory)
    }

    fn connections_max_of(&self, block: AddressBlock) -> usize {
        match self.settings.connections_per_address_max {
            Some(0) => usize::MAX,
            Some(max) => max,
            None if block.is_loopback() => usize::MAX,
            None => self.settings.connections_max.div_ceil(2),
        }
    }

    /// Sets what a connection holds. `false`: there is no memory for it, and it must end.
    fn hold(&self, connection: &Connection, bytes: usize, bytes_min: usize) -> bool {
        if self.memory.set(&connection.share, bytes.max(bytes_min)) {
            return true;
        }
        let has_room = self.make_room(&mut self.connections(), connection, bytes_min);
        if !has_room {
            self.counts.add(Event::MemoryRefused, 1);
        }
        has_room
    }

    /// As [`Self::hold`], but closes no connection, and holds no more than before if there is no memory.
    fn try_hold(&self, connection: &Connection, bytes: usize, bytes_min: usize) -> bool {
        let before = connection.share.bytes();
        let has_room = self.memory.set(&connection.share, bytes.max(bytes_min));
        if !has_room {
            self.memory.set(&connection.share, before);
            self.counts.add(Event::MemoryRefused, 1);
        }
        has_room
    }

    /// Closes the largest connections, then idle ones, until memory is within the budget. Returns whether `connection` may
    /// stay.
    fn make_room(
        &self,
        connections: &mut Connections,
        connection: &Connection,
        connection_bytes: usize,
    ) -> bool {
        let (used, max) = self.memory();
        if used <= max {
            return true;
        }
        let excess = used - (max - max / MEMORY_FREED);
        let closed = connections.close_largest(excess, connection_bytes.next_multiple_of(4096));
        self.counts.add(Event::LargeClosed, closed.len() as u64);
        let may_stay = closed.iter().all(|it| it.id != connection.id);
        for closed in closed {
            self.memory.set(&closed.share, 0);
        }
        if may_stay && self.memory.used() > max {
            self.close_idle(connections, excess.div_ceil(connection_bytes.max(1)));
        }
        may_stay && self.memory.used() <= max
    }

    fn close_idle(&self, connections: &mut Connections, count: usize) {
        let closed = connections.close_idle(count, self.settings.idle_min, self.coarse_now());
        self.counts.add(Event::IdleClosed, closed.len() as u64);
        for closed in closed {
            // Its buffers are freed when its task ends, within a moment.
            self.memory.set(&closed.share, 0);
        }
    }

    /// Counts a request without a valid secret. An error tells when the next one may come.
    pub(crate) fn take_stranger_request(&self, block: AddressBlock) -> Result<(), Duration> {
        let taken = self.addresses.take_request(block, self.stranger_limit(), self.now());
        taken.inspect_err(|_| self.counts.add(Event::StrangerRefused, 1))
    }

    pub(crate) fn give_back_stranger_request(&self, block: AddressBlock) {
        self.addresses.give_back_request(block, self.stranger_limit());
    }

    /// Whether a caller has shown a right secret from this address lately.
    pub(crate) fn has_callers_at(&self, block: AddressBlock) -> bool {
        self.addresses.has_secrets(block, self.now())
    }

    /// Checks a secret, unless too many wrong ones came from the address and this one was not right from there lately.
    pub(crate) fn check_secret<C>(
        &self,
        block: AddressBlock,
        secret: &[u8],
        check: impl FnOnce() -> Option<C>,
    ) -> Result<C, SecretRefusal> {
        let (hash, limit) = (self.addresses.hash_secret(secret), self.secret_limit());
        let taken = self.addresses.take_secret(block, hash, limit, self.now()).map_err(|wait| {
            self.counts.add(Event::SecretRefused, 1);
            SecretRefusal::Unchecked(wait)
        })?;
        let caller = check();
        if caller.is_none() {
            self.counts.add_wrong_secret(block);
        }
        self.addresses.settle_secret(block, taken, caller.is_some(), limit, self.now());
        caller.ok_or(SecretRefusal::Wrong)
    }

    fn secret_limit(&self) -> RateLimit {
        RateLimit { burst: self.settings.wrong_secrets_max, interval: SECRET_INTERVAL }
    }

    fn stranger_limit(&self) -> RateLimit {
        let burst = self.settings.stranger_requests_max;
        RateLimit { burst, interval: Duration::from_secs(1) / burst.max(1) }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn coarse_now(&self) -> u64 {
        self.coarse_clock.load(Ordering::Relaxed)
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Defense {
    fn default() -> Self {
        Self::new(DefenseSettings::default())
    }
}

impl fmt::Debug for Defense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Defense").field("settings", &self.settings).finish_non_exhaustive()
    }
}
