//! Which scopes the store may have: a Bloom filter of them, so that most new ones need not be looked for.
//!
//! Invariant: once the filter is complete, a scope that it lacks is in no table, or its number would be issued again. A
//! scope is added when it is looked for the first time, which is before any batch can create it.

use rusqlite::{Connection, Result, params};

use crate::write;

/// The scopes of the first part of the filter. Each further part has room for twice as many.
const FIRST_PART: usize = 1 << 17;

/// With all its parts, the filter has room for 33 million scopes, in 64 MiB. In a larger store, each new scope is looked
/// for.
const PARTS_MAX: usize = 8;

/// One scope in a hundred that the store lacks is looked for in vain.
const SCOPES_PER_WORD: usize = 4;

/// How many rows of `cursor` an idle writer reads at once, in less than a millisecond.
const ROWS_READ: usize = 1_024;

pub(crate) struct KnownScopes {
    parts: Vec<Part>,
    state: State,
}

enum State {
    /// The rows of `cursor` up to this one were added.
    ReadTo(i64, Box<str>),
    Complete,
    /// Every scope is looked for.
    Off,
}

/// Each scope sets some bits of one word.
struct Part {
    words: Box<[u64]>,
    room: usize,
}

impl KnownScopes {
    pub(crate) fn new(connection: &Connection) -> Result<Self> {
        let sql = "SELECT EXISTS (SELECT 1 FROM cursor)";
        let has_scopes = connection.query_row(sql, [], |row| row.get(0))?;
        Ok(if has_scopes { Self::unread() } else { Self { parts: Vec::new(), state: State::Complete } })
    }

    pub(crate) fn unread() -> Self {
        Self { parts: Vec::new(), state: State::ReadTo(i64::MIN, "".into()) }
    }

    /// Whether the store may have the scope with this hash. From now on it may.
    pub(crate) fn meet(&mut self, hash: u64) -> bool {
        let is_met = self.parts.iter().any(|part| part.has(hash));
        if !is_met {
            self.add(hash);
        }
        is_met || !matches!(self.state, State::Complete)
    }

    fn add(&mut self, hash: u64) {
        if matches!(self.state, State::Off) {
            return;
        }
        if self.parts.last().is_none_or(|part| part.room == 0) {
            if self.parts.len() == PARTS_MAX {
                *self = Self { parts: Vec::new(), state: State::Off };
                return;
            }
            self.parts.push(Part::new(FIRST_PART << self.parts.len()));
        }
        if let Some(part) = self.parts.last_mut() {
            part.add(hash);
        }
    }

    pub(crate) fn is_reading(&self) -> bool {
        matches!(self.state, State::ReadTo(..))
    }

    /// Adds the next scopes of an earlier run.
    pub(crate) fn read_some(
        &mut self,
        connection: &Connection,
        hash: impl Fn(i64, &str) -> u64,
    ) -> Result<()> {
        let State::ReadTo(series_id, scope) = &self.state else { return Ok(()) };
        let sql = "SELECT series_id, scope FROM cursor WHERE (series_id, scope) > (?, ?)
                   ORDER BY series_id, scope LIMIT ?";
        let values = params![series_id, scope, write::to_limit(ROWS_READ)];
        let read =
            |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, Box::from(row.get_ref(1)?.as_str()?)));
        let rows: Vec<(i64, Box<str>)> = write::rows(connection, sql, values, read)?;
        for (series_id, scope) in &rows {
            self.meet(hash(*series_id, scope));
        }
        if self.is_reading() {
            self.state = match rows.into_iter().nth(ROWS_READ - 1) {
                Some((series_id, scope)) => State::ReadTo(series_id, scope),
                None => State::Complete,
            };
        }
        Ok(())
    }
}

impl Part {
    fn new(room: usize) -> Self {
        Self { words: vec![0; room / SCOPES_PER_WORD].into(), room }
    }

    fn has(&self, hash: u64) -> bool {
        let (at, bits) = self.place(hash);
        self.words[at] & bits == bits
    }

    fn add(&mut self, hash: u64) {
        let (at, bits) = self.place(hash);
        self.words[at] |= bits;
        self.room -= 1;
    }

    /// The word of a hash, by its upper half, and its bits there, by its lower half.
    fn place(&self, hash: u64) -> (usize, u64) {
        let at = ((hash >> 32) as usize * self.words.len()) >> 32;
        let bit = |n: u32| 1_u64 << (hash >> (6 * n) & 63);
        (at, bit(0) | bit(1) | bit(2) | bit(3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spreads neighbours, as the hash of the writer does.
    fn hash(n: u64) -> u64 {
        let mixed = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9).rotate_left(31)
    }

    fn complete() -> KnownScopes {
        KnownScopes { parts: Vec::new(), state: State::Complete }
    }

    #[test]
    fn a_scope_that_was_met_stays_known_and_others_seldom_seem_so() {
        const SCOPES: u64 = 1_000_000;
        let mut known = complete();
        let in_vain = (0..SCOPES).filter(|n| known.meet(hash(*n))).count();
        assert!((0..SCOPES).all(|n| known.meet(hash(n))), "each was met");
        assert!((in_vain as u64) < SCOPES / 50, "{in_vain} of them seemed known before");
        assert!(known.parts.len() < PARTS_MAX);
    }

    #[test]
    fn a_filter_without_room_takes_every_scope_for_known() {
        let mut known = complete();
        known.parts.extend((0..PARTS_MAX).map(|_| Part { words: vec![0; 8].into(), room: 0 }));
        known.meet(hash(1));
        assert!((0..100).all(|n| known.meet(hash(n))));
        assert!(known.parts.is_empty(), "its memory is free");
    }
}
