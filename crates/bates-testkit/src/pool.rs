//! Lists in memory, for tests of the filler. Must never replace Redis in tests of its adapter.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bates_core::{
    ListRefusal, ListStatus, PoolFuture, PoolServer, PushRequest, Runtime, ServerIdentity, ServerStatus,
};

/// Lists that last as long as the value does. Clones share them.
#[derive(Clone)]
pub struct MemoryPool {
    memory: Arc<Mutex<Memory>>,
    runtime: Arc<dyn Runtime>,
}

/// The data of the server.
#[derive(Clone, Default)]
pub struct Memory {
    /// Counts starts of the server.
    starts: u64,
    lists: BTreeMap<Box<str>, List>,
    locks: BTreeMap<Box<str>, Lock>,
}

#[derive(Clone, Default)]
struct List {
    numbers: VecDeque<String>,
    marker: Option<Marker>,
}

#[derive(Clone, Copy)]
struct Marker {
    epoch: u64,
    fence: u64,
    to: u64,
}

#[derive(Clone)]
struct Lock {
    token: Box<str>,
    until: Duration,
}

impl MemoryPool {
    /// A server without lists.
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self { memory: Arc::default(), runtime }
    }

    /// Takes a number, as a plain Redis client does.
    pub fn pop(&self, key: &str) -> Option<String> {
        self.memory().lists.get_mut(key)?.numbers.pop_front()
    }

    /// A copy of the current data.
    pub fn snapshot(&self) -> Memory {
        self.memory().clone()
    }

    /// Restarts the server with earlier data.
    pub fn restart(&self, from: Memory) {
        let mut memory = self.memory();
        *memory = Memory { starts: memory.starts + 1, locks: BTreeMap::new(), ..from };
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn server(&self) -> ServerIdentity {
        ServerIdentity { run: format!("run {}", self.starts).into(), replication: "one".into() }
    }

    fn is_locked_by(&self, key: &str, token: &str, now: Duration) -> bool {
        self.locks.get(key).is_some_and(|lock| &*lock.token == token && lock.until > now)
    }

    fn push(&mut self, key: &str, push: &PushRequest<'_>, is_locked: bool) -> Result<(), ListRefusal> {
        if *push.server != self.server() {
            return Err(ListRefusal::Server(self.server()));
        }
        let list = self.lists.entry(key.into()).or_default();
        let marker = list.marker.as_mut().filter(|marker| marker.epoch == push.epoch);
        let marker = marker.ok_or(ListRefusal::Epoch(None))?;
        if push.fence == marker.fence && push.to <= marker.to {
            return Ok(());
        }
        if push.fence < marker.fence || push.from < marker.to || !is_locked {
            return Err(ListRefusal::Fenced);
        }
        (marker.fence, marker.to) = (push.fence, push.to);
        list.numbers.extend(push.numbers.values().map(str::to_owned));
        Ok(())
    }
}

fn answer<'a, T: Send + 'a>(answer: T) -> PoolFuture<'a, T> {
    Box::pin(async move { Ok(answer) })
}

impl PoolServer for MemoryPool {
    fn status<'a>(&'a self, keys: &'a [Box<str>]) -> PoolFuture<'a, ServerStatus> {
        let memory = self.memory();
        let list_status = |key: &str| {
            let list = memory.lists.get(key).cloned().unwrap_or_default();
            ListStatus {
                level: list.numbers.len() as u64,
                head: list.numbers.front().map(|head| head.as_str().into()),
                epoch: list.marker.map(|marker| marker.epoch),
                pushed_to: list.marker.map(|marker| marker.to),
                ..ListStatus::default()
            }
        };
        answer(ServerStatus {
            server: memory.server(),
            lists: keys.iter().map(|key| list_status(key)).collect(),
        })
    }

    fn lock<'a>(&'a self, key: &'a str, token: &'a str, ttl: Duration) -> PoolFuture<'a, bool> {
        let (now, mut memory) = (self.runtime.elapsed(), self.memory());
        let is_free = memory.locks.get(key).is_none_or(|lock| lock.until <= now);
        if is_free {
            memory.locks.insert(key.into(), Lock { token: token.into(), until: now + ttl });
        }
        answer(is_free)
    }

    fn extend<'a>(&'a self, key: &'a str, token: &'a str, ttl: Duration) -> PoolFuture<'a, bool> {
        let (now, mut memory) = (self.runtime.elapsed(), self.memory());
        let is_locked = memory.is_locked_by(key, token, now);
        if let Some(lock) = memory.locks.get_mut(key).filter(|_| is_locked) {
            lock.until = now + ttl;
        }
        answer(is_locked)
    }

    fn unlock<'a>(&'a self, key: &'a str, token: &'a str) -> PoolFuture<'a, ()> {
        self.memory().locks.retain(|locked, lock| &**locked != key || &*lock.token != token);
        answer(())
    }

    fn discard<'a>(&'a self, lists: &'a [(Box<str>, u64)], server: &'a ServerIdentity) -> PoolFuture<'a, ()> {
        let mut memory = self.memory();
        if *server == memory.server() {
            for (key, epoch) in lists {
                let is_old = |list: &List| list.marker.is_none_or(|marker| marker.epoch <= *epoch);
                if memory.lists.get(key).is_some_and(is_old) {
                    memory.lists.remove(key);
                }
            }
        }
        answer(())
    }

    fn renew<'a>(
        &'a self,
        key: &'a str,
        epoch: u64,
        server: &'a ServerIdentity,
    ) -> PoolFuture<'a, Result<(), ListRefusal>> {
        let mut memory = self.memory();
        if *server != memory.server() {
            return answer(Err(ListRefusal::Server(memory.server())));
        }
        let found = memory.lists.get(key).and_then(|list| list.marker).map(|marker| marker.epoch);
        if found.is_some_and(|found| found >= epoch) {
            return answer(Err(ListRefusal::Epoch(found)));
        }
        let marker = Some(Marker { epoch, fence: 0, to: 0 });
        memory.lists.insert(key.into(), List { numbers: VecDeque::new(), marker });
        answer(Ok(()))
    }

    fn push<'a>(&'a self, key: &str, push: PushRequest<'_>) -> PoolFuture<'a, Result<(), ListRefusal>> {
        let mut memory = self.memory();
        let is_locked = memory.is_locked_by(key, push.token, self.runtime.elapsed());
        answer(memory.push(key, &push, is_locked))
    }

    fn describe(&self) -> String {
        "lists in memory".to_owned()
    }
}
