//! The door: who is let in, before anything of a request is looked at.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Request, header};
use bates_core::Code;

use super::openg2p;
use super::problem::Problem;
use crate::{Access, Caller};

#[derive(Clone, Debug)]
pub struct Settings {
    pub access: Arc<Access>,
    /// For the head of a request to arrive whole, or the connection is dropped.
    pub head_timeout: Duration,
    /// For a body to arrive whole, or it is refused.
    pub body_timeout: Duration,
    /// Whether the OpenG2P contract needs no secret: its clients know none.
    pub openg2p_is_open: bool,
    /// A client that takes nothing of its answer in this time is disconnected.
    pub write_timeout: Duration,
}

impl Settings {
    /// With timeouts that slow networks do not reach.
    pub fn new(access: Arc<Access>) -> Self {
        let patience = Duration::from_mins(1);
        let (head_timeout, body_timeout, write_timeout) = (patience, patience / 2, patience);
        Self { access, head_timeout, body_timeout, openg2p_is_open: false, write_timeout }
    }

    /// The caller of a request on the connection of `stranger`, or why it is not let in.
    pub(super) fn admit<B>(&self, request: &Request<B>, stranger: &Caller) -> Result<Caller, Problem> {
        let path = request.uri().path();
        if is_public(path) {
            return Ok(stranger.clone());
        }
        // A secret that is not needed must be right all the same.
        let is_silent = !request.headers().contains_key(header::AUTHORIZATION);
        let is_open = self.openg2p_is_open && openg2p::is_here(path) && is_silent;
        let caller = self.caller(request.headers(), stranger).or_else(|| is_open.then(|| stranger.clone()));
        let unknown = || Problem::new(Code::UNAUTHORIZED, "send Authorization: Bearer with the secret");
        let caller = caller.ok_or_else(unknown)?;
        // Without this, any page in a browser on this machine could take numbers.
        if self.is_foreign(request.headers()) {
            return Err(Problem::new(Code::CROSS_ORIGIN, "the request comes from a page of another site"));
        }
        Ok(caller)
    }

    /// Whether a browser sent it for a page that is not the server's own. Without a secret the page must also be of this
    /// machine by name: the name of an attacker's site may point here as well.
    fn is_foreign(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else { return false };
        let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
        let of_origin = origin.as_bytes().splitn(2, |byte| *byte == b':').nth(1);
        let of_origin = of_origin.and_then(|rest| rest.strip_prefix(b"//"));
        of_origin != host || self.access.is_open() && !of_origin.is_some_and(is_this_machine)
    }

    fn caller(&self, headers: &HeaderMap, stranger: &Caller) -> Option<Caller> {
        if self.access.is_open() {
            return Some(stranger.clone());
        }
        let given = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let token = given.and_then(|given| match given.split_at_checked(7) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => Some(token),
            _ => None,
        });
        self.access.admits(token?.trim_ascii(), stranger)
    }
}

/// Paths that reveal nothing about numbers.
fn is_public(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/openapi.json" | "/docs")
        || path.starts_with("/docs/")
        || openg2p::is_public(path)
}

/// Whether a host, with or without its port, can only be this machine.
fn is_this_machine(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}
