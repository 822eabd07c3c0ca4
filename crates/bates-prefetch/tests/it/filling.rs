//! Refills: when the buffer requests a lease, how much, and what happens to the numbers.

use std::task::Poll;
use std::time::Duration;

use bates_prefetch::{Prefetch, TakeError};

use super::source::{Away, TestSource};

/// Lets other tasks run until the condition holds.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn numbers_are_rendered_when_they_are_read() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(10));
    let number = numbers.next().await.unwrap();
    assert_eq!((number.position().value(), number.to_string()), (1, "N-000000001".to_owned()));
    let written = TestSource::written(None).prefetch(Prefetch::new(10));
    let number = written.next().await.unwrap();
    assert_eq!((number.position().value(), String::from(number)), (1, "W-1".to_owned()));
}

#[tokio::test]
async fn a_refill_starts_before_the_buffer_is_empty_and_only_one_runs() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    until(|| numbers.cached() == 100).await;
    for _ in 0..49 {
        numbers.try_next().unwrap();
    }
    tokio::task::yield_now().await;
    assert_eq!(source.state(|state| state.requests.clone()), [100], "more than half of the buffer is left");
    source.answers.forget_permits(usize::MAX);
    let mut taken = 49;
    while numbers.try_next().is_ok() {
        taken += 1;
        tokio::task::yield_now().await;
    }
    assert_eq!(taken, 100, "the whole buffer can be taken during a refill");
    assert!(matches!(numbers.try_next(), Err(TakeError::Refilling)));
    let (requests, at_once) = source.state(|state| (state.requests.len(), state.under_way_max));
    assert_eq!((requests, at_once), (2, 1));
    source.answers.add_permits(10);
    assert_eq!(numbers.next().await.unwrap().position().value(), 101);
}

/// A caller that waits for the first numbers does not cause a second refill.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_caller_causes_only_one_refill() {
    for _ in 0..200 {
        let source = TestSource::new();
        let numbers = source.prefetch(Prefetch::new(100).at_most(100));
        numbers.next().await.unwrap();
        numbers.close().await.unwrap();
        assert_eq!(source.state(|state| state.requests.clone()), [100]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_buffer_grows_while_it_is_used_up_quickly() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(10).at_most(1_000));
    for expected in 1..=10_000_u64 {
        assert_eq!(numbers.next().await.unwrap().position().value(), expected);
    }
    let requests = source.state(|state| state.requests.clone());
    assert!(requests.len() < 40 && requests.iter().all(|count| *count <= 1_000), "{requests:?}");
}

#[tokio::test]
async fn unused_numbers_are_reported_when_the_last_handle_is_dropped() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    let other = numbers.clone();
    for _ in 0..30 {
        numbers.next().await.unwrap();
    }
    drop(numbers);
    tokio::task::yield_now().await;
    assert_eq!(source.state(|state| state.unused.len()), 0, "another handle is still open");
    drop(other);
    until(|| source.state(|state| state.open.is_empty())).await;
    assert_eq!(source.used(), (1..=30).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_lease_that_arrives_after_the_last_handle_was_dropped_is_returned() {
    let source = TestSource::new();
    source.answers.forget_permits(usize::MAX);
    let numbers = source.prefetch(Prefetch::new(100));
    until(|| !source.state(|state| state.requests.is_empty())).await;
    drop(numbers);
    source.answers.add_permits(1);
    until(|| source.state(|state| state.unused.len() == 100)).await;
    assert!(source.used().is_empty() && source.state(|state| state.open.is_empty()));
}

/// Numbers that a cancelled call waited for are left to other callers.
#[tokio::test]
async fn a_cancelled_call_blocks_no_other_caller() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    until(|| numbers.cached() == 100).await;
    source.answers.forget_permits(usize::MAX);
    let mut many = Box::pin(numbers.take(150));
    let is_waiting =
        std::future::poll_fn(|context| Poll::Ready(many.as_mut().poll(context).is_pending())).await;
    assert!(is_waiting && numbers.cached() == 100, "the call takes all or nothing");
    assert_eq!(numbers.next().await.unwrap().position().value(), 1);
    drop(many);
    assert!(matches!(numbers.take(usize::MAX).await, Err(TakeError::TooMany { max: 1_000_000 })));
    assert_eq!(numbers.close().await.unwrap(), 99);
    assert_eq!(source.used(), [1], "no other number was used");
}

