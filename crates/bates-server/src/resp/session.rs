//! What a connection is between two commands.

use std::sync::Arc;

use super::clients::Seat;
use super::front::Front;
use super::{Limits, Protocol};

/// Wrong secrets that a connection may send; then it is closed.
const WRONG_SECRETS_MAX: u32 = 10;

/// The state of a connection.
#[derive(Debug)]
pub(super) struct Session {
    /// The version that `HELLO` asked for.
    pub(super) protocol: Protocol,
    /// Room for the key of a scope, kept from one command to the next.
    pub(super) scope: String,
    /// Its place among the connections.
    pub(super) seat: Seat,
    /// What it shares with them.
    pub(super) front: Arc<Front>,
    /// Whether the last command named a series that this node does not know; another one may have made it.
    pub(super) has_missed: bool,
    is_admitted: bool,
    wrong_secrets: u32,
}

/// What came of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was right.
    Admitted,
    /// It was wrong.
    Wrong,
    /// It was wrong once too often.
    WrongTooOften,
}

impl Session {
    pub(super) fn new(front: Arc<Front>, seat: Seat) -> Self {
        let is_admitted = front.settings.access.is_open();
        let (protocol, scope) = (Protocol::default(), String::new());
        Self { protocol, scope, seat, front, has_missed: false, is_admitted, wrong_secrets: 0 }
    }

    /// Whether the client has shown the secret, or needs none.
    #[inline]
    pub(super) fn is_admitted(&self) -> bool {
        self.is_admitted
    }

    /// What the client may send.
    pub(super) fn limits(&self) -> Limits {
        if self.is_admitted { Limits::AUTHENTICATED } else { Limits::UNAUTHENTICATED }
    }

    /// Looks at a secret. A wrong one takes nothing away from a client that was admitted before.
    pub(super) fn show_secret(&mut self, user: &[u8], secret: &[u8]) -> Verdict {
        // The digest is computed for any user, so that time does not tell which one is right.
        let is_right = self.front.settings.access.admits(secret);
        if is_right && user == b"default" {
            self.is_admitted = true;
            return Verdict::Admitted;
        }
        self.wrong_secrets += 1;
        if self.wrong_secrets < WRONG_SECRETS_MAX { Verdict::Wrong } else { Verdict::WrongTooOften }
    }

    /// Changes the version of the protocol.
    pub(super) fn speak(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        self.seat.note(|said| said.protocol = protocol);
    }

    /// As it was when the client connected; wrong secrets stay counted.
    pub(super) fn reset(&mut self) {
        self.is_admitted = self.front.settings.access.is_open();
        self.protocol = Protocol::default();
        self.seat.note(|said| *said = super::clients::Said::default());
    }
}
