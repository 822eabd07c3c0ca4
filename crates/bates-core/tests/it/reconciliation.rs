//! Reservations, client leases and the gap report, on a clock that the test moves.

use std::sync::Arc;
use std::time::Duration;

use bates_core::{
    ActionOutcome, Actor, DocumentAction, DocumentContent, DocumentRetention, DocumentState, GapFilter,
    GapReason, LeaseContent, LeaseOwner, LeaseRequest, Machine, Permissions, Promise, Rights, ScopeParams,
    SeriesSet, SeriesSpec,
};
use bates_testkit::{MemoryStore, SimulatedRuntime};

const HOUR: Duration = Duration::from_hours(1);

async fn machine(promise: Promise) -> Machine<MemoryStore> {
    let runtime = Arc::new(SimulatedRuntime::new(3));
    let store = Arc::new(MemoryStore::with_runtime(runtime.clone()));
    let spec = SeriesSpec { promise, ..SeriesSpec::new("number".parse().unwrap(), "{seq}") };
    Machine::open(store, vec![spec], runtime).await.unwrap()
}

/// The gaps that a reconciliation finds: first position, last position, reason.
async fn gaps(machine: &Machine<MemoryStore>) -> Vec<(u64, u64, GapReason)> {
    machine.reconcile(None).await.unwrap();
    let gaps = machine.gaps(GapFilter::default(), None, 100).await.unwrap();
    gaps.iter()
        .map(|gap| (gap.missing.range.from(), gap.missing.range.to() - 1, gap.missing.reason))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_reservation_not_confirmed_in_time_is_voided_and_becomes_a_gap() {
    let machine = machine(Promise::Gapless).await;
    let entry = machine.series("number").unwrap();
    let mut tokens = Vec::new();
    for _ in 0..3 {
        let content = DocumentContent::Reservation(HOUR);
        let reserved = machine.assign(&entry, ScopeParams::default(), content, None, "test").await.unwrap();
        tokens.push(reserved.document_id);
    }
    assert!(matches!(
        machine.apply_action(tokens[0], DocumentAction::Confirm, Actor::library("test")).await,
        Ok(ActionOutcome::Done(_))
    ));
    assert_eq!(gaps(&machine).await, [], "the reservations have not expired yet");
    tokio::time::sleep(HOUR + Duration::from_secs(1)).await;
    assert!(
        matches!(
            machine.apply_action(tokens[1], DocumentAction::Confirm, Actor::library("test")).await,
            Ok(ActionOutcome::Refused(_))
        ),
        "too late"
    );
    let retention = DocumentRetention { delivered: 24 * HOUR, undelivered: 48 * HOUR };
    assert_eq!(machine.prune_documents(retention).await, Ok((2, 0)));
    assert_eq!(gaps(&machine).await, [(2, 3, GapReason::Voided)]);
    tokio::time::sleep(24 * HOUR).await;
    assert_eq!(
        machine.prune_documents(retention).await,
        Ok((0, 1)),
        "an old confirmed reservation is pruned"
    );
    let tally = machine.count_documents().await.unwrap();
    assert_eq!(tally, [("number".parse().unwrap(), DocumentState::Voided, 2)]);
    assert_eq!(gaps(&machine).await, [(2, 3, GapReason::Voided)], "a pruned reservation is not a gap");
    tokio::time::sleep(24 * HOUR).await;
    assert_eq!(machine.prune_documents(retention).await, Ok((0, 2)), "voided ones have their own time");
    assert_eq!(gaps(&machine).await, [(2, 3, GapReason::Voided)], "a voided one remains a gap");
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_silent_client_is_uncertain_until_it_returns_its_unused_numbers() {
    let machine = machine(Promise::Unique).await;
    let entry = machine.series("number").unwrap();
    let request =
        LeaseRequest { count: 10, numbers_max: 10, as_numbers: false, used: vec![], owner: LeaseOwner::Any };
    let leased =
        machine.lease(&entry, ScopeParams::default(), request, Actor::library("a client")).await.unwrap();
    let LeaseContent::Ranges(ranges) = leased.content else { panic!("the request was for positions") };
    let (first, last) = (ranges[0].from(), ranges[0].to() - 1);
    let of_client = async || {
        let gaps = gaps(&machine).await;
        gaps.into_iter().filter(|gap| gap.1 <= last).collect::<Vec<_>>()
    };
    assert_eq!(of_client().await, [], "the client may still use them");
    tokio::time::sleep(25 * HOUR).await;
    assert_eq!(of_client().await, [(first, last, GapReason::CrashSkip)], "the client was silent for a day");
    let unused = bates_core::PositionRange::new(last - 2, last + 1).unwrap();
    assert_eq!(machine.end_lease(leased.id, vec![unused], LeaseOwner::Any).await, Ok(3));
    assert_eq!(of_client().await, [(last - 2, last, GapReason::LeaseLost)], "the client used the others");
    assert!(machine.end_lease(leased.id, vec![], LeaseOwner::Any).await.is_err(), "a lease ends only once");
}

#[tokio::test(start_paused = true)]
async fn gaps_are_as_of_the_start_of_the_reconciliation_of_the_series_that_was_reconciled_least_recently() {
    let machine = machine(Promise::Unique).await;
    let (all, none) = (Permissions::all(), Permissions::new(Rights::ALL, SeriesSet::Patterns([].into())));
    let [number, second] = ["number", "second"].map(|name| name.parse().unwrap());
    let at = async |series| machine.reconciled_at(&all, series).await.unwrap();
    assert_eq!((at(None).await, at(Some(&number)).await), (None, None), "never reconciled");
    machine.reconcile(None).await.unwrap();
    let first = at(None).await.expect("a time");
    let spec = SeriesSpec::new("second".parse().unwrap(), "S{seq}");
    machine.create_series(spec, Actor::library("test")).await.unwrap();
    assert_eq!(at(None).await, None, "the gaps of the new series are not known");
    tokio::time::sleep(HOUR).await;
    machine.reconcile(Some(&second)).await.unwrap();
    assert_eq!((at(None).await, at(Some(&number)).await), (Some(first), Some(first)));
    assert!(at(Some(&second)).await > Some(first));
    assert_eq!(machine.reconciled_at(&none, None).await, Ok(None), "the caller may read no series");
}
