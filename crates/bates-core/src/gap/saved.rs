//! The port to the documents that a user has, wherever they are: their numbers, and so their positions.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;

use bates_pattern::Pattern;

use crate::range::{Lease, Ranges};
use crate::scope::ScopeKey;

/// The documents that a user has.
pub trait Saved: Send + Sync + 'static {
    /// Hands over the number of each, in any order.
    fn numbers<'a>(&'a self, take: &'a mut (dyn FnMut(&str) + Send)) -> Reading<'a>;
}

/// A reading under way; it ends with why it broke off, if it did.
pub type Reading<'a> = Pin<Box<dyn Future<Output = Result<(), Box<str>>> + Send + 'a>>;

#[derive(Default)]
pub(crate) struct SavedPositions {
    scopes: HashMap<ScopeKey, Vec<Lease>>,
    /// Texts that are no numbers of the series.
    pub(crate) strangers: u64,
}

impl SavedPositions {
    /// Takes a number down. What comes in ascending order takes the room of its ranges alone.
    pub(crate) fn add(&mut self, pattern: &Pattern, number: &str) {
        let parsed = pattern.parse(number).ok();
        let found = parsed.and_then(|parsed| {
            let scope = ScopeKey::new(parsed.parameters(), parsed.period()).ok()?;
            Some((scope, parsed.position().value()))
        });
        let Some((scope, position)) = found else {
            self.strangers += 1;
            return;
        };
        let ranges = self.scopes.entry(scope).or_default();
        let lease = Lease::new(position, position + 1);
        match (ranges.last_mut(), lease) {
            (Some(last), Some(lease)) if last.to() == lease.from() => {
                *last = last.joined(lease).unwrap_or(*last);
            }
            (_, lease) => ranges.extend(lease),
        }
    }

    pub(crate) fn of(&self, scope: &ScopeKey) -> Ranges {
        Ranges::of(self.scopes.get(scope).into_iter().flatten().copied())
    }
}
