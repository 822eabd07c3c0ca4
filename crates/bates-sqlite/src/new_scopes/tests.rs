//! New scopes beside a model: a plain map from scope to cursor.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rusqlite::params;

use super::*;

const RUN: i64 = 7;

/// More than one commit merges at least, so that a commit can leave some.
const SCOPES: u64 = 2_000;

#[derive(Clone, Debug)]
enum Step {
    /// Scopes from `from` on are created, and one of the earlier ones is changed.
    Commit { from: u64, count: u64, changed: u64, is_merged: bool },
    /// As a commit, and then the disk is full.
    Fail { from: u64, count: u64, is_merged: bool },
    /// The writer is idle: a commit only merges.
    Idle,
    /// The writer is idle, and reads which scopes earlier runs created.
    Read,
    /// The process is killed, and the store is opened again.
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let (from, count) = (0..SCOPES, 1_u64..400);
    prop_oneof![
        6 => (from.clone(), count.clone(), 0..SCOPES, prop::bool::weighted(0.1)).prop_map(
            |(from, count, changed, is_merged)| Step::Commit { from, count, changed, is_merged }
        ),
        1 => (from, count, any::<bool>()).prop_map(|(from, count, is_merged)| Step::Fail { from, count, is_merged }),
        2 => Just(Step::Idle),
        2 => Just(Step::Read),
        1 => Just(Step::Crash),
    ]
}

fn scope(n: u64) -> ScopeKey {
    ScopeKey::from_store(&format!("c=\"{n:04}\\"))
}

struct Store {
    connection: Connection,
    new_scopes: NewScopes,
    /// The next position of each scope, as of the last commit.
    model: BTreeMap<ScopeKey, u64>,
}

