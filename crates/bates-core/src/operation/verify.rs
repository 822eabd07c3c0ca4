//! Finds removed and changed records. Reads a chain once, from its first record to its head, in bounded memory.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::chain::Removal;
use super::{ChainDigest, ChainHead, OperationRecord};

/// Checks one chain: [`ChainVerifier::add`] takes its records in their order, [`ChainVerifier::end`] its head.
#[derive(Debug)]
pub struct ChainVerifier {
    chain: Box<str>,
    records: u64,
    /// The number and digest that the next record must follow; `None` before the first one.
    last: Option<(u64, ChainDigest)>,
    /// What the first record follows, unless it is number 1: a later record must explain the removal.
    beginning: Option<Removal>,
    is_explained: bool,
    /// Records that the reader knows from earlier, in the order of their numbers.
    known: Vec<KnownRecord>,
    /// A known record may have been removed only if it is older.
    removable_before: Timestamp,
    last_at: Option<Timestamp>,
    faults: Vec<ChainFault>,
}

/// The shortest time for which a server keeps records.
pub const RETENTION_MIN: Duration = Duration::from_hours(30 * 24);

/// A record that was the head of its chain when a reader looked earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRecord {
    pub head: ChainHead,
    pub at: Timestamp,
}

/// More are counted with the last one: a chain without its beginning has as many faults as records.
const FAULTS_MAX: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainFault {
    /// Records are missing, the last number included.
    Missing { first: u64, last: u64 },
    /// Records before the first one are missing, and no record explains the removal.
    MissingBeginning { first: u64 },
    /// A field of the record was changed.
    Changed { number: u64 },
    /// The record does not follow the one before: that was replaced, or this one was.
    Unlinked { number: u64 },
    /// The last record is not the one that the store names as the head of the chain.
    OtherHead { number: u64 },
    /// The record is not the one that the reader knows from earlier.
    OtherThanKnown { number: u64 },
    /// A record that the reader knows was removed, although it is not old enough.
    RemovedTooEarly { number: u64 },
}

impl fmt::Display for ChainFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { first, last } if first == last => {
                write!(f, "record {first} is missing")
            }
            Self::Missing { first, last } => write!(f, "records {first} to {last} are missing"),
            Self::MissingBeginning { first } => {
                write!(f, "records 1 to {} are missing, and no record explains their removal", first - 1)
            }
            Self::Changed { number } => write!(f, "record {number} was changed"),
            Self::Unlinked { number } => write!(f, "record {number} does not follow the record before it"),
            Self::OtherHead { number } => {
                write!(f, "the chain does not end with record {number}, as the store says")
            }
            Self::RemovedTooEarly { number } => {
                write!(f, "record {number} was removed before the shortest retention of 30 days")
            }
            Self::OtherThanKnown { number } => {
                write!(f, "record {number} is not the one that was verified earlier")
            }
        }
    }
}

/// The result for one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainReport {
    pub head: ChainHead,
    /// The time of the last record.
    pub last_at: Option<Timestamp>,
    /// How many records were read.
    pub records: u64,
    /// How many records were removed before, as a record explains.
    pub removed: u64,
    pub faults: Vec<ChainFault>,
}

impl ChainVerifier {
    /// `known` are heads of the chain that an earlier check printed; `now` is the time of the reader.
    pub fn new(chain: &str, mut known: Vec<KnownRecord>, now: Timestamp) -> Self {
        known.retain(|known| *known.head.chain == *chain && known.head.number > 0);
        known.sort_by_key(|known| std::cmp::Reverse(known.head.number));
        Self {
            chain: chain.into(),
            records: 0,
            last: None,
            beginning: None,
            is_explained: false,
            known,
            removable_before: now.checked_sub(RETENTION_MIN).unwrap_or(Timestamp::MIN),
            last_at: None,
            faults: Vec::new(),
        }
    }

    /// The next record. Its number is higher than that of the one before.
    pub fn add(&mut self, record: &OperationRecord) {
        let OperationRecord { number, previous, digest, .. } = record;
        if record.computed_digest() != *digest || record.chain != self.chain {
            self.fault(ChainFault::Changed { number: *number });
        }
        match self.last {
            None if *number > 1 => {
                self.beginning = Some(Removal { number: number - 1, digest: *previous });
            }
            last => self.check_link(last.unwrap_or_default(), *number, *previous),
        }
        self.is_explained |= self.beginning.is_some() && Removal::of(record) == self.beginning;
        while let Some(KnownRecord { head, at }) = self.known.pop_if(|known| known.head.number <= *number) {
            // A record in the midst of the chain that is missing was found above.
            if head.number < *number && self.last.is_none() && at >= self.removable_before {
                self.fault(ChainFault::RemovedTooEarly { number: head.number });
            }
            if head.number == *number && head.digest != *digest {
                self.fault(ChainFault::OtherThanKnown { number: *number });
            }
        }
        self.last = Some((*number, *digest));
        self.last_at = Some(record.operation.at);
        self.records += 1;
    }

    fn check_link(&mut self, (last, digest): (u64, ChainDigest), number: u64, previous: ChainDigest) {
        if number > last + 1 {
            self.fault(ChainFault::Missing { first: last + 1, last: number - 1 });
        } else if previous != digest {
            self.fault(ChainFault::Unlinked { number });
        }
    }

    pub fn end(mut self, head: ChainHead) -> ChainReport {
        let (last, digest) = self.last.unwrap_or_default();
        if last < head.number {
            self.fault(ChainFault::Missing { first: last + 1, last: head.number });
        } else if (last, digest) != (head.number, head.digest) {
            self.fault(ChainFault::OtherHead { number: head.number });
        }
        let removed = self.beginning.map_or(0, |removal| removal.number);
        if removed > 0 && !self.is_explained {
            self.fault(ChainFault::MissingBeginning { first: removed + 1 });
        }
        while let Some(KnownRecord { head, .. }) = self.known.pop() {
            self.fault(ChainFault::Missing { first: head.number, last: head.number });
        }
        ChainReport { head, last_at: self.last_at, records: self.records, removed, faults: self.faults }
    }

    fn fault(&mut self, fault: ChainFault) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        }
    }
}
