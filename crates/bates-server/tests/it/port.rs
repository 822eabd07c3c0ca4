//! A port of the Redis protocol on a store in memory, within this process, because some settings that tests
//! need are not in the configuration of a server.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bates_core::store::prelude::*;
use bates_core::{KeyTemplate, Machine, Promise, ScopeId, ScopeKey, SeriesSpec};
use bates_server::{Access, resp};
use bates_testkit::{FakeClock, MemoryStore};
use tokio::sync::oneshot;

/// A microsecond before a full second, so that a lost digit shows.
const NOW: &str = "2027-01-15T08:00:00.999999Z";

/// A running port, which stops when dropped.
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

pub(crate) fn settings(secret: Option<&str>) -> resp::Settings {
    resp::Settings::new(Arc::new(Access::new(secret)))
}

impl Port {
    /// Opens a port without a secret.
    pub(crate) fn open() -> Self {
        Self::open_with(settings(None), Arc::default())
    }

    pub(crate) fn open_with(settings: resp::Settings, store: Arc<MemoryStore>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (send_address, address) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
                let machine =
                    Arc::new(Machine::open(store, series(), Arc::new(FakeClock::at(NOW))).await.unwrap());
                send_address.send(listener.local_addr().unwrap()).unwrap();
                // A dropped sender also means stop.
                let stop = async { drop(stopped.await) };
                resp::serve(listener, machine, settings, stop).await;
            });
        });
        Self { address: address.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    /// Sends bytes, closes the sending side, and returns all that the server answers.
    pub(crate) fn talk(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // The server may close before it has read everything.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        // A second panic would abort the test process.
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))));
    }
}

/// A scope of the series `counter`.
pub(crate) fn counter(name: &str) -> ScopeId {
    ScopeId { series: "counter".parse().unwrap(), scope: ScopeKey::new([("name", name)], None).unwrap() }
}

/// A store in which `counter:a` has `left` numbers left.
pub(crate) fn nearly_exhausted(left: u64) -> Arc<MemoryStore> {
    let store: Arc<MemoryStore> = Arc::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        Machine::open(store.clone(), series(), Arc::new(FakeClock::at(NOW))).await.unwrap();
        store.raise_floor(counter("a"), (1 << 53) - left, None).await.unwrap();
    });
    store
}

fn series() -> Vec<SeriesSpec> {
    let spec = |name: &str, template: &str, promise, key| SeriesSpec {
        promise,
        key: Some(KeyTemplate::parse(key).unwrap()),
        ..SeriesSpec::new(name.parse().unwrap(), template)
    };
    vec![
        spec("counter", "{seq}", Promise::Ordered, "counter:{name}"),
        spec("text", "T-{seq:6}", Promise::Unique, "text"),
        spec("tiny", "{seq:1}", Promise::Unique, "tiny"),
    ]
}
