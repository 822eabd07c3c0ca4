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

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: AddressBlock = AddressBlock::V4([10, 0, 0, 1]);
    const IDLE_MIN: Duration = Duration::from_secs(10);

    /// Opens a connection whose task never ends by itself.
    fn open(connections: &mut Connections, is_authenticated: bool, active_at: u64) -> u64 {
        let connection = connections.open(HERE, active_at);
        connection.is_authenticated.store(is_authenticated, Ordering::Relaxed);
        connections.set_task(connection.id, tokio::spawn(std::future::pending::<()>()).abort_handle());
        connection.id
    }

    fn ids(closed: Vec<Arc<Connection>>) -> Vec<u64> {
        closed.into_iter().map(|connection| connection.id).collect()
    }

    #[tokio::test]
    async fn the_unauthenticated_are_closed_first_and_then_those_idle_longest() {
        let mut connections = Connections::default();
        let caller = open(&mut connections, true, 1_000);
        let late = open(&mut connections, true, 20_000);
        let stranger = open(&mut connections, false, 30_000);
        let early = open(&mut connections, true, 500);
        let busy = open(&mut connections, true, 0);
        connections.open[&busy].connection.is_busy.store(true, Ordering::Relaxed);
        assert_eq!(ids(connections.close_idle(1, IDLE_MIN, 32_000)), [stranger]);
        assert_eq!(ids(connections.close_idle(2, IDLE_MIN, 32_001)), [early, caller]);
        assert_eq!(
            ids(connections.close_idle(9, IDLE_MIN, 29_999)),
            [0; 0],
            "idle for less than ten seconds"
        );
        assert_eq!(ids(connections.close_idle(9, IDLE_MIN, 30_000)), [late], "the busy one is served");
        assert_eq!((connections.count(), connections.count_of(HERE)), (1, 1));
    }

    #[tokio::test]
    async fn a_stranger_that_has_just_connected_may_still_authenticate() {
        let mut connections = Connections::default();
        let stranger = open(&mut connections, false, 5_000);
        assert_eq!(ids(connections.close_idle(1, IDLE_MIN, 6_999)), [0; 0]);
        assert_eq!(ids(connections.close_idle(1, IDLE_MIN, 7_000)), [stranger]);
    }

    #[tokio::test]
    async fn the_largest_are_closed_until_enough_is_released_and_strangers_before_callers() {
        let mut connections = Connections::default();
        let budget = super::super::memory::MemoryBudget::new(usize::MAX);
        let mut sized = |is_authenticated, kilobytes: usize| {
            let id = open(&mut connections, is_authenticated, 0);
            budget.set(&connections.open[&id].connection.share, kilobytes * 1024);
            id
        };
        let [_small, caller, large, larger] =
            [sized(false, 16), sized(true, 4_000), sized(false, 64), sized(false, 128)];
        let floor = 16 * 1024;
        assert_eq!(ids(connections.close_largest(100 * 1024, floor)), [larger]);
        assert_eq!(ids(connections.close_largest(100 * 1024, floor)), [large, caller]);
        assert_eq!(
            ids(connections.close_largest(1, floor)),
            [0; 0],
            "it holds no more than every connection"
        );
    }

    #[tokio::test]
    async fn a_connection_for_probes_gives_way_to_the_next_beyond_their_number() {
        let mut connections = Connections::default();
        let tasks: Vec<_> = (0..=PROBES_MAX).map(|_| tokio::spawn(std::future::pending::<()>())).collect();
        let mut probes = Vec::new();
        for task in &tasks {
            probes.push(connections.open_probe());
            connections.set_probe_task(probes[probes.len() - 1], task.abort_handle());
        }
        assert_eq!(connections.probes.len(), PROBES_MAX);
        let mut tasks = tasks.into_iter();
        assert!(tasks.next().unwrap().await.unwrap_err().is_cancelled(), "the oldest");
        assert!(tasks.all(|task| !task.is_finished()));
        connections.remove_probe(probes[5]);
        assert_eq!(connections.probes.len(), PROBES_MAX - 1);
    }
}
