//! The port behind which a database stands: where cursors are moved, durably, before anything is handed out.
//!
//! What every store must do is tested in one place, `bates_testkit::claims`.

mod error;

use std::fmt;
use std::future::Future;

use uuid::Uuid;

use crate::audit::Audit;
use crate::grant::{Grant, GrantError, Surrendered, Tail, Want};
use crate::lease::Lease;
use crate::name::SeriesName;
use crate::place::{Place, ScopeKey};
use crate::promise::Promise;
use crate::recall::{Holder, Recall};

pub use error::StoreError;

/// A durable keeper of cursors.
///
/// Invariant: when a call answers with a grant, the cursor past it is on disk. A call that was cancelled or
/// failed may have moved a cursor all the same: its range is then lost, never granted again.
pub trait Store: Audit {
    /// Which store this is: made with it, the same after a move, and for all nodes.
    fn identity(&self) -> Uuid;

    /// Whether other nodes issue from the same cursors: then no lease in memory keeps an order.
    fn is_shared(&self) -> bool {
        false
    }

    /// Pins what decides the text of a series on its first use, and compares it ever after. Answers with the
    /// permutation key that the series was pinned with, which is `fresh_key` the first time.
    fn pin(
        &self,
        definition: Definition,
        fresh_key: Option<Vec<u8>>,
    ) -> impl Future<Output = Result<Pinned, StoreError>> + Send;

    /// Moves a cursor and answers with the range passed over. Calls that wait together share one commit.
    fn grant(&self, want: Want) -> impl Future<Output = Result<Grant, GrantError>> + Send;

    /// Gives the unused end of a lease back, if nothing was granted since: otherwise it remains a gap.
    fn surrender(&self, tail: Tail) -> impl Future<Output = Result<Surrendered, StoreError>> + Send;

    /// Where a cursor stands. Never creates one.
    fn cursor(&self, place: Place) -> impl Future<Output = Result<Option<Cursor>, StoreError>> + Send;

    /// Raises a cursor to `floor`, creating it if need be; a cursor that is higher stays. Ranges that were granted
    /// before lie below the floor: recall them afterwards.
    fn raise_floor(
        &self,
        place: Place,
        floor: u64,
    ) -> impl Future<Output = Result<Cursor, StoreError>> + Send;

