//! `MGET key …`: the highest number that each scope has issued. Where `GET` would answer an error that concerns one key, this
//! answers nil, as Redis does for keys that hold no string.

use std::collections::BTreeMap;
use std::sync::Arc;

use bates_core::{Machine, Position, Right, ScopeKey, SeriesEntry, Store, StoreError};

use super::super::session::Session;
use super::request::{Request, refuse};
use super::{Call, Outcome, Reply};

const KEYS_MAX: usize = 1_000;

/// The keys; `None` for one that is not UTF-8, which no series has.
pub(in super::super) struct Keys(Vec<Option<Box<str>>>);

/// Scopes of one series.
struct Group {
    entry: Arc<SeriesEntry>,
    scopes: Vec<ScopeKey>,
    /// Where the key of each scope is in the command.
    at: Vec<usize>,
}

pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    let count = call.command.arg_count() - 1;
    if count > KEYS_MAX {
        return call.fail("ERR", format_args!("MGET has {count} keys; the maximum is {KEYS_MAX}"));
    }
    let text = |key: &[u8]| std::str::from_utf8(key).ok().map(Into::into);
    Outcome::Deferred(Request::Counters(Keys(call.command.args().skip(1).map(text).collect())))
}

impl Keys {
    pub(super) async fn answer<S: Store>(self, session: &Session, machine: &Machine<S>, out: &mut Vec<u8>) {
        let read = self.read(session, machine).await;
        let mut reply = Reply::new(out, session.protocol);
        match read {
            Err(error) => refuse(&mut reply, error.code(), &error),
            Ok(positions) => {
                reply.array(positions.len());
                for position in positions {
                    match position {
                        Some(position) => reply.bulk(position.to_string().as_bytes()),
                        None => reply.null(),
                    }
                }
            }
        }
    }

    async fn read<S: Store>(
        &self,
        session: &Session,
        machine: &Machine<S>,
    ) -> Result<Vec<Option<Position>>, StoreError> {
        let permissions = session.caller().permissions();
        let is_unknown = |key: &str| permissions.owns_key(key) && machine.series_by_key(key).is_none();
        if self.0.iter().flatten().any(|key| is_unknown(key)) {
            // As `GET` does: another node may have just created the series. A key that stays unknown is nil.
            let _ = machine.sync_series().await;
        }
        let mut positions = vec![None; self.0.len()];
        for Group { entry, scopes, at } in self.groups(session, machine) {
            let found = machine.last_positions(&entry, &scopes).await?;
            at.into_iter().zip(found).for_each(|(at, found)| positions[at] = found);
        }
        Ok(positions)
    }

    /// The scopes that the caller may read, of series whose numbers are plain integers.
    fn groups<S: Store>(&self, session: &Session, machine: &Machine<S>) -> Vec<Group> {
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        for (at, key) in self.0.iter().enumerate() {
            let Some(key) = key else { continue };
            let entry = machine.series_by_key(key).filter(|entry| {
                entry.numbers_are_positions() && session.check_key(Right::Read, entry, key).is_ok()
            });
            let Some(entry) = entry else { continue };
            let Some(scope) = machine.scope_of_key(&entry, key) else { continue };
            let name = entry.series().name().as_str();
            let group = groups.entry(name.to_owned()).or_insert_with(|| Group {
                entry: entry.clone(),
                scopes: Vec::new(),
                at: Vec::new(),
            });
            group.scopes.push(scope);
            group.at.push(at);
        }
        groups.into_values().collect()
    }
}
