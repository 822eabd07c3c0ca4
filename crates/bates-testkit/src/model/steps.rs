//! Random histories of one process on a store, checked by the model after every step. A failing history is shrunk to
//! a short one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    AssignRequest, Definition, DocumentAction, DocumentContent, DocumentFilter, GrantPurpose, GrantRequest,
    Idempotency, PositionRange, PruneGroup, ReleaseRequest, ScopeId, ScopeKey, ScopePositions, SeriesName,
};
use bates_pattern::{Options, Pattern};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use uuid::Uuid;

use super::{KeyModel, ScopeModel, Verdict};
use crate::DataSet;

/// Scopes of a history.
const SCOPES: usize = 3;

const START: u64 = 1_001;

/// So few positions that scopes are exhausted.
const END: u64 = 1_121;

/// An operation of the process.
#[derive(Clone, Debug)]
enum Step {
    Grant {
        scope: usize,
        purpose: GrantPurpose,
        count: u64,
    },
    /// Releases everything it holds except the first `used` positions of the last range.
    Release {
        scope: usize,
        used: u64,
    },
    Assign {
        scope: usize,
        key: Option<(u8, u8)>,
    },
    RaiseFloor {
        scope: usize,
        ahead: u64,
    },
    Adopt {
        scope: usize,
        positions: Vec<u64>,
    },
    /// Abandons the documents of a scope, and may remove all that are abandoned.
    Abandon {
        scope: usize,
        removes: bool,
    },
    /// Crashes and opens the store again.
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let purpose = prop_oneof![
        4 => Just(GrantPurpose::Hold),
        1 => Just(GrantPurpose::Pool),
        1 => Just(GrantPurpose::HandOut),
        1 => Just(GrantPurpose::Issue),
    ];
    prop_oneof![
        6 => (0..SCOPES, purpose, 1..20_u64).prop_map(|(scope, purpose, count)| Step::Grant { scope, purpose, count }),
        4 => (0..SCOPES, 0..20_u64).prop_map(|(scope, used)| Step::Release { scope, used }),
        3 => (0..SCOPES, prop::option::of((0..4_u8, 0..2_u8))).prop_map(|(scope, key)| Step::Assign { scope, key }),
        1 => (0..SCOPES, 0..30_u64).prop_map(|(scope, ahead)| Step::RaiseFloor { scope, ahead }),
        1 => (0..SCOPES, prop::collection::vec(START..END, 1..6))
            .prop_map(|(scope, positions)| Step::Adopt { scope, positions }),
        1 => (0..SCOPES, any::<bool>()).prop_map(|(scope, removes)| Step::Abandon { scope, removes }),
        1 => Just(Step::Reopen),
    ]
}

/// Runs random histories on a store, each in its own scopes, and panics with a short one that the model refuses.
pub fn check_random_histories<D: DataSet>(fresh: impl AsyncFn() -> D, cases: u32) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let (data, histories) = (runtime.block_on(fresh()), AtomicU32::new(0));
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&prop::collection::vec(step(), 1..40), |steps| {
        let number = histories.fetch_add(1, Ordering::Relaxed);
        runtime.block_on(History::run(&data, number, &steps)).map_err(TestCaseError::fail)
    });
    if let Err(refused) = result {
        panic!("{refused}");
    }
}

/// A running history.
struct History<'d, D: DataSet> {
    data: &'d D,
    store: Option<D::Store>,
    number: u32,
    scopes: Vec<ScopeModel>,
    keys: KeyModel,
}

impl<'d, D: DataSet> History<'d, D> {
    async fn run(data: &'d D, number: u32, steps: &[Step]) -> Verdict {
        let store = data.open().await;
        store.pin(definition(), None).await.map_err(|error| error.to_string())?;
        let scopes = (0..SCOPES).map(|_| ScopeModel::new(START)).collect();
        let mut history = Self { data, store: Some(store), number, scopes, keys: KeyModel::default() };
        for (at, step) in steps.iter().enumerate() {
            history.run_step(step).await.map_err(|error| format!("step {at}, {step:?}: {error}"))?;
        }
        history.judge_accounts().await
    }

    fn scope_id(&self, scope: usize) -> ScopeId {
        let scope = ScopeKey::new([("scope", &*self.name(scope))], None).expect("a good scope");
        ScopeId { series: series(), scope }
    }

    fn name(&self, scope: usize) -> String {
        format!("{:06}_{scope}", self.number)
    }