    /// Sets positions of a scope aside, creating it if need be: somebody else gave their numbers out, and no grant
    /// holds them from now on. Answers how many of them the cursor had passed before. Ranges that were granted before
    /// may hold them: recall those afterwards.
    fn set_aside(
        &self,
        place: Place,
        positions: Vec<u64>,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// The positions of a scope that were set aside, ascending, from `from` on, at most `limit`.
    fn aside(
        &self,
        place: Place,
        from: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<u64>, StoreError>> + Send;

    /// The scopes of a series in the order of their keys, after `after`, at most `limit`.
    fn scopes(
        &self,
        series: SeriesName,
        after: Option<ScopeKey>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(ScopeKey, Cursor)>, StoreError>> + Send;

    /// Writes something that means nothing, durably: whether the store can be written just now.
    fn probe(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Keeps the description of a series that was made at run time, or with `None` retires it: then it is no
    /// longer listed, and its pin and its cursors stay for ever. Answers `false`, and changes nothing, unless the store
    /// has the description `before`, or this one already. The series must have been pinned.
    fn describe(
        &self,
        series: SeriesName,
        before: Option<Box<str>>,
        description: Option<Box<str>>,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Looks whether the store still is what it was: one that was taken back is poisoned. Answers with a number that
    /// changes whenever somebody describes or retires a series. What is not shared has no others.
    fn watch(&self) -> impl Future<Output = Result<u64, StoreError>> + Send {
        async { Ok(0) }
    }

    /// A number that changes whenever the store, as far as this process knows, no longer vouches for what it granted
    /// before: it was taken back. Nothing of an earlier era may be handed out or given back.
    fn era(&self) -> u64 {
        0
    }

    /// Changes the promise of a series, durably, if it is `from`; answers whether it is `to` now. A series that becomes
    /// gapless is so from where each of its cursors stands; that is kept with the cursor. A series that was made at run
    /// time is described anew in the same commit, and nothing is changed if its description is another one by now.
    fn change_promise(
        &self,
        series: SeriesName,
        from: Promise,
        to: Promise,
        described: Option<Redescription>,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// What each series promises, by name, where that was pinned.
    fn promises(&self) -> impl Future<Output = Result<Vec<(SeriesName, Promise)>, StoreError>> + Send;

    /// Raises the epoch of a series and returns it: from now on every process gives up what it was granted of the
    /// series before. A store that is not shared has no other processes.
    fn recall(&self, _series: SeriesName) -> impl Future<Output = Result<u64, StoreError>> + Send {
        async { Ok(0) }
    }

    /// The recalls that this process has not answered with [`Store::give_up`].
    fn recalls(&self) -> impl Future<Output = Result<Vec<Recall>, StoreError>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Reports ranges of a series that this process gave up unused: those that it was granted are lost, `lease_lost`.
    /// With an epoch it also reports that it holds nothing that was granted before that epoch: all else was handed out.
    /// May be called twice without harm.
    fn give_up(
        &self,
        _series: SeriesName,
        _epoch: Option<u64>,
        _unused: Vec<(ScopeKey, Lease)>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }

    /// Writes down that positions which were granted to this process, or handed out by it, reached no caller: they are
    /// gaps, `burned`. May be called twice without harm.
    fn burn(&self, burned: Vec<(Place, Lease)>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Reports that this process holds nothing any more: what is left of its ranges was handed out.
    fn leave(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }

    /// The processes that still hold ranges of a series granted before an epoch.
    fn holders(
        &self,
        _series: SeriesName,
        _epoch: u64,
    ) -> impl Future<Output = Result<Vec<Holder>, StoreError>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Counts these processes as crashed: what they hold of a series granted before an epoch is uncertain from now
    /// on, and they can no longer give it back.
    fn write_off(
        &self,
        _series: SeriesName,
        _epoch: u64,
        _nodes: Vec<Uuid>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }

    /// The series that were made at run time and not retired, by name, each with its description.
    fn descriptions(&self) -> impl Future<Output = Result<Vec<(SeriesName, Box<str>)>, StoreError>> + Send;

    /// The ranges that were issued one by one in a gapless scope, ascending, neighbours joined.
    fn ledger(&self, place: Place) -> impl Future<Output = Result<Vec<Lease>, StoreError>> + Send;
}

/// What decides how the positions of a series read: pinned for ever by its first use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The series.
    pub series: SeriesName,
    /// The template as it was written.
    pub template: Box<str>,
    /// The names of a scope's parameters, sorted, with a space between them: they are its identity.
    pub parameters: Box<str>,
    /// Whether positions walk a keyed permutation.
    pub shuffled: bool,
    /// The first position.
    pub start: u64,
    /// When the numbering starts again, as the pattern writes it.
    pub reset: Box<str>,
    /// The time zone in which a business date is taken.
    pub time_zone: Box<str>,
    /// The version of the mapping.
    pub construction: u16,
    /// What the series promises. Pinned as well, and changed by [`Store::change_promise`] only; `None` where it does not
    /// matter, and in stores from before promises were pinned.
    pub promise: Option<Promise>,
    /// The rules that reject numbers, as text. Not pinned; a store keeps them to know whether they ever changed. `None`
    /// where that does not matter.
    pub rules: Option<Box<str>>,
}

impl Definition {
    /// What a store keeps in the place of rules that have changed.
    pub const RULES_CHANGED: &str = "changed";

    /// The rules that a store has to keep from now on, if it keeps this definition and `asked` is opened.
    pub fn new_rules<'r>(&self, asked: &'r Self) -> Option<&'r str> {
        match (self.rules.as_deref(), asked.rules.as_deref()) {
            (None, Some(asked)) => Some(asked),
            (Some(kept), Some(asked)) if kept != asked && kept != Self::RULES_CHANGED => {
                Some(Self::RULES_CHANGED)
            }
            _ => None,
        }
    }

    /// What of `self` differs from `other`, by name, with both values.
    pub fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let fields = |of: &Self| {
            [
                ("template", of.template.to_string()),
                ("parameters", of.parameters.to_string()),
                ("order", if of.shuffled { "shuffled" } else { "counting" }.to_owned()),
                ("start", of.start.to_string()),
                ("reset", of.reset.to_string()),
                ("time zone", of.time_zone.to_string()),
                ("construction", of.construction.to_string()),
            ]
        };
        if let (Some(ours), Some(theirs)) = (self.promise, other.promise)
            && ours != theirs
        {
            return Some(("promise", ours.to_string(), theirs.to_string()));
        }
        let mut pairs = fields(self).into_iter().zip(fields(other));
        pairs.find(|(ours, theirs)| ours != theirs).map(|((name, ours), (_, theirs))| (name, ours, theirs))
    }
}

/// A description in the place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redescription {
    /// The one that the store must have.
    pub before: Box<str>,
    /// The new one.
    pub after: Box<str>,
}

/// What a series was pinned with.
#[derive(Clone, PartialEq, Eq)]
pub struct Pinned {
    /// The permutation key of a shuffled series.
    pub permutation_key: Option<Vec<u8>>,
    /// Whether this call was the first.
    pub is_new: bool,
    /// Whether the rules that reject numbers were others before.
    pub has_changed_rules: bool,
}

impl Pinned {
    /// A series that was there before, which `asked` opens.
    pub fn again(kept: &Definition, asked: &Definition, permutation_key: Option<Vec<u8>>) -> Self {
        let rules = kept.new_rules(asked).or(kept.rules.as_deref());
        Self { permutation_key, is_new: false, has_changed_rules: rules == Some(Definition::RULES_CHANGED) }
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.permutation_key.as_ref().map(|_| "…");
        f.debug_struct("Pinned")
            .field("permutation_key", &key)
            .field("is_new", &self.is_new)
            .field("has_changed_rules", &self.has_changed_rules)
            .finish()
    }
}

/// A durable place in a scope: the first position not yet granted, and how often it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The first position not yet granted.
    pub next: u64,
    /// Raised by every write, so that a holder that slept cannot mistake a new cursor for the one it knew.
    pub version: u64,
}
