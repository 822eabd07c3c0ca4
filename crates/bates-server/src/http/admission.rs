//! Admission: decides from the head of a request whether its caller is let in, before a handler sees the request.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Request, header};
use bates_core::ErrorCode;

use super::openg2p;
use super::problem::{Problem, Result};
use crate::{Access, Caller, Peer, Tls};

#[derive(Clone, Debug)]
pub struct Settings {
    pub access: Arc<Access>,
    /// The server closes a connection whose request head takes longer to arrive.
    pub head_timeout: Duration,
    /// The server refuses a request whose body takes longer to arrive.
    pub body_timeout: Duration,
    /// Whether the OpenG2P paths need no secret: the clients of that contract cannot send one.
    pub openg2p_is_open: bool,
    /// The server closes the connection of a client that reads nothing of its answer for this long.
    pub write_timeout: Duration,
    /// `None`: plain text. A handshake may take as long as a request head.
    pub tls: Option<Arc<Tls>>,
}

impl Settings {
    /// With timeouts long enough for slow networks.
    pub fn new(access: Arc<Access>) -> Self {
        let minute = Duration::from_mins(1);
        let (head_timeout, body_timeout, write_timeout) = (minute, minute / 2, minute);
        Self { access, head_timeout, body_timeout, openg2p_is_open: false, write_timeout, tls: None }
    }

    /// The caller of a request that arrived on the connection of `peer`, or why the request is refused.
    pub(super) fn admit<B>(&self, request: &Request<B>, peer: &Peer) -> Result<Caller> {
        let path = request.uri().path();
        let by_address = || Caller::from_address(peer.address);
        if is_public(path) {
            return Ok(by_address());
        }
        // A wrong secret is refused even where none is needed.
        let has_no_secret = !request.headers().contains_key(header::AUTHORIZATION);
        let is_open = self.openg2p_is_open && openg2p::is_contract_path(path) && has_no_secret;
        let caller = self.authenticate(request.headers(), peer).or_else(|| is_open.then(by_address));
        let detail = "send the header Authorization: Bearer <secret>";
        let caller = caller.ok_or_else(|| Problem::new(ErrorCode::UNAUTHORIZED, detail))?;
        // Without this check, any web page opened in a browser on this machine could take numbers.
        if self.is_cross_origin(request.headers()) {
            let detail = "the request comes from a web page of another site";
            return Err(Problem::new(ErrorCode::CROSS_ORIGIN, detail));
        }
        Ok(caller)
    }

    /// Whether a browser sent the request for a page that this server did not serve. Without a secret, the host of the
    /// page must also be a loopback name: an attacker's host name may resolve to this machine.
    fn is_cross_origin(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else { return false };
        let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
        let origin_host = origin.as_bytes().splitn(2, |byte| *byte == b':').nth(1);
        let origin_host = origin_host.and_then(|rest| rest.strip_prefix(b"//"));
        origin_host != host || self.access.is_open() && !origin_host.is_some_and(is_loopback)
    }

    /// A secret in the request counts before the certificate of the connection.
    fn authenticate(&self, headers: &HeaderMap, peer: &Peer) -> Option<Caller> {
        let authorization = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let Some(value) = authorization.filter(|_| !self.access.is_open()) else {
            return self.access.caller_without_secret(peer);
        };
        let secret = match value.split_at_checked(7) {
            Some((scheme, secret)) if scheme.eq_ignore_ascii_case(b"bearer ") => secret,
            _ => return None,
        };
        self.access.authenticate(secret.trim_ascii(), &Caller::from_address(peer.address))
    }
}

/// Paths that reveal nothing about numbers and need no secret.
fn is_public(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/openapi.json" | "/docs")
        || path.starts_with("/docs/")
        || openg2p::is_public(path)
}

/// Whether a host, with or without a port, is `localhost` or a loopback address.
fn is_loopback(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}