    async fn run_step(&mut self, step: &Step) -> Verdict {
        match step {
            Step::Grant { scope, purpose, count } => self.grant(*scope, *purpose, *count).await,
            Step::Release { scope, used } => self.release(*scope, *used).await,
            Step::Assign { scope, key } => self.assign(*scope, *key).await,
            Step::RaiseFloor { scope, ahead } => {
                let floor = self.scopes[*scope].next() + ahead;
                let raised = self.store().raise_floor(self.scope_id(*scope), floor, None).await;
                self.scopes[*scope].judge_floor(floor, raised.map_err(|error| error.to_string())?)
            }
            Step::Adopt { scope, positions } => {
                let mut positions = positions.clone();
                positions.sort_unstable();
                positions.dedup();
                // A machine recalls ranges before it adopts positions; here only ungranted positions are adopted.
                positions.retain(|position| *position >= self.scopes[*scope].next());
                let granted = self
                    .store()
                    .adopt_positions(
                        self.scope_id(*scope),
                        crate::store::positions(positions.iter().copied()),
                        None,
                    )
                    .await;
                self.scopes[*scope].judge_adoption(&positions, granted.map_err(|error| error.to_string())?)
            }
            Step::Abandon { scope, removes } => self.abandon(*scope, *removes).await,
            Step::Reopen => {
                self.judge_accounts().await?;
                self.store = None;
                self.store = Some(self.data.open().await);
                self.scopes.iter_mut().for_each(ScopeModel::crash);
                self.judge_accounts().await
            }
        }
    }

    async fn grant(&mut self, scope: usize, purpose: GrantPurpose, count: u64) -> Verdict {
        let held_from = self.scopes[scope].held_from();
        let request = GrantRequest {
            scope_id: self.scope_id(scope),
            count,
            count_needed: count,
            start: START,
            end: END,
            scopes_max: u64::MAX >> 1,
            purpose,
            promise: None,
            held_from,
        };
        let answer = self.store().grant(request).await;
        self.scopes[scope].judge_grant(purpose, count, END, &answer)
    }

    async fn release(&mut self, scope: usize, used: u64) -> Verdict {
        let Some((last, others)) = self.scopes[scope].held().split_last() else { return Ok(()) };
        let from = last.range.from() + used.min(last.range.count() - 1);
        let unused = PositionRange::new(from, last.range.to()).expect("one position is unused");
        let lost = others.iter().map(|held| held.range).collect();
        let release =
            ReleaseRequest { scope_id: self.scope_id(scope), range: unused, version: last.version, lost };
        let answer = self.store().release(release).await.map_err(|error| error.to_string())?;
        self.scopes[scope].judge_release(unused, answer)
    }

    async fn assign(&mut self, scope: usize, key: Option<(u8, u8)>) -> Verdict {
        let pattern = Pattern::compile("{scope}-{seq}", Options::default()).expect("a good pattern");
        let (scope_id, document_id) = (self.scope_id(scope), Uuid::now_v7());
        let idempotency = key.map(|(key, digest)| Idempotency {
            caller: "a caller".into(),
            key: format!("{}-{key}", self.number).into(),
            digest: [digest; 32],
        });
        let assign = AssignRequest {
            scope_id,
            start: START,
            end: END,
            scopes_max: u64::MAX >> 1,
            promise: None,
            scope: Arc::new(pattern.scope([("scope", &*self.name(scope))], None).expect("a good scope")),
            document_id,
            idempotency,
            only_repeats: false,
            content: DocumentContent::Document("{}".into()),
            caller: "test".into(),
            audit_stamp: None,
        };
        let answer = self.store().assign(assign).await;
        self.keys.judge(key, document_id, &mut self.scopes[scope], END, &answer)
    }

    async fn abandon(&mut self, scope: usize, removes: bool) -> Verdict {
        let filter = DocumentFilter { scope: Some(self.scope_id(scope).scope), ..DocumentFilter::default() };
        let abandoned = self.store().apply_action_to_all(filter, DocumentAction::Abandon, None).await;
        self.scopes[scope].judge_abandoned(abandoned.map_err(|error| error.to_string())?)?;
        if removes {
            let removed = self.store().prune_documents(PruneGroup::Undelivered, Duration::ZERO, 1_000).await;
            removed.map_err(|error| error.to_string())?;
        }
        self.judge_accounts().await
    }

    async fn judge_accounts(&self) -> Verdict {
        // A page starts after this key, which sorts right before the scopes of this history.
        let before =
            ScopeKey::new([("scope", &*format!("{:06}_", self.number))], None).expect("a good scope");
        let accounts = self.store().scope_positions(series(), Some(before), SCOPES).await;
        let accounts: BTreeMap<ScopeKey, ScopePositions> =
            accounts.map_err(|error| error.to_string())?.into_iter().collect();
        for (at, scope) in self.scopes.iter().enumerate() {
            match accounts.get(&self.scope_id(at).scope) {
                Some(account) => {
                    scope.judge_account(account).map_err(|error| format!("scope {at}: {error}"))?;
                }
                None if scope.next() == START => {}
                None => return Err(format!("scope {at} has no account")),
            }
        }
        Ok(())
    }

    fn store(&self) -> &D::Store {
        self.store.as_ref().expect("the store is open between steps")
    }
}

fn series() -> SeriesName {
    "history".parse().expect("a good name")
}

fn definition() -> Definition {
    Definition {
        series: series(),
        template: "{scope}-{seq}".into(),
        parameters: "scope".into(),
        shuffled: false,
        start: START,
        reset: "never".into(),
        time_zone: "UTC".into(),
        construction: 1,
        promise: None,
        rules: None,
    }
}
