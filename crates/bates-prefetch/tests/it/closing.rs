//! Closing a buffer: one report of the unused numbers, for every caller, within one time limit.

use std::time::Duration;

use bates_prefetch::{CloseError, Prefetch, Prefetched, TakeError};
use tokio::time::{Instant, timeout};

use super::filling::until;
use super::source::{Counting, REPORT_TIME};

#[tokio::test]
async fn closing_waits_until_all_is_given_back_and_ends_every_handle() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    numbers.next().await.unwrap();
    let other = numbers.clone();
    assert_eq!(numbers.close().await.unwrap(), 99);
    assert_eq!(source.used(), [1]);
    assert!(matches!(other.try_next(), Err(TakeError::Closed)));
    assert!(matches!(other.next().await, Err(TakeError::Closed)));
}

#[tokio::test]
async fn closing_waits_also_for_what_is_on_its_way() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    until(|| numbers.cached() == 100).await;
    source.answers.forget_permits(usize::MAX);
    while source.books(|books| books.asked.len()) < 2 {
        numbers.try_next().unwrap();
        tokio::task::yield_now().await;
    }
    let taken = 100 - numbers.cached();
    let (closed, ()) = tokio::join!(numbers.close(), async { source.answers.add_permits(1) });
    assert!(closed.as_ref().is_ok_and(|closed| *closed > 100 - taken), "{closed:?}");
    assert_eq!(source.used(), (1..=taken).collect::<Vec<_>>());
    assert!(source.books(|books| books.open.is_empty()));
}

#[test]
fn a_buffer_whose_runtime_has_ended_answers_errors_and_does_not_wait() {
    let source = Counting::new();
    let gone = tokio::runtime::Runtime::new().unwrap();
    let numbers = gone.block_on(async { source.prefetch(Prefetch::new(10)) });
    gone.block_on(numbers.next()).unwrap();
    drop(gone);
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
async fn closing_says_if_the_source_could_not_be_told() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(10));
    numbers.next().await.unwrap();
    source.books(|books| books.is_away = true);
    let error = numbers.close().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "9 unused numbers were not reported and become uncertain in a day: the server is away"
    );
}

/// A report that no answer comes to is given up by its caller; the next caller gets its outcome and not an empty one.
#[tokio::test]
async fn a_close_that_was_cancelled_is_answered_to_the_next_caller() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    numbers.next().await.unwrap();
    source.reports.forget_permits(usize::MAX);
    assert!(timeout(Duration::from_millis(1), numbers.close()).await.is_err(), "no report is answered");
    assert_eq!(source.books(|books| books.open.len()), 1);
    source.reports.add_permits(1);
    assert_eq!(numbers.close().await.unwrap(), 99);
    assert!(source.books(|books| books.open.is_empty()));
    assert_eq!(numbers.close().await.unwrap(), 99, "and to every later one");
}

#[tokio::test]
async fn two_callers_of_close_get_the_same_answer_when_everything_is_written() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    numbers.next().await.unwrap();
    source.reports.forget_permits(usize::MAX);
    let close = |numbers: Prefetched<Counting>, source: Counting| async move {
        let answer = numbers.close().await.unwrap();
        (answer, source.books(|books| books.open.len()))
    };
    let one = tokio::spawn(close(numbers.clone(), source.clone()));
    let other = tokio::spawn(close(numbers, source.clone()));
    until(|| source.reports_waiting() == 1).await;
    source.reports.add_permits(1);
    assert_eq!((one.await.unwrap(), other.await.unwrap()), ((99, 0), (99, 0)));
}

/// However many leases are open, a source that is away costs the time of one report.
#[tokio::test(start_paused = true)]
async fn closing_takes_one_time_limit_for_all_leases() {
    let source = Counting::written(None);
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    for _ in 0..5 {
        // Half of the buffer is left each time, so that leases pile up.
        numbers.take(3).await.unwrap();
        until(|| numbers.cached() >= 6).await;
    }
    let (open, unused) = (source.books(|books| books.open.len()), numbers.cached());
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

/// Positions that the rules reject lie between the numbers, and are no numbers.
#[tokio::test]
async fn rejected_positions_are_not_counted_as_numbers() {
    let source = Counting::with_every_third();
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    assert_eq!(numbers.next().await.unwrap().position().value(), 3);
    let at_hand = numbers.cached();
    assert_eq!(numbers.close().await.unwrap(), at_hand);
}
