//! What the server remembers of each address: the rates that it uses, and secrets that were right from there. Its memory
//! is bounded, and so is the time of each look-up, however many addresses there are. Must never keep a secret: only a keyed
//! hash of it.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::address::AddressBlock;
use super::rate::{RateLimit, RateUse};

/// Together 16,384 addresses, in at most some megabytes.
const SETS: usize = 2_048;
const ADDRESSES_PER_SET: usize = 8;
/// Callers behind one address whose secrets are remembered.
const SECRETS_MAX: usize = 16;
/// A secret that was right stays remembered for this long.
const SECRET_TTL: Duration = Duration::from_mins(10);

pub(super) struct AddressTable {
    sets: Box<[Mutex<Vec<Entry>>]>,
    hasher: RandomState,
}

struct Entry {
    block: AddressBlock,
    wrong_secrets: RateUse,
    stranger_requests: RateUse,
    secrets: Vec<RememberedSecret>,
}

struct RememberedSecret {
    hash: u64,
    until: Duration,
}

/// A secret that is being checked.
pub(super) struct TakenSecret {
    hash: u64,
    is_remembered: bool,
}

impl AddressTable {
    pub(super) fn new() -> Self {
        Self { sets: (0..SETS).map(|_| Mutex::default()).collect(), hasher: RandomState::new() }
    }

    /// Keyed, so that an attacker cannot make a second text with the same hash.
    pub(super) fn hash_secret(&self, secret: &[u8]) -> u64 {
        self.hasher.hash_one(secret)
    }

    /// Whether a secret may be checked: it was right from this address lately, or the address has not sent too many wrong
    /// ones. [`Self::settle_secret`] must follow the check.
    pub(super) fn take_secret(
        &self,
        block: AddressBlock,
        hash: u64,
        limit: RateLimit,
        now: Duration,
    ) -> Result<TakenSecret, Duration> {
        self.with_entry(block, |entry| {
            let is_remembered = entry.secrets.iter().any(|secret| secret.hash == hash && secret.until > now);
            if !is_remembered {
                // Before the check, so that concurrent guesses are counted.
                entry.wrong_secrets.take(limit, now)?;
            }
            Ok(TakenSecret { hash, is_remembered })
        })
    }

    pub(super) fn settle_secret(
        &self,
        block: AddressBlock,
        TakenSecret { hash, is_remembered }: TakenSecret,
        is_right: bool,
        limit: RateLimit,
        now: Duration,
    ) {
        if !is_right && !is_remembered {
            return;
        }
        self.with_entry(block, |entry| {
            if !is_right {
                // It was right before a rotation.
                entry.secrets.retain(|secret| secret.hash != hash);
                return;
            }
            if !is_remembered {
                entry.wrong_secrets.give_back(limit);
            }
            entry.remember(hash, now + SECRET_TTL);
        });
    }

    pub(super) fn has_secrets(&self, block: AddressBlock, now: Duration) -> bool {
        self.with_entry(block, |entry| entry.secrets.iter().any(|secret| secret.until > now))
    }

    /// Counts a request of a stranger.
    pub(super) fn take_request(
        &self,
        block: AddressBlock,
        limit: RateLimit,
        now: Duration,
    ) -> Result<(), Duration> {
        self.with_entry(block, |entry| entry.stranger_requests.take(limit, now))
    }

    pub(super) fn give_back_request(&self, block: AddressBlock, limit: RateLimit) {
        self.with_entry(block, |entry| entry.stranger_requests.give_back(limit));
    }

    fn with_entry<T>(&self, block: AddressBlock, act: impl FnOnce(&mut Entry) -> T) -> T {
        let mut set = self.set(block);
        let at = match set.iter().position(|entry| entry.block == block) {
            Some(at) => at,
            None => {
                if set.len() == ADDRESSES_PER_SET {
                    forget_one(&mut set);
                }
                set.push(Entry::new(block));
                set.len() - 1
            }
        };
        act(&mut set[at])
    }

