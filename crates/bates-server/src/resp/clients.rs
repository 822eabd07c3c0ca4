//! The connected clients and their ids, for `CLIENT` and `INFO`. A command that issues numbers must never lock them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::Protocol;

#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    connected: BTreeMap<u64, Client>,
}

#[derive(Clone, Debug)]
struct Client {
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    since: Instant,
    info: ClientInfo,
}

/// The fields that a client sets with `CLIENT SETNAME`, `CLIENT SETINFO` and `HELLO`.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientInfo {
    pub(super) name: String,
    pub(super) library: String,
    pub(super) library_version: String,
    pub(super) protocol: Protocol,
}

impl Clients {
    /// Lists a connection until its handle is dropped.
    pub(super) fn register(self: &Arc<Self>, peer: Option<SocketAddr>, local: Option<SocketAddr>) -> Handle {
        let client = Client { peer, local, since: Instant::now(), info: ClientInfo::default() };
        let mut state = self.state();
        state.last_id += 1;
        let id = state.last_id;
        state.connected.insert(id, client);
        drop(state);
        Handle { id, clients: self.clone() }
    }

    pub(super) fn count(&self) -> usize {
        self.state().connected.len()
    }

    /// A line for each connection whose id passes the filter, the oldest first.
    pub(super) fn lines(&self, filter: impl Fn(u64) -> bool) -> String {
        let mut lines = String::new();
        let text = |address: Option<SocketAddr>| address.map(|it| it.to_string()).unwrap_or_default();
        for (id, client) in self.state().connected.iter().filter(|(id, _)| filter(**id)) {
            let ClientInfo { name, library, library_version, protocol } = &client.info;
            let (peer, local) = (text(client.peer), text(client.local));
            let (age, resp) = (client.since.elapsed().as_secs(), protocol.version());
            let _ = writeln!(
                lines,
                "id={id} addr={peer} laddr={local} name={name} age={age} flags=N db=0 resp={resp} \
                 lib-name={library} lib-ver={library_version}"
            );
        }
        lines
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(super) struct Handle {
    /// Never reused while the server runs.
    pub(super) id: u64,
    clients: Arc<Clients>,
}

impl Handle {
    pub(super) fn info(&self) -> ClientInfo {
        self.clients.state().connected.get(&self.id).map(|client| client.info.clone()).unwrap_or_default()
    }

    pub(super) fn update(&self, update: impl FnOnce(&mut ClientInfo)) {
        if let Some(client) = self.clients.state().connected.get_mut(&self.id) {
            update(&mut client.info);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.clients.state().connected.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_listed_until_its_handle_is_dropped_and_its_id_is_not_reused() {
        let clients: Arc<Clients> = Arc::default();
        let (first, second) = (clients.register(None, None), clients.register(None, None));
        second.update(|info| info.name = "worker".to_owned());
        assert_eq!((first.id, second.id, clients.count()), (1, 2, 2));
        assert!(clients.lines(|id| id == 2).contains(" name=worker "));
        drop(second);
        assert_eq!(clients.lines(|_| true).lines().count(), 1);
        assert_eq!(clients.register(None, None).id, 3);
    }
}