impl Store {
    fn new() -> Self {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("../schema.sql")).unwrap();
        let series = "INSERT INTO series (id, name, template, parameters, shuffled, start, reset, time_zone, construction)
                      VALUES (3, 's', '{seq}', '[]', 0, 1, 'never', 'UTC', 1)";
        connection.execute(series, []).unwrap();
        let new_scopes = Self::opened(&connection);
        Self { connection, new_scopes, model: BTreeMap::new() }
    }

    fn opened(connection: &Connection) -> NewScopes {
        NewScopes { merged_together: 600, ..NewScopes::new(connection, RUN).unwrap() }
    }

    /// Creates those scopes that do not exist yet, as a batch does.
    fn apply(&mut self, from: u64, count: u64, changed: Option<u64>, is_merged: bool, is_committed: bool) {
        let all: Vec<ScopeKey> = (from..(from + count).min(SCOPES)).map(scope).collect();
        let transaction = self.connection.unchecked_transaction().unwrap();
        let merge = if is_merged { Merge::NeedsCursors } else { Merge::Calls(all.len()) };
        let mut change = self.new_scopes.merge(&transaction, merge).unwrap();
        let mut added = all;
        added.retain(|scope| !self.model.contains_key(scope));
        // Before a scope is created, it is looked for.
        let found = |scope| self.new_scopes.find(&transaction, 3, scope, &mut change).unwrap();
        added.iter().map(found).for_each(drop);
        let added: Vec<_> = added
            .into_iter()
            .map(|scope| NewScope { series_id: 3, scope, next: 33, version: 1, held_from: Some(1) })
            .collect();
        let mut model = self.model.clone();
        model.extend(added.iter().map(|new| (new.scope.clone(), new.next)));
        if let Some(scope) = changed.map(scope)
            && let Some(next) = self.model.get(&scope)
        {
            assert!(self.new_scopes.find(&transaction, 3, &scope, &mut change).unwrap(), "{scope} may exist");
            let sql = "UPDATE cursor SET next = ?, version = version + 1 WHERE series_id = 3 AND scope = ?";
            let changed = transaction.execute(sql, params![to_i64(next + 32), scope.as_str()]);
            assert_eq!(changed, Ok(1), "{scope} has a row");
            model.insert(scope, next + 32);
        }
        self.new_scopes.append(&transaction, added, &mut change).unwrap();
        if is_committed {
            transaction.commit().unwrap();
            self.new_scopes.committed(change);
            self.model = model;
        }
    }

    fn idle(&mut self) {
        let transaction = self.connection.unchecked_transaction().unwrap();
        let change = self.new_scopes.merge(&transaction, Merge::Idle).unwrap();
        transaction.commit().unwrap();
        self.new_scopes.committed(change);
    }

    /// Scopes that exist, and would not be looked for.
    fn forgotten(&mut self) -> Vec<ScopeKey> {
        let NewScopes { known, hasher, .. } = &mut self.new_scopes;
        let is_forgotten = |scope: &&ScopeKey| !known.meet(hash(hasher, 3, scope.as_str()));
        self.model.keys().filter(is_forgotten).cloned().collect()
    }

    fn cursors(&self, table: &str) -> Vec<(ScopeKey, u64)> {
        let sql = format!("SELECT scope, next FROM {table} ORDER BY scope");
        let read = |row: &rusqlite::Row<'_>| {
            Ok((ScopeKey::from_store(row.get_ref(0)?.as_str()?), crate::write::to_u64(row.get(1)?)))
        };
        let mut statement = self.connection.prepare(&sql).unwrap();
        statement.query_map([], read).unwrap().map(Result::unwrap).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_scope_is_found_with_its_last_cursor(steps in prop::collection::vec(step(), 1..40)) {
        let mut store = Store::new();
        for step in steps {
            match step {
                Step::Commit { from, count, changed, is_merged } => {
                    store.apply(from, count, Some(changed), is_merged, true);
                }
                Step::Fail { from, count, is_merged } => store.apply(from, count, None, is_merged, false),
                Step::Crash => {
                    merge_left(&store.connection).unwrap();
                    store.new_scopes = Store::opened(&store.connection);
                }
                Step::Idle => store.idle(),
                Step::Read => store.new_scopes.read_known(&store.connection).unwrap(),
            }
            prop_assert_eq!(store.forgotten(), vec![]);
            let model: Vec<_> = store.model.clone().into_iter().collect();
            prop_assert_eq!(&store.cursors("cursors"), &model);
            let rows = store.cursors("cursor").len();
            prop_assert!(store.new_scopes.scopes.len() < 3 * 600 + 400, "merging keeps pace");
            let is_any = store.new_scopes.is_any().load();
            prop_assert!(is_any || rows == model.len(), "readers know whether scopes are missing");
        }
        store.apply(0, 0, None, true, true);
        prop_assert_eq!(store.cursors("cursor"), store.model.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn what_earlier_runs_created_is_looked_for_before_and_after_it_was_read() {
    let mut store = Store::new();
    store.apply(0, SCOPES, None, true, true);
    merge_left(&store.connection).unwrap();
    store.new_scopes = Store::opened(&store.connection);
    let mut reads = 0;
    while store.new_scopes.is_reading_known() {
        assert_eq!(store.forgotten(), vec![], "after {reads} reads");
        store.new_scopes = Store::opened(&store.connection);
        reads += 1;
        (0..reads).for_each(|_| store.new_scopes.read_known(&store.connection).unwrap());
    }
    assert_eq!(reads, 2, "each reads a thousand scopes");
    assert_eq!(store.forgotten(), vec![]);
    let absent = (SCOPES..2 * SCOPES).map(scope).collect::<Vec<_>>();
    let NewScopes { known, hasher, .. } = &mut store.new_scopes;
    let looked_for = absent.iter().filter(|scope| known.meet(hash(hasher, 3, scope.as_str()))).count();
    assert!((looked_for as u64) < SCOPES / 20, "{looked_for} are looked for in vain");
}

#[test]
fn scopes_in_no_table_stay_known_if_a_write_that_adds_others_fails() {
    let mut store = Store::new();
    store.apply(0, 300, None, false, true);
    assert!(store.cursors("cursor").is_empty(), "they are not merged yet");
    store.new_scopes.forget_known();
    store.apply(0, 0, None, true, false);
    while store.new_scopes.is_reading_known() {
        store.new_scopes.read_known(&store.connection).unwrap();
    }
    assert_eq!(store.forgotten(), vec![]);
}
