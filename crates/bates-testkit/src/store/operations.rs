//! The part of the conformance suite about the operations log: who changed what, in a chain that shows any removal.

use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    Actor, ChainReport, ChainVerifier, Channel, DocumentAction, DocumentFilter, DocumentState, Operation,
    OperationFilter, OperationKind, OperationViewer, SeriesSet, Settlement, Store, Verdict,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::audit::moment;
use super::descriptions::describing;
use super::exercise::{DataSet, definition, open_pinned, positions, scope_id, series};
use super::outbox::document;

pub(super) fn operation(kind: OperationKind, subject: &str, micros: i64) -> Operation {
    let stamp = Actor { caller: "ops", channel: Channel::Http }.stamp(moment(micros));
    let operation = Operation {
        id: Uuid::now_v7(),
        at: stamp.at,
        caller: stamp.caller,
        channel: stamp.channel,
        kind,
        series: None,
        subject: Box::default(),
        before: None,
        after: None,
    };
    operation.on(subject)
}

async fn all<S: Store>(store: &S) -> Vec<Operation> {
    let found = store.operations(OperationFilter::default(), None, 100_000).await.expect("a read");
    found.into_iter().map(|record| record.operation).collect()
}

/// Reads every chain in small pages and verifies it.
async fn verify<S: Store>(store: &S) -> Vec<ChainReport> {
    let mut reports = Vec::new();
    for head in store.chains().await.expect("a read") {
        let mut verifier = ChainVerifier::new(&head.chain, Vec::new(), moment(0));
        let mut after = 0;
        loop {
            let page = store.chain_records(head.chain.clone(), after, 7).await.expect("a read");
            let Some(last) = page.last() else { break };
            after = last.number;
            for record in &page {
                verifier.add(record);
            }
        }
        reports.push(verifier.end(head));
    }
    reports
}

/// The chains have no fault, and these numbers of records and removed records together.
async fn check_chains<S: Store>(store: &S, records: u64, removed: u64) {
    let reports = verify(store).await;
    let faults: Vec<_> = reports.iter().flat_map(|report| &report.faults).collect();
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(reports.iter().map(|report| report.records).sum::<u64>(), records);
    assert_eq!(reports.iter().map(|report| report.removed).sum::<u64>(), removed);
}

pub async fn every_change_is_recorded_in_its_own_commit<D: DataSet>(data: &D) {
    use OperationKind as Kind;
    let store = open_pinned(data).await;
    store.pin(definition("invoice"), None).await.expect("a first pin");
    let of = |kind, micros| Some(operation(kind, "", micros));
    let (name, at) = (|| series("invoice"), || scope_id("a"));
    store.describe(name(), describing(None, Some("{}")), of(Kind::SeriesCreated, 1)).await.expect("a write");
    store.raise_floor(at(), 2_000, of(Kind::FloorRaised, 2)).await.expect("a write");
    let adopted = positions([3_000, 3_002]);
    store.adopt_positions(at(), adopted, of(Kind::PositionsAdopted, 3)).await.expect("a write");
    store.pool(at(), of(Kind::PoolRequested, 4)).await.expect("a write");
    store.assign(document("b")).await.expect("a document");
    let id = store.documents(DocumentFilter::default(), None, 1).await.expect("a read")[0].id;
    store.apply_action(id, DocumentAction::Abandon, of(Kind::DocumentAbandoned, 5)).await.expect("a write");
    let dead = DocumentFilter { state: Some(DocumentState::Abandoned), ..DocumentFilter::default() };
    // Changes that are refused, or change nothing, are not recorded.
    let late = store.describe(name(), describing(None, Some("other")), of(Kind::SeriesChanged, 6)).await;
    assert_eq!(late, Ok(false));
    store.pool(at(), of(Kind::PoolRequested, 7)).await.expect("a read");
    store.apply_action(id, DocumentAction::Retry, of(Kind::DocumentRetried, 8)).await.expect("a write");
    let retried = store.apply_action_to_all(dead, DocumentAction::Retry, of(Kind::DocumentsRetried, 9)).await;
    assert_eq!(retried, Ok(0));
    drop(store);
    let store = data.open().await;
    let found: Vec<_> = all(&store).await.into_iter().map(|it| (it.kind, it.before, it.after)).collect();
    let text = |text: &str| Some(Box::<str>::from(text));
    assert_eq!(
        found,
        [
            (Kind::SeriesCreated, None, None),
            (Kind::FloorRaised, text("1001"), text("2000")),
            (Kind::PositionsAdopted, None, text("2 positions from 3000 to 3002")),
            (Kind::PoolRequested, None, None),
            (Kind::DocumentAbandoned, text("pending"), text("abandoned")),
        ]
    );
    check_chains(&store, 5, 0).await;
}

