//! Closing a buffer: one report of the unused numbers, for every caller, within one time limit.

use std::time::Duration;

use bates_prefetch::{CloseError, Prefetch, Prefetched, TakeError};
use tokio::time::{Instant, timeout};

use super::filling::until;
use super::source::{REPORT_TIME, TestSource};

#[tokio::test]
async fn close_returns_all_unused_numbers_and_ends_every_handle() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    numbers.next().await.unwrap();
    let other = numbers.clone();
    assert_eq!(numbers.close().await.unwrap(), 99);
    assert_eq!(source.used(), [1]);
    assert!(matches!(other.try_next(), Err(TakeError::Closed)));
    assert!(matches!(other.next().await, Err(TakeError::Closed)));
}

#[tokio::test]
async fn close_waits_for_a_refill_under_way() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    until(|| numbers.cached() == 100).await;
    source.answers.forget_permits(usize::MAX);
    while source.state(|state| state.requests.len()) < 2 {
        numbers.try_next().unwrap();
        tokio::task::yield_now().await;
    }
    let taken = 100 - numbers.cached();
    let (closed, ()) = tokio::join!(numbers.close(), async { source.answers.add_permits(1) });
    assert!(closed.as_ref().is_ok_and(|closed| *closed > 100 - taken), "{closed:?}");
    assert_eq!(source.used(), (1..=taken).collect::<Vec<_>>());
    assert!(source.state(|state| state.open.is_empty()));
}

#[test]
fn a_buffer_whose_runtime_has_ended_returns_errors_without_waiting() {
    let source = TestSource::new();
    let ended = tokio::runtime::Runtime::new().unwrap();
    let numbers = ended.block_on(async { source.prefetch(Prefetch::new(10)) });
    ended.block_on(numbers.next()).unwrap();
    drop(ended);
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert!(matches!(other.block_on(numbers.take(1_000)), Err(TakeError::Closed)));
    assert!(matches!(other.block_on(numbers.close()), Err(CloseError::RuntimeEnded { numbers: 9 })));
    let handle = other.handle().clone();
    drop(other);
    let never_ran = Prefetched::new(source, Prefetch::new(10), &handle);
    let other = tokio::runtime::Runtime::new().unwrap();
    assert!(matches!(other.block_on(never_ran.next()), Err(TakeError::Closed)));
    assert!(matches!(other.block_on(never_ran.close()), Err(CloseError::RuntimeEnded { numbers: 0 })));
}

#[tokio::test]
async fn close_fails_if_the_unused_numbers_cannot_be_reported() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(10));
    numbers.next().await.unwrap();
    source.state(|state| state.is_away = true);
    let error = numbers.close().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "9 unused numbers were not reported and become uncertain in a day: the server is away"
    );
}

/// The first caller stops waiting for the report; the next caller gets its outcome, and not an empty one.
#[tokio::test]
async fn the_next_caller_gets_the_outcome_of_a_cancelled_close() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    numbers.next().await.unwrap();
    source.reports.forget_permits(usize::MAX);
    assert!(
        timeout(Duration::from_millis(1), numbers.close()).await.is_err(),
        "the source does not answer the report"
    );
    assert_eq!(source.state(|state| state.open.len()), 1);
    source.reports.add_permits(1);
    assert_eq!(numbers.close().await.unwrap(), 99);
    assert!(source.state(|state| state.open.is_empty()));
    assert_eq!(numbers.close().await.unwrap(), 99, "every later caller gets it, too");
}

#[tokio::test]
async fn two_callers_of_close_get_the_same_answer_after_the_report() {
    let source = TestSource::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    numbers.next().await.unwrap();
    source.reports.forget_permits(usize::MAX);
    let close = |numbers: Prefetched<TestSource>, source: TestSource| async move {
        let answer = numbers.close().await.unwrap();
        (answer, source.state(|state| state.open.len()))
    };
    let one = tokio::spawn(close(numbers.clone(), source.clone()));
    let other = tokio::spawn(close(numbers, source.clone()));
    until(|| source.reports_waiting() == 1).await;
    source.reports.add_permits(1);
    assert_eq!((one.await.unwrap(), other.await.unwrap()), ((99, 0), (99, 0)));
}

/// However many leases are open, closing waits for an unreachable source only as long as for one report.
#[tokio::test(start_paused = true)]
async fn close_uses_one_time_limit_for_all_leases() {
    let source = TestSource::written(None);
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    for _ in 0..5 {
        // Half of the buffer is left each time, so that leases pile up.
        numbers.take(3).await.unwrap();
        until(|| numbers.cached() >= 6).await;
    }
    let (open, unused) = (source.state(|state| state.open.len()), numbers.cached());
    assert!(open > 1, "several leases are open");
    source.reports.forget_permits(usize::MAX);
    let began = Instant::now();
    let error = numbers.close().await.unwrap_err();
    assert_eq!(began.elapsed(), REPORT_TIME);
    assert!(
        matches!(error, CloseError::TimedOut { numbers, limit: REPORT_TIME } if numbers == unused),
        "{error}"
    );
}

/// The rules reject positions between the numbers.
#[tokio::test]
async fn rejected_positions_are_not_counted_as_numbers() {
    let source = TestSource::with_every_third();
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    assert_eq!(numbers.next().await.unwrap().position().value(), 3);
    let cached = numbers.cached();
    assert_eq!(numbers.close().await.unwrap(), cached);
}
