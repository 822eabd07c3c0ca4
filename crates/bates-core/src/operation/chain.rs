//! The chain of a node: each record has the digest of the one before it, so that none can be removed or changed unnoticed.
//! A chain belongs to a host and goes on when its server restarts.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{Operation, OperationKind};

/// A SHA-256 digest, written in hexadecimal.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ChainDigest(pub [u8; 32]);

impl fmt::Display for ChainDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ChainDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for ChainDigest {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(());
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(drop)?;
        }
        Ok(Self(bytes))
    }
}

/// An operation in its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRecord {
    pub chain: Box<str>,
    /// Counts the records of the chain from 1 on.
    pub number: u64,
    /// The digest of the record before; all zero for the first.
    pub previous: ChainDigest,
    /// Of all other fields, as they should be.
    pub digest: ChainDigest,
    pub operation: Operation,
}

/// The end of a chain: its last record, even if that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainHead {
    pub chain: Box<str>,
    pub number: u64,
    pub digest: ChainDigest,
}

impl ChainHead {
    /// Of a chain without records.
    pub fn new(chain: &str) -> Self {
        Self { chain: chain.into(), number: 0, digest: ChainDigest::default() }
    }

    /// The head to continue from, where `highest` is the highest number of a record: if the head was removed or set back, a
    /// server must not write over records. The chain has a fault there.
    #[must_use]
    pub fn beyond(self, highest: u64) -> Self {
        Self { number: self.number.max(highest), ..self }
    }

    /// The next record of the chain, which is its head from then on.
    pub fn append(&mut self, operation: Operation) -> OperationRecord {
        let mut record = OperationRecord {
            chain: self.chain.clone(),
            number: self.number + 1,
            previous: self.digest,
            digest: ChainDigest::default(),
            operation,
        };
        record.digest = record.computed_digest();
        (self.number, self.digest) = (record.number, record.digest);
        record
    }

    /// The record that explains the removal of all records up to `last`.
    pub fn append_removal(&mut self, last: &OperationRecord, operation: Operation) -> OperationRecord {
        let Removal { number, digest } = Removal { number: last.number, digest: last.digest };
        let removal = format!("{number} {digest}");
        let operation = Operation { kind: OperationKind::RecordsRemoved, series: None, ..operation };
        self.append(operation.on("").between(Some(&removal), None))
    }
}

/// The last record that a [`OperationKind::RecordsRemoved`] removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Removal {
    pub(super) number: u64,
    pub(super) digest: ChainDigest,
}

impl Removal {
    pub(super) fn of(record: &OperationRecord) -> Option<Self> {
        let Operation { kind: OperationKind::RecordsRemoved, before: Some(text), .. } = &record.operation
        else {
            return None;
        };
        let (number, digest) = text.split_once(' ')?;
        Some(Self { number: number.parse().ok()?, digest: digest.parse().ok()? })
    }
}

impl OperationRecord {
    /// Whether retention may remove it. A record that was changed stays, as evidence.
    pub fn is_removable(&self, before: Timestamp) -> bool {
        self.operation.at < before && self.computed_digest() == self.digest
    }

    /// The digest that the record should have. Every field begins with its length, so that no two records look alike.
    pub(super) fn computed_digest(&self) -> ChainDigest {
        let Self { chain, number, previous, operation, .. } = self;
        let Operation { id, at, caller, channel, kind, series, subject, before, after } = operation;
        let mut hash = Sha256::new();
        let mut add = |field: &[u8]| {
            hash.update((field.len() as u64).to_be_bytes());
            hash.update(field);
        };
        add(b"bates operation 1");
        add(chain.as_bytes());
        add(&number.to_be_bytes());
        add(&previous.0);
        add(id.as_bytes());
        add(&at.as_microsecond().to_be_bytes());
        for text in [
            &**caller,
            channel.name(),
            kind.name(),
            series.as_ref().map_or("", |name| name.as_str()),
            subject,
        ] {
            add(text.as_bytes());
        }
        for text in [before, after] {
            add(&[u8::from(text.is_some())]);
            add(text.as_deref().unwrap_or_default().as_bytes());
        }
        ChainDigest(hash.finalize().into())
    }
}
