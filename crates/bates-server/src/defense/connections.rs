//! The open connections of both ports: how many there are, in all and from each address, and which one is closed when
//! slots or memory run out. Must never end a connection that is served while an idle one would do.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::AbortHandle;

use super::address::AddressBlock;
use super::memory::Share;

/// An unauthenticated connection is idle after this time.
const STRANGER_IDLE_MIN: Duration = Duration::from_secs(2);
/// Connections that serve only probes while all slots are taken. The oldest gives way to the next.
const PROBES_MAX: usize = 256;

/// What the table and the task of a connection both know.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) id: u64,
    pub(super) block: AddressBlock,
    pub(super) share: Share,
    pub(super) is_authenticated: AtomicBool,
    /// Whether a request is being served.
    pub(super) is_busy: AtomicBool,
    /// When it was last served, in milliseconds of the coarse clock.
    pub(super) active_at: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct Connections {
    last_id: u64,
    open: HashMap<u64, Entry>,
    by_block: HashMap<AddressBlock, usize>,
    probes: VecDeque<(u64, AbortHandle)>,
    /// When a search last found no idle connection.
    none_idle_at: Option<u64>,
}

#[derive(Debug)]
struct Entry {
    connection: Arc<Connection>,
    /// `None` until its task runs.
    task: Option<AbortHandle>,
}

impl Connections {
    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    pub(super) fn count_of(&self, block: AddressBlock) -> usize {
        self.by_block.get(&block).copied().unwrap_or(0)
    }

    pub(super) fn open(&mut self, block: AddressBlock, now_ms: u64) -> Arc<Connection> {
        self.last_id += 1;
        let connection = Arc::new(Connection {
            id: self.last_id,
            block,
            share: Share::default(),
            is_authenticated: AtomicBool::new(false),
            is_busy: AtomicBool::new(false),
            active_at: AtomicU64::new(now_ms),
        });
        self.open.insert(self.last_id, Entry { connection: connection.clone(), task: None });
        *self.by_block.entry(block).or_default() += 1;
        connection
    }

    /// Lets the connection be closed by ending its task.
    pub(super) fn set_task(&mut self, id: u64, task: AbortHandle) {
        if let Some(entry) = self.open.get_mut(&id) {
            entry.task = Some(task);
        }
    }

    /// Returns the connection, if it was open.
    pub(super) fn remove(&mut self, id: u64) -> Option<Arc<Connection>> {
        let Entry { connection, .. } = self.open.remove(&id)?;
        if let Some(count) = self.by_block.get_mut(&connection.block) {
            *count -= 1;
            if *count == 0 {
                self.by_block.remove(&connection.block);
            }
        }
        Some(connection)
    }

    /// Adds a connection that serves only probes.
    pub(super) fn open_probe(&mut self) -> u64 {
        self.last_id += 1;
        if self.probes.len() >= PROBES_MAX
            && let Some((_, task)) = self.probes.pop_front()
        {
            task.abort();
        }
        self.last_id
    }

    pub(super) fn set_probe_task(&mut self, id: u64, task: AbortHandle) {
        self.probes.push_back((id, task));
    }

    pub(super) fn remove_probe(&mut self, id: u64) {
        self.probes.retain(|(probe, _)| *probe != id);
    }

    /// Closes at most `count` idle connections: the unauthenticated first, then those idle longest. Returns them.
    pub(super) fn close_idle(
        &mut self,
        count: usize,
        idle_min: Duration,
        now_ms: u64,
    ) -> Vec<Arc<Connection>> {
        // A search over all connections for each one that is refused would cost more than the connection.
        if self.none_idle_at == Some(now_ms) {
            return Vec::new();
        }
        let is_idle = |connection: &Connection| {
            let is_authenticated = connection.is_authenticated.load(Ordering::Relaxed);
            let idle_min = if is_authenticated { idle_min } else { idle_min.min(STRANGER_IDLE_MIN) };
            let idle = now_ms.saturating_sub(connection.active_at.load(Ordering::Relaxed));
            !connection.is_busy.load(Ordering::Relaxed) && u128::from(idle) >= idle_min.as_millis()
        };
        let mut idle: Vec<_> = self
            .open
            .values()
            .filter(|entry| entry.task.is_some() && is_idle(&entry.connection))
            .map(|Entry { connection, .. }| {
                let is_authenticated = connection.is_authenticated.load(Ordering::Relaxed);
                (is_authenticated, connection.active_at.load(Ordering::Relaxed), connection.id)
            })
            .collect();
        self.none_idle_at = idle.is_empty().then_some(now_ms);
        idle.sort_unstable();
        idle.truncate(count);
        idle.into_iter().filter_map(|(.., id)| self.close(id)).collect()
    }

    /// Closes the largest connections until they have released `bytes`, the unauthenticated first. Only those that hold
    /// more than `bytes_min` count. Returns them.
    pub(super) fn close_largest(&mut self, bytes: usize, bytes_min: usize) -> Vec<Arc<Connection>> {
        let mut large: Vec<_> = self
            .open
            .values()
            .map(|Entry { connection, .. }| {
                let is_authenticated = connection.is_authenticated.load(Ordering::Relaxed);
                (is_authenticated, usize::MAX - connection.share.bytes(), connection.id)
            })
            .filter(|(_, rest, _)| usize::MAX - rest > bytes_min)
            .collect();
        large.sort_unstable();
        let (mut closed, mut released) = (Vec::new(), 0);
        for (_, rest, id) in large {
            if released >= bytes {
                break;
            }
            if let Some(connection) = self.close(id) {
                released += usize::MAX - rest;
                closed.push(connection);
            }
        }
        closed
    }

    fn close(&mut self, id: u64) -> Option<Arc<Connection>> {
        // Ends at the next await of the task, which drops the socket and all buffers.
        self.open.get(&id)?.task.as_ref()?.abort();
        self.remove(id)
    }
}
