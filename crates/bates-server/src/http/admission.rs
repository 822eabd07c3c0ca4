//! Admission: decides from the head of a request whether its caller is let in, before a handler sees the request.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Request, header};
use axum::response::{IntoResponse, Response};
use bates_core::ErrorCode;

use super::openg2p;
use super::problem::{Problem, Result};
use crate::defense::{SecretRefusal, Slot};
use crate::{Access, Caller, Defense, Offers, Peer, Tls};

#[derive(Clone, Debug)]
pub struct Settings {
    pub access: Arc<Access>,
    /// The server closes a connection whose request head takes longer to arrive.
    pub head_timeout: Duration,
    /// The server refuses a request whose body takes longer to arrive.
    pub body_timeout: Duration,
    /// Whether the OpenG2P paths need no secret: the clients of that contract cannot send one.
    pub openg2p_is_open: bool,
    /// Names, beside localhost, under which requests without a secret are served.
    pub hosts: Vec<String>,
    /// Which sinks a series may name that is created at run time.
    pub sink_offers: Offers,
    /// Which pools it may name.
    pub pool_offers: Offers,
    /// The server closes the connection of a client that reads nothing of its answer for this long.
    pub write_timeout: Duration,
    /// `None`: plain text. A handshake may take as long as a request head.
    pub tls: Option<Arc<Tls>>,
    /// Both ports should have the same.
    pub defense: Arc<Defense>,
}

/// Why a request is refused.
pub(super) enum Refusal {
    Problem(Problem),
    /// Too many requests; the next may come after this time. The connection ends, so that each further one costs its sender
    /// more than the server.
    TooMany(Duration, &'static str),
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Problem(problem) => problem.into_response(),
            Self::TooMany(wait, detail) => {
                let mut response = Problem::new(ErrorCode::TOO_MANY_REQUESTS, detail).into_response();
                // Rounded up: a client that comes at this time is served.
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                response.headers_mut().insert(header::RETRY_AFTER, seconds.max(1).into());
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                response
            }
        }
    }
}

impl Settings {
    /// With timeouts long enough for slow networks.
    pub fn new(access: Arc<Access>) -> Self {
        let minute = Duration::from_mins(1);
        let (head_timeout, body_timeout, write_timeout) = (minute, minute / 2, minute);
        let (openg2p_is_open, hosts, defense) = (false, Vec::new(), Arc::default());
        Self {
            access,
            head_timeout,
            body_timeout,
            openg2p_is_open,
            hosts,
            sink_offers: Offers::default(),
            pool_offers: Offers::default(),
            write_timeout,
            tls: None,
            defense,
        }
    }

    /// The caller of a request that arrived on the connection of `peer`, or why the request is refused.
    pub(super) fn admit<B>(&self, request: &Request<B>, peer: &Peer, slot: &Slot) -> Result<Caller, Refusal> {
        let path = request.uri().path();
        if is_probe(path) {
            return Ok(peer.caller.clone());
        }
        if is_public(path) {
            self.count_stranger(slot)?;
            return Ok(peer.caller.clone());
        }
        // A wrong secret is refused even where none is needed.
        let has_no_secret = !request.headers().contains_key(header::AUTHORIZATION);
        let is_open = self.openg2p_is_open && openg2p::is_contract_path(path) && has_no_secret;
        let contract_caller = || is_open.then(|| self.access.admit_to_contract(peer));
        let caller = self.authenticate(request.headers(), peer, slot)?.or_else(contract_caller);
        let Some(caller) = caller else {
            self.count_stranger(slot)?;
            let detail = if has_no_secret {
                "send the header Authorization: Bearer <secret>"
            } else {
                "no caller has the secret of this request: it may have been revoked, or have expired; the header is \
                 Authorization: Bearer <secret>"
            };
            return Err(Problem::new(ErrorCode::UNAUTHORIZED, detail).into());
        };
        slot.set_authenticated(!is_open);
        // Without these checks, any web page opened in a browser on this machine could take numbers.
        if is_cross_origin(request.headers()) {
            let detail = "the request comes from a web page of another site";
            return Err(Problem::new(ErrorCode::CROSS_ORIGIN, detail).into());
        }
        if self.access.is_open() || is_open {
            self.check_host(request.headers())?;
        }
        Ok(caller)
    }

    /// Serves a request without a secret only under a known name: the name of an attacker's page may resolve to this
    /// machine, and a browser then takes this server for the site of that page.
    fn check_host(&self, headers: &HeaderMap) -> Result<()> {
        // A browser always sends the header.
        let Some(host) = headers.get(header::HOST).map(HeaderValue::as_bytes) else { return Ok(()) };
        let name = host_name(host);
        let is_listed = |known: &String| name.eq_ignore_ascii_case(known.as_bytes());
        if is_loopback(name) || self.hosts.iter().any(is_listed) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned();
        let detail = format!(
            "without a secret, the server answers only under localhost and the names in `hosts`, not under {name:?}"
        );
        Err(Problem::new(ErrorCode::UNKNOWN_HOST, detail))
    }

    /// A secret in the request counts before the certificate of the connection. `None`: it has none, or a wrong one.
    fn authenticate(&self, headers: &HeaderMap, peer: &Peer, slot: &Slot) -> Result<Option<Caller>, Refusal> {
        let authorization = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let Some(value) = authorization.filter(|_| !self.access.is_open()) else {
            return Ok(self.access.caller_without_secret(peer));
        };
        let secret = match value.split_at_checked(7) {
            Some((scheme, secret)) if scheme.eq_ignore_ascii_case(b"bearer ") => secret.trim_ascii(),
            _ => return Ok(None),
        };
        match slot.check_secret(secret, || self.access.authenticate(secret, &peer.caller)) {
            Ok(caller) => Ok(Some(caller)),
            Err(SecretRefusal::Wrong) => Ok(None),
            Err(SecretRefusal::Unchecked(wait)) => {
                let detail = "too many wrong secrets came from this address; this one was not checked";
                Err(Refusal::TooMany(wait, detail))
            }
        }
    }

    /// A server without a secret has no strangers.
    fn count_stranger(&self, slot: &Slot) -> Result<(), Refusal> {
        if self.access.is_open() {
            return Ok(());
        }
        let detail = "too many requests without a valid secret came from this address";
        slot.take_stranger_request().map_err(|wait| Refusal::TooMany(wait, detail))
    }
}

/// Paths by which others see whether the server runs. They are always answered.
pub(super) fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz") || openg2p::is_probe(path)
}

/// Further paths that reveal nothing about numbers and need no secret.
fn is_public(path: &str) -> bool {
    matches!(path, "/openapi.json" | "/docs") || path.starts_with("/docs/") || openg2p::is_public(path)
}

/// Whether a browser sent the request for a page that this server did not serve.
fn is_cross_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let origin_host = origin.as_bytes().splitn(2, |byte| *byte == b':').nth(1);
    origin_host.and_then(|rest| rest.strip_prefix(b"//")) != host
}

/// A `Host` without its port.
fn host_name(host: &[u8]) -> &[u8] {
    match host.iter().rposition(|byte| *byte == b':') {
        Some(at) if host[at + 1..].iter().all(u8::is_ascii_digit) => &host[..at],
        _ => host,
    }
}

/// Whether a name is `localhost` or a loopback address.
fn is_loopback(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}