pub async fn a_bulk_action_records_how_many_documents_it_changed<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    for _ in 0..3 {
        store.assign(document("a")).await.expect("a document");
    }
    let claim = bates_core::ClaimRequest {
        series: series("document"),
        limit: 10,
        stop_at_bytes: 1_000,
        ttl: Duration::from_mins(1),
    };
    let settle = |delivery: bates_core::Delivery| Settlement {
        document_id: delivery.document_id,
        attempt: delivery.attempt,
        verdict: Verdict::Dead("refused".into()),
    };
    let claimed = store.claim(claim).await.expect("a claim").into_iter().map(settle).collect();
    assert_eq!(store.settle_claims(claimed).await, Ok(3));
    let dead = DocumentFilter { state: Some(DocumentState::Dead), ..DocumentFilter::default() };
    let retry = Some(operation(OperationKind::DocumentsRetried, "", 1));
    assert_eq!(store.apply_action_to_all(dead, DocumentAction::Retry, retry).await, Ok(3));
    let [recorded] = &*all(&store).await else { panic!("one operation") };
    assert_eq!((recorded.before.as_deref(), recorded.after.as_deref()), (Some("dead"), Some("pending: 3")));
}

pub async fn an_operation_is_recorded_once_and_concurrent_ones_stay_in_one_chain<D: DataSet>(data: &D) {
    let store = std::sync::Arc::new(open_pinned(data).await);
    let first = operation(OperationKind::LossAccepted, "first", 0);
    for _ in 0..2 {
        store.append_operation(first.clone()).await.expect("a write");
    }
    let tasks: Vec<_> = (1..=40)
        .map(|at| {
            let store = store.clone();
            tokio::spawn(async move {
                store.append_operation(operation(OperationKind::LossAccepted, &at.to_string(), at)).await
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task").expect("a write");
    }
    check_chains(&*store, 41, 0).await;
    assert_eq!(all(&*store).await.len(), 41);
}

pub async fn operations_are_listed_in_pages_and_by_filter<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    for at in 0..20 {
        let (name, caller) = if at % 2 == 0 { ("acme.a", "even") } else { ("other", "odd") };
        let series = (at % 4 < 2).then(|| series(name));
        let kind = if at < 10 { OperationKind::SeriesCreated } else { OperationKind::SeriesRetired };
        let of = Operation { series, caller: caller.into(), ..operation(kind, &at.to_string(), at / 3) };
        store.append_operation(of).await.expect("a write");
    }
    let acme = SeriesSet::Patterns(["acme.*".parse().expect("a pattern")].into());
    let viewer = OperationViewer { series: acme, caller: "odd".into() };
    let filters = [
        OperationFilter::default(),
        OperationFilter { seen_by: Some(viewer), ..OperationFilter::default() },
        OperationFilter { series: Some(series("other")), ..OperationFilter::default() },
        OperationFilter { caller: Some("even".into()), ..OperationFilter::default() },
        OperationFilter { kind: Some(OperationKind::SeriesRetired), ..OperationFilter::default() },
        OperationFilter { since: Some(moment(2)), until: Some(moment(4)), ..OperationFilter::default() },
    ];
    for filter in filters {
        let mut expected = all(&store).await;
        expected.retain(|operation| filter.matches(operation));
        assert!(!expected.is_empty(), "{filter:?}");
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = store.operations(filter.clone(), after, 3).await.expect("a read");
            let Some(last) = page.last() else { break };
            after = Some((last.operation.at, last.operation.id));
            found.extend(page.into_iter().map(|record| record.operation));
        }
        assert_eq!(found, expected, "{filter:?}");
    }
}

pub async fn pruning_removes_the_beginning_of_a_chain_and_says_so<D: DataSet>(data: &D) {
    let store = open_pinned(data).await;
    for at in 0..20 {
        // Record 12 is as old as record 2: a clock was set back.
        let micros = if at == 12 { 2 } else { at };
        let of = operation(OperationKind::FloorRaised, &at.to_string(), micros);
        store.append_operation(of).await.expect("a write");
    }
    let chain = store.chains().await.expect("a read")[0].chain.clone();
    let prune = async |before: Timestamp, limit| {
        let by = operation(OperationKind::RecordsRemoved, "", 100);
        store.prune_chain(chain.clone(), before, limit, by).await.expect("a write")
    };
    assert_eq!(prune(moment(0), 100).await, 0);
    check_chains(&store, 20, 0).await;
    assert_eq!(prune(moment(10), 4).await, 4);
    check_chains(&store, 17, 4).await;
    assert_eq!(prune(moment(10), 100).await, 6);
    check_chains(&store, 12, 10).await;
    let next = operation(OperationKind::FloorRaised, "later", 200);
    store.append_operation(next).await.expect("a write");
    drop(store);
    check_chains(&data.open().await, 13, 10).await;
}

/// More than two pages of a move.
pub(super) async fn fill_operations<S: Store>(store: &S) {
    for at in 0..2_100 {
        let of = operation(OperationKind::FloorRaised, &at.to_string(), at);
        store.append_operation(of).await.expect("a write");
    }
}

/// The chains that [`fill_operations`] wrote, and whatever was appended since.
pub(super) async fn check_operations<S: Store>(store: &S) {
    let reports = verify(store).await;
    assert!(reports.iter().all(|report| report.faults.is_empty()), "{reports:?}");
    assert!(reports.iter().map(|report| report.records).sum::<u64>() >= 2_100, "{reports:?}");
}
