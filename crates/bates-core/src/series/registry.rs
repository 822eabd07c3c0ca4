//! The series of a machine, by name and by the keys of their scopes.
//!
//! Invariant: no key belongs to two series, so one lookup finds the only candidate.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::{MachineError, MachineResult, SeriesEntry, SeriesName, SeriesSpec};
use crate::scope::KeyTemplate;

/// Restricted words and forbidden prefixes of all series together. A word has at most 64 bytes and is kept twice, in the description and to be
/// searched, so they take some tens of megabytes.
const WORDS_MAX: usize = 200_000;

/// Published as a whole: a change builds another one.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_field_names, reason = "each is an index of the series")]
pub struct Registry {
    by_name: BTreeMap<SeriesName, Arc<SeriesEntry>>,
    /// By the whole key, if it has no parameter.
    by_key: BTreeMap<Box<str>, Arc<SeriesEntry>>,
    /// By the text of the key before its first parameter. No prefix begins with another.
    by_prefix: BTreeMap<Box<str>, Arc<SeriesEntry>>,
}

impl Registry {
    pub fn entries(&self) -> impl Iterator<Item = &Arc<SeriesEntry>> {
        self.by_name.values()
    }

    /// By name, after `after`.
    pub fn entries_after(&self, after: Option<&SeriesName>) -> impl Iterator<Item = &Arc<SeriesEntry>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_name.range::<SeriesName, _>((from, Bound::Unbounded)).map(|(_, entry)| entry)
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&Arc<SeriesEntry>> {
        self.by_name.get(name)
    }

    pub fn get_by_key(&self, key: &str) -> Option<&Arc<SeriesEntry>> {
        // Every text between a prefix and a key that begins with it also begins with it, so the last prefix not after
        // the key is the only candidate.
        let mut before = self.by_prefix.range::<str, _>((Bound::Unbounded, Bound::Included(key)));
        match before.next_back() {
            Some((_, entry)) if entry.key().is_some_and(|template| template.matches(key)) => Some(entry),
            _ => self.by_key.get(key),
        }
    }

    /// Refuses a series whose key could be one of another series. Compares only keys that begin alike: with thousands
    /// of series, comparing all would take seconds at every start.
    pub(crate) fn check_key_is_free(&self, spec: &SeriesSpec) -> MachineResult<()> {
        let Some(key) = &spec.key else { return Ok(()) };
        let prefix = key.prefix();
        let longer = [&self.by_prefix, &self.by_key].into_iter().flat_map(|keys| {
            let from = keys.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
            from.take_while(|(other, _)| other.starts_with(prefix)).map(|(_, entry)| entry)
        });
        let shorter = (0..=prefix.len()).filter_map(|end| self.by_prefix.get(prefix.get(..end)?));
        let mut others = longer.chain(shorter).filter(|other| other.spec.name != spec.name);
        others.try_for_each(|other| spec.check_distinct_from(&other.spec))
    }

    /// Refuses a description that adds restricted words beyond the limit of all series together. Fewer words than before are
    /// always accepted, and so is a series that the store or the configuration has already.
    pub(crate) fn check_word_count(&self, spec: &SeriesSpec) -> MachineResult<()> {
        let count = |entry: &Arc<SeriesEntry>| entry.spec.reject.given_count();
        let (before, words) = (self.get(spec.name.as_str()).map_or(0, count), spec.reject.given_count());
        let all = self.entries().map(count).sum::<usize>() - before + words;
        if words <= before || all <= WORDS_MAX {
            return Ok(());
        }
        Err(MachineError::TooManyWords { series: spec.name.clone(), words, all, max: WORDS_MAX })
    }

    /// A copy in which the entry replaces the series of its name.
    pub(crate) fn with(&self, entry: SeriesEntry) -> Self {
        let mut registry = self.without(&entry.spec.name);
        registry.insert(entry);
        registry
    }

    /// Inserts a series; its name must be new.
    pub(crate) fn insert(&mut self, entry: SeriesEntry) {
        let entry = Arc::new(entry);
        if let Some(key) = entry.key() {
            self.index_of(key).insert(key.prefix().into(), entry.clone());
        }
        self.by_name.insert(entry.spec.name.clone(), entry);
    }

    pub(crate) fn without(&self, name: &SeriesName) -> Self {
        let mut registry = self.clone();
        registry.remove(name);
        registry
    }

    pub(crate) fn remove(&mut self, name: &SeriesName) {
        let entry = self.by_name.remove(name);
        if let Some(key) = entry.as_ref().and_then(|entry| entry.key()) {
            self.index_of(key).remove(key.prefix());
        }
    }

    fn index_of(&mut self, key: &KeyTemplate) -> &mut BTreeMap<Box<str>, Arc<SeriesEntry>> {
        if key.parameters().next().is_some() { &mut self.by_prefix } else { &mut self.by_key }
    }
}
