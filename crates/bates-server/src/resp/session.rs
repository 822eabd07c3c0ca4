//! The state of a connection between commands.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{Denial, Right, SeriesEntry};

use super::clients::{ClientInfo, Handle};
use super::listener::Shared;
use super::transaction::Transaction;
use super::{Limits, Protocol};
use crate::defense::{SecretRefusal, Slot};
use crate::{Caller, Peer};

/// Wrong secrets that a connection may send; then it is closed.
const WRONG_SECRETS_MAX: u32 = 10;

#[derive(Debug)]
pub(super) struct Session {
    pub(super) protocol: Protocol,
    /// Scratch space for a scope key, reused by each command.
    pub(super) scope_buffer: String,
    pub(super) client: Handle,
    pub(super) shared: Arc<Shared>,
    /// The client, named by its address.
    peer: Caller,
    /// The caller before any secret: by its certificate, or on a server without secrets.
    first_caller: Option<Caller>,
    /// `None` until the client is authenticated.
    caller: Option<Caller>,
    /// From `MULTI` to `EXEC`.
    pub(super) transaction: Option<Box<Transaction>>,
    /// To which the client subscribed.
    pub(super) channels: BTreeSet<Box<[u8]>>,
    wrong_secrets: u32,
    pub(super) slot: Slot,
    /// Requests that count as those of a stranger unless the client authenticates.
    pending_requests: u32,
    /// Whether the next command counts with the connection.
    is_prepaid: bool,
}

impl Session {
    /// `is_counted`: the connection counts as the request of a stranger until the client authenticates.
    pub(super) fn new(
        shared: Arc<Shared>,
        client: Handle,
        peer: &Peer,
        slot: Slot,
        is_counted: bool,
    ) -> Self {
        let first_caller = shared.settings.access.caller_without_secret(peer);
        let (caller, peer) = (first_caller.clone(), peer.caller.clone());
        let (protocol, scope_buffer) = (Protocol::default(), String::new());
        let (wrong_secrets, pending_requests) = (0, u32::from(is_counted));
        let is_authenticated = caller.is_some();
        let mut session = Self {
            protocol,
            scope_buffer,
            client,
            shared,
            peer,
            first_caller,
            caller,
            transaction: None,
            channels: BTreeSet::new(),
            wrong_secrets,
            slot,
            pending_requests,
            is_prepaid: is_counted,
        };
        if is_authenticated {
            session.set_authenticated();
        }
        session
    }

    #[inline]
    pub(super) fn is_authenticated(&self) -> bool {
        self.caller.is_some()
    }

    /// Ends the authentication of a caller whose secret is no longer valid. Returns whether the limits changed. On the hot
    /// path.
    #[inline]
    pub(super) fn end_invalid_caller(&mut self) -> bool {
        let has_ended = self.has_invalid_caller();
        if has_ended {
            self.end_caller();
        }
        has_ended
    }

    /// Whether the secret of the caller is no longer valid.
    #[inline]
    pub(super) fn has_invalid_caller(&self) -> bool {
        self.caller.as_ref().is_some_and(Caller::has_ended)
    }

    #[cold]
    fn end_caller(&mut self) {
        self.caller = self.first_caller.clone();
        // Another caller must not execute what this one queued.
        if let Some(transaction) = &mut self.transaction {
            transaction.refuse();
        }
    }

    pub(super) fn caller(&self) -> &Caller {
        self.caller.as_ref().unwrap_or(&self.peer)
    }

    /// Whether the caller may use a series so.
    #[inline]
    pub(super) fn check(&self, right: Right, entry: &SeriesEntry) -> Result<(), Denial> {
        self.caller().permissions().check(right, entry.series().name())
    }

    /// Whether the caller may use the scope of a key so.
    #[inline]
    pub(super) fn check_key(&self, right: Right, entry: &SeriesEntry, key: &str) -> Result<(), Denial> {
        self.check(right, entry)?;
        if self.caller().permissions().has_all_scopes() {
            return Ok(());
        }
        let parameters = entry.key().and_then(|template| template.read(key));
        self.caller().permissions().check_scope(&parameters.map_or_else(Vec::new, Iterator::collect))
    }

    pub(super) fn limits(&self) -> Limits {
        if self.is_authenticated() { Limits::AUTHENTICATED } else { Limits::UNAUTHENTICATED }
    }

    /// A wrong secret does not end an earlier authentication. The user `default` accepts the secret of any token: clients
    /// send it if no user is configured.
    pub(super) fn authenticate(&mut self, user: &[u8], secret: &[u8]) -> Result<(), SecretRefusal> {
        let checked = self.slot.check_secret(secret, || {
            // Compared for every user, so that the time does not reveal which users exist.
            let caller = self.shared.settings.access.authenticate(secret, &self.peer);
            caller.filter(|it| user == b"default" || Some(user) == it.token().map(str::as_bytes))
        });
        match checked {
            Ok(caller) => {
                self.caller = Some(caller);
                self.set_authenticated();
                Ok(())
            }
            Err(refusal) => {
                self.wrong_secrets += 1;
                Err(refusal)
            }
        }
    }

    fn set_authenticated(&mut self) {
        self.slot.set_authenticated(true);
        for _ in 0..std::mem::take(&mut self.pending_requests) {
            self.slot.give_back_stranger_request();
        }
    }

    /// Counts a command of a client that is not authenticated. An error: too many came from its address, and this is not an
    /// attempt to authenticate where others could.
    pub(super) fn count_stranger(&mut self, is_login: bool) -> Result<(), Duration> {
        if std::mem::take(&mut self.is_prepaid) {
            return Ok(());
        }
        match self.slot.take_stranger_request() {
            Ok(()) => {
                self.pending_requests += u32::from(is_login);
                Ok(())
            }
            Err(_) if is_login && self.slot.has_callers() => Ok(()),
            Err(wait) => Err(wait),
        }
    }

    pub(super) fn has_too_many_wrong_secrets(&self) -> bool {
        self.wrong_secrets >= WRONG_SECRETS_MAX
    }

    pub(super) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        self.client.update(|info| info.protocol = protocol);
    }

    /// Returns to the state at the start of the connection, except for the count of wrong secrets.
    pub(super) fn reset(&mut self) {
        self.transaction = None;
        self.channels.clear();
        self.caller = self.first_caller.clone();
        self.slot.set_authenticated(self.caller.is_some());
        self.protocol = Protocol::default();
        self.client.update(|info| *info = ClientInfo::default());
    }
}