/// Two callers take rendered numbers, and one of them is cancelled.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_used_number_is_never_reported_as_unused() {
    for _ in 0..50 {
        let source = TestSource::written(None);
        let numbers = source.prefetch(Prefetch::new(2_000).at_most(2_000));
        until(|| numbers.cached() == 2_000).await;
        source.answers.forget_permits(usize::MAX);
        let (one, other) = (numbers.clone(), numbers.clone());
        let cancelled = tokio::spawn(async move { one.take(5_000).await.is_ok() });
        let taking = tokio::spawn(async move {
            let taken = (0..50).filter_map(|_| other.try_next().ok()).map(|number| number.position().value());
            taken.collect::<Vec<_>>()
        });
        let used = taking.await.unwrap();
        cancelled.abort();
        assert!(cancelled.await.unwrap_err().is_cancelled());
        source.answers.add_permits(1_000);
        numbers.close().await.unwrap();
        assert_eq!((source.used(), used.len()), (used, 50));
    }
}

#[tokio::test(start_paused = true)]
async fn a_take_gets_the_remainder_if_a_refill_fails_and_the_next_take_gets_the_error() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    until(|| numbers.cached() == 100).await;
    source.state(|state| state.is_away = true);
    let taken = numbers.take(150).await.unwrap();
    assert!(taken.iter().map(|number| number.position().value()).eq(1..=100));
    assert!(matches!(numbers.take(1).await, Err(TakeError::Failed(error)) if *error == Away::Away));
    assert_eq!(numbers.take(0).await.unwrap(), [""; 0], "a take of zero needs no refill");
}

#[tokio::test(start_paused = true)]
async fn during_an_outage_the_buffer_is_used_up_and_then_the_error_is_returned() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    until(|| numbers.cached() == 100).await;
    source.state(|state| state.is_away = true);
    for expected in 1..=100 {
        assert_eq!(numbers.next().await.unwrap().position().value(), expected);
    }
    let error = numbers.next().await.unwrap_err();
    assert_eq!(error.to_string(), "no number is in memory and the last refill failed: the server is away");
    assert!(matches!(numbers.try_next(), Err(TakeError::Failed(error)) if *error == Away::Away));
    let requests = source.state(|state| state.requests.len());
    assert!(requests < 10, "{requests} requests for a caller that never paused");
    source.state(|state| state.is_away = false);
    assert_eq!(numbers.next().await.unwrap().position().value(), 101);
    assert_eq!(numbers.cached(), 99, "the outage did not make the buffer grow");
}

#[tokio::test]
async fn the_last_numbers_are_issued_before_the_scope_is_reported_as_exhausted() {
    let source = TestSource::new();
    source.state(|state| state.end = 31);
    let numbers = source.prefetch(Prefetch::new(20));
    for expected in 1..=30 {
        assert_eq!(numbers.next().await.unwrap().position().value(), expected);
    }
    assert!(matches!(numbers.next().await, Err(TakeError::Failed(error)) if *error == Away::Exhausted));
}

#[tokio::test]
async fn a_take_may_exceed_the_buffer_and_a_cancelled_take_loses_nothing() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    let taken: Vec<u64> =
        numbers.take(500).await.unwrap().iter().map(|number| number.position().value()).collect();
    assert_eq!(taken, (1..=500).collect::<Vec<_>>());
    assert!(numbers.take(0).await.unwrap().is_empty());
    source.answers.forget_permits(usize::MAX);
    let before = numbers.cached();
    let cancelled = tokio::time::timeout(Duration::from_millis(1), numbers.take(500)).await;
    assert!(cancelled.is_err());
    assert!(numbers.cached() >= before, "the numbers of the cancelled take are in the buffer again");
    source.answers.add_permits(100);
    numbers.close().await.unwrap();
    until(|| source.state(|state| state.open.is_empty())).await;
    assert_eq!(source.used(), (1..=500).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_buffer_that_is_idle_for_half_a_day_is_exchanged() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    assert_eq!(numbers.next().await.unwrap().position().value(), 1);
    tokio::time::sleep(Duration::from_hours(11)).await;
    assert_eq!(numbers.next().await.unwrap().position().value(), 2);
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert_eq!(numbers.next().await.unwrap().position().value(), 11);
    assert_eq!(source.used(), [1, 2]);
    assert_eq!(source.state(|state| state.unused.len()), 8);
}

#[tokio::test]
async fn used_up_leases_are_reported_with_the_next_request() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    for _ in 0..1_000 {
        numbers.next().await.unwrap();
    }
    let open = source.state(|state| state.open.len());
    assert!(open <= 3, "{open} leases are open");
    assert!(source.used().len() >= 980);
}
