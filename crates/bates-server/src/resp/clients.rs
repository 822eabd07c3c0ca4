//! Who is connected, for `CLIENT ID`, `INFO` and `LIST`. Owns the identity of connections. Must never be touched
//! by a command that gives numbers: those know nothing of other clients.

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
    address: Option<SocketAddr>,
    local_address: Option<SocketAddr>,
    since: Instant,
    said: Said,
}

/// What a client says of itself, by `CLIENT SETNAME`, `CLIENT SETINFO` and `HELLO`.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) name: String,
    pub(super) library: String,
    pub(super) library_version: String,
    pub(super) protocol: Protocol,
}

impl Clients {
    /// Lists a connection until its seat is dropped.
    pub(super) fn enter(
        self: &Arc<Self>,
        address: Option<SocketAddr>,
        local_address: Option<SocketAddr>,
    ) -> Seat {
        let client = Client { address, local_address, since: Instant::now(), said: Said::default() };
        let mut state = self.state();
        state.last_id += 1;
        let id = state.last_id;
        state.connected.insert(id, client);
        drop(state);
        Seat { id, clients: self.clone() }
    }

    pub(super) fn count(&self) -> usize {
        self.state().connected.len()
    }

    /// A line for each connection that `is_wanted`, the oldest first.
    pub(super) fn lines(&self, is_wanted: impl Fn(u64) -> bool) -> String {
        let mut lines = String::new();
        let spell = |of: Option<SocketAddr>| of.map_or_else(String::new, |of| of.to_string());
        for (id, client) in self.state().connected.iter().filter(|(id, _)| is_wanted(**id)) {
            let Said { name, library, library_version, protocol } = &client.said;
            let (peer, local) = (spell(client.address), spell(client.local_address));
            let (age, resp) = (client.since.elapsed().as_secs(), protocol.version());
            let line = writeln!(
                lines,
                "id={id} addr={peer} laddr={local} name={name} age={age} flags=N db=0 resp={resp} \
                 lib-name={library} lib-ver={library_version}"
            );
            line.expect("a String takes all that is written to it");
        }
        lines
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(super) struct Seat {
    /// Never given twice while the server runs.
    pub(super) id: u64,
    clients: Arc<Clients>,
}

impl Seat {
    pub(super) fn said(&self) -> Said {
        self.clients.state().connected.get(&self.id).map(|client| client.said.clone()).unwrap_or_default()
    }

    pub(super) fn note(&self, note: impl FnOnce(&mut Said)) {
        if let Some(client) = self.clients.state().connected.get_mut(&self.id) {
            note(&mut client.said);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.clients.state().connected.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_listed_while_it_is_held_and_its_id_is_not_given_again() {
        let clients: Arc<Clients> = Arc::default();
        let (first, second) = (clients.enter(None, None), clients.enter(None, None));
        second.note(|said| said.name = "worker".to_owned());
        assert_eq!((first.id, second.id, clients.count()), (1, 2, 2));
        assert!(clients.lines(|id| id == 2).contains(" name=worker "));
        drop(second);
        assert_eq!(clients.lines(|_| true).lines().count(), 1);
        assert_eq!(clients.enter(None, None).id, 3);
    }
}
