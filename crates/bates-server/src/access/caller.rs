//! The caller of a request or a connection.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bates_core::{
    Allowance, AllowanceError, LeaseOwner, Machine, Permissions, Right, Rights, Runtime as _, SeriesSet,
    Store, SystemRuntime, TakenAllowance, Timestamp,
};

use super::changes::ChangeRate;

/// What a caller may do, as long as its secret is valid. All callers with the secret share it.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) permissions: Permissions,
    /// `None`: without a rate and a quota.
    pub(super) allowance: Option<Arc<Allowance>>,
    /// Whether it may take every number without a further check: one look on the hot path instead of four.
    pub(super) takes_freely: bool,
    /// When the token expires.
    pub(super) expires: Option<Timestamp>,
    /// Of the tokens whose names begin alike. `None`: without a limit.
    pub(super) changes: Option<Arc<ChangeRate>>,
    /// Whether the secret was revoked, rotated or has expired.
    pub(super) has_ended: AtomicBool,
}

impl Grant {
    pub(super) fn new(permissions: Permissions, allowance: Option<Arc<Allowance>>) -> Self {
        let has_ended = AtomicBool::new(false);
        let takes_freely = permissions.has(Right::Take) && permissions.is_unlimited() && allowance.is_none();
        Self { permissions, allowance, takes_freely, expires: None, changes: None, has_ended }
    }

    /// The same, for another secret, which ends by itself.
    pub(super) fn copy(&self) -> Self {
        let Self { permissions, allowance, expires, changes, .. } = self;
        let (expires, changes) = (*expires, changes.clone());
        Self { expires, changes, ..Self::new(permissions.clone(), allowance.clone()) }
    }
}

/// Proof that numbers were taken off the rate and quota of a caller, if it has any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payment(Option<TakenAllowance>);

impl Payment {
    pub(crate) const NONE: Self = Self(None);
}

/// The client of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: Option<SocketAddr>,
    /// The client, named by its address.
    pub caller: Caller,
    /// The names in its certificate, if a trusted authority signed it.
    pub certificate_names: Vec<Box<str>>,
}

impl Peer {
    pub fn new(address: Option<SocketAddr>, certificate_names: Vec<Box<str>>) -> Self {
        Self { address, caller: Caller::from_address(address), certificate_names }
    }
}

/// The caller of a request: a token, or else an address; and what it may do. Cheap to clone.
#[derive(Clone)]
pub struct Caller {
    name: Arc<str>,
    is_token: bool,
    pub(super) grant: Arc<Grant>,
}

impl Caller {
    /// A caller that may do nothing yet.
    pub fn from_address(address: Option<SocketAddr>) -> Self {
        let address = address.map(|address| address.ip().to_canonical().to_string());
        let name = address.map_or_else(|| "unknown".into(), Into::into);
        let grant = Grant::new(Permissions::new(Rights::default(), SeriesSet::All), None);
        Self { name, is_token: false, grant: Arc::new(grant) }
    }

    pub(super) fn of_token(name: Arc<str>, grant: Arc<Grant>) -> Self {
        Self { name, is_token: true, grant }
    }

    pub(super) fn with_grant(&self, grant: &Arc<Grant>) -> Self {
        Self { grant: grant.clone(), ..self.clone() }
    }

    #[inline]
    pub fn permissions(&self) -> &Permissions {
        &self.grant.permissions
    }

    /// Whether the secret of the caller is no longer valid. A caller that is kept must ask before each use.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.grant.has_ended.load(Ordering::Relaxed)
    }

    /// Whether the caller may take every number, without a rate or quota.
    #[inline]
    pub(crate) fn takes_freely(&self) -> bool {
        self.grant.takes_freely
    }

    pub(crate) fn expires(&self) -> Option<Timestamp> {
        self.grant.expires
    }

    /// Counts a change of something other than numbers. Fails with the time to wait.
    pub(crate) fn count_change(&self) -> Result<(), Duration> {
        let limited = self.grant.changes.as_ref().filter(|_| !self.permissions().is_unlimited());
        limited.map_or(Ok(()), |changes| changes.count(SystemRuntime.elapsed()))
    }

    /// Takes numbers off the rate and quota of the caller, without waiting. `None`: only
    /// [`Caller::take_within_allowance`] can tell. On the hot path.
    #[inline]
    pub(crate) fn try_take_allowance<S: Store>(&self, machine: &Machine<S>, count: u64) -> Option<Payment> {
        match &self.grant.allowance {
            None => Some(Payment(None)),
            Some(allowance) => Some(Payment(Some(machine.try_take_allowance(allowance, count)?))),
        }
    }

    /// How many numbers the rate and quota of the caller allow now, one by one and without waiting.
    pub(crate) fn allowance_left<S: Store>(&self, machine: &Machine<S>) -> u64 {
        self.grant.allowance.as_ref().map_or(u64::MAX, |allowance| machine.allowance_left(allowance))
    }

    /// Takes `count` numbers off the rate and quota of the caller.
    pub(crate) async fn pay<S: Store>(
        &self,
        machine: &Machine<S>,
        count: u64,
    ) -> Result<Payment, AllowanceError> {
        let Some(allowance) = &self.grant.allowance else { return Ok(Payment::NONE) };
        Ok(Payment(Some(machine.take_allowance(allowance, &self.name, count).await?)))
    }

    /// Returns numbers that the caller paid for and did not get.
    pub(crate) fn give_back(&self, Payment(paid): Payment, count: u64) {
        if let Some((allowance, paid)) = self.grant.allowance.as_ref().zip(paid) {
            allowance.give_back(paid, count);
        }
    }

    /// Takes `count` numbers within the rate and quota of the caller; `got` is how many of them it got in the end.
    pub(crate) async fn take_within_allowance<S: Store, T, E: From<AllowanceError>>(
        &self,
        machine: &Machine<S>,
        count: u64,
        take: impl Future<Output = Result<T, E>>,
        got: impl FnOnce(&T) -> u64,
    ) -> Result<T, E> {
        let payment = self.pay(machine, count).await?;
        let taken = take.await;
        self.give_back(payment, count.saturating_sub(taken.as_ref().map_or(0, got)));
        taken
    }

    /// Whose leases and reservations the caller may end.
    pub fn lease_owner(&self) -> LeaseOwner {
        self.token().map_or(LeaseOwner::Any, |name| LeaseOwner::Caller(name.into()))
    }

    /// The name of the token, or the address.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn token(&self) -> Option<&str> {
        self.is_token.then_some(&*self.name)
    }

    /// The namespace of the caller's idempotency keys: its own for a token, one for all other callers.
    pub fn key_owner(&self) -> &str {
        self.token().unwrap_or_default()
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("name", &self.name).finish_non_exhaustive()
    }
}
