//! What a connection is between two commands.

use std::sync::Arc;

use super::clients::Seat;
use super::listener::Front;
use super::{Limits, Protocol};
use crate::Caller;

/// Wrong secrets that a connection may send; then it is closed.
const WRONG_SECRETS_MAX: u32 = 10;

#[derive(Debug)]
pub(super) struct Session {
    pub(super) protocol: Protocol,
    /// Room for the key of a scope, kept from one command to the next.
    pub(super) scope: String,
    pub(super) seat: Seat,
    pub(super) front: Arc<Front>,
    /// The client by its address.
    stranger: Caller,
    /// `None` until the client is admitted.
    caller: Option<Caller>,
    wrong_secrets: u32,
}

impl Session {
    pub(super) fn new(front: Arc<Front>, seat: Seat, stranger: Caller) -> Self {
        let caller = front.settings.access.is_open().then(|| stranger.clone());
        let (protocol, scope) = (Protocol::default(), String::new());
        Self { protocol, scope, seat, front, stranger, caller, wrong_secrets: 0 }
    }

    #[inline]
    pub(super) fn is_admitted(&self) -> bool {
        self.caller.is_some()
    }

    pub(super) fn caller(&self) -> &Caller {
        self.caller.as_ref().unwrap_or(&self.stranger)
    }

    pub(super) fn limits(&self) -> Limits {
        if self.is_admitted() { Limits::AUTHENTICATED } else { Limits::UNAUTHENTICATED }
    }

    /// Whether a secret is right. A wrong one leaves a client that was admitted before as it was. Any secret is right
    /// for the user `default`, which is what clients send that know no other.
    pub(super) fn show_secret(&mut self, user: &[u8], secret: &[u8]) -> bool {
        // The digest is computed for any user, so that time does not tell which one is right.
        let caller = self.front.settings.access.authenticate(secret, &self.stranger);
        let caller = caller.filter(|it| user == b"default" || Some(user) == it.token().map(str::as_bytes));
        let is_right = caller.is_some();
        self.caller = caller.or(self.caller.take());
        self.wrong_secrets += u32::from(!is_right);
        is_right
    }

    pub(super) fn was_wrong_too_often(&self) -> bool {
        self.wrong_secrets >= WRONG_SECRETS_MAX
    }

    pub(super) fn speak(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        self.seat.note(|said| said.protocol = protocol);
    }

    /// As it was when the client connected; wrong secrets stay counted.
    pub(super) fn reset(&mut self) {
        self.caller = self.front.settings.access.is_open().then(|| self.stranger.clone());
        self.protocol = Protocol::default();
        self.seat.note(|said| *said = super::clients::Said::default());
    }
}