    fn set(&self, block: AddressBlock) -> MutexGuard<'_, Vec<Entry>> {
        let hash = self.hasher.hash_one(block);
        let at = usize::try_from(hash % SETS as u64).unwrap_or(0);
        self.sets[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn new(block: AddressBlock) -> Self {
        let (wrong_secrets, stranger_requests) = (RateUse::default(), RateUse::default());
        Self { block, wrong_secrets, stranger_requests, secrets: Vec::new() }
    }

    fn remember(&mut self, hash: u64, until: Duration) {
        if let Some(known) = self.secrets.iter_mut().find(|secret| secret.hash == hash) {
            known.until = until;
            return;
        }
        if self.secrets.len() == SECRETS_MAX
            && let Some(oldest) = (0..SECRETS_MAX).min_by_key(|at| self.secrets[*at].until)
        {
            self.secrets.swap_remove(oldest);
        }
        self.secrets.push(RememberedSecret { hash, until });
    }
}

/// Forgets the address that uses the least of its rates, of those without a remembered secret if there are such: many
/// addresses of an attacker displace neither an address that is slowed down nor one that has callers.
fn forget_one(set: &mut Vec<Entry>) {
    let usage = |entry: &Entry| (!entry.secrets.is_empty(), entry.wrong_secrets, entry.stranger_requests);
    if let Some(least) = (0..set.len()).min_by_key(|at| usage(&set[*at])) {
        set.swap_remove(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: RateLimit = RateLimit { burst: 3, interval: Duration::from_secs(1) };
    const NOW: Duration = Duration::from_secs(1_000);

    fn block(last: u8) -> AddressBlock {
        AddressBlock::V4([10, 0, 0, last])
    }

    /// Whether the secret was checked.
    fn try_secret(
        table: &AddressTable,
        block: AddressBlock,
        secret: &str,
        is_right: bool,
        now: Duration,
    ) -> bool {
        let hash = table.hash_secret(secret.as_bytes());
        let taken = table.take_secret(block, hash, LIMIT, now);
        taken.map(|taken| table.settle_secret(block, taken, is_right, LIMIT, now)).is_ok()
    }

    /// Sends wrong secrets until one is not checked.
    fn slow_down(table: &AddressTable, block: AddressBlock, now: Duration) {
        let is_refused = (0..100).any(|_| !try_secret(table, block, "wrong", false, now));
        assert!(is_refused, "the address is never slowed down");
    }

    #[test]
    fn wrong_secrets_are_slowed_down_for_their_address_alone() {
        let table = AddressTable::new();
        assert!((0..3).all(|guess| try_secret(&table, block(1), &guess.to_string(), false, NOW)));
        assert!(!try_secret(&table, block(1), "4", false, NOW));
        assert!(!try_secret(&table, block(1), "right", true, NOW), "not even the right one is checked");
        assert!(try_secret(&table, block(2), "4", false, NOW));
        assert!(try_secret(&table, block(1), "4", false, NOW + LIMIT.interval));
    }

    #[test]
    fn a_secret_that_was_right_passes_while_its_address_is_slowed_down() {
        let table = AddressTable::new();
        assert!(
            (0..100).all(|_| try_secret(&table, block(1), "right", true, NOW)),
            "a right one costs nothing"
        );
        slow_down(&table, block(1), NOW);
        assert!((0..100).all(|_| try_secret(&table, block(1), "right", true, NOW)));
        assert!(!try_secret(&table, block(1), "wrong", false, NOW), "and it restores nothing");
        slow_down(&table, block(2), NOW);
        assert!(!try_secret(&table, block(2), "right", true, NOW), "it was right from another address");
        let (later, refill) = (NOW + SECRET_TTL, LIMIT.interval * LIMIT.burst);
        slow_down(&table, block(1), later + refill);
        assert!(
            !try_secret(&table, block(1), "right", true, later + refill),
            "it is forgotten after a while"
        );
    }

    #[test]
    fn a_secret_that_is_no_longer_right_is_forgotten() {
        let table = AddressTable::new();
        assert!(try_secret(&table, block(1), "old", true, NOW));
        slow_down(&table, block(1), NOW);
        assert!(try_secret(&table, block(1), "old", false, NOW), "checked once more");
        assert!(!try_secret(&table, block(1), "old", false, NOW));
    }

    #[test]
    fn many_addresses_displace_neither_one_that_is_slowed_down_nor_one_with_callers() {
        let table = AddressTable::new();
        assert!(try_secret(&table, block(2), "right", true, NOW));
        for slowed in [1, 2] {
            slow_down(&table, block(slowed), NOW);
        }
        for at in 0..200_000_u32 {
            let [_, a, b, c] = at.to_be_bytes();
            try_secret(&table, AddressBlock::V4([11, a, b, c]), "wrong", false, NOW);
        }
        assert!(!try_secret(&table, block(1), "wrong", false, NOW));
        assert!(try_secret(&table, block(2), "right", true, NOW));
        let most = table.sets.iter().map(|set| set.lock().unwrap().len()).max();
        assert_eq!(most, Some(ADDRESSES_PER_SET));
    }

    #[test]
    fn the_secrets_remembered_of_an_address_are_bounded() {
        let table = AddressTable::new();
        for at in 0..1_000 {
            try_secret(&table, block(1), &at.to_string(), true, NOW + Duration::from_millis(at));
        }
        assert_eq!(table.with_entry(block(1), |entry| entry.secrets.len()), SECRETS_MAX);
        slow_down(&table, block(1), NOW);
        assert!(try_secret(&table, block(1), "999", true, NOW), "the latest stay");
    }
}
