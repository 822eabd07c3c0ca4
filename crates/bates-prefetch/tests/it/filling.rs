//! What is asked for, and what becomes of it.

use std::task::Poll;
use std::time::Duration;

use bates_prefetch::{Prefetch, TakeError};

use super::source::{Away, Counting};

/// Lets other tasks run until something is the case.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn numbers_are_rendered_when_somebody_looks() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(10));
    let number = numbers.next().await.unwrap();
    assert_eq!((number.position().value(), number.to_string()), (1, "N-000000001".to_owned()));
    let written = Counting::written(None).prefetch(Prefetch::new(10));
    let number = written.next().await.unwrap();
    assert_eq!((number.position().value(), String::from(number)), (1, "W-1".to_owned()));
}

#[tokio::test]
async fn more_is_asked_for_before_the_last_is_taken_and_once_at_a_time() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    until(|| numbers.cached() == 100).await;
    for _ in 0..49 {
        numbers.try_next().unwrap();
    }
    tokio::task::yield_now().await;
    assert_eq!(source.books(|books| books.asked.clone()), [100], "half of it is still there");
    source.answers.forget_permits(usize::MAX);
    let mut taken = 49;
    while numbers.try_next().is_ok() {
        taken += 1;
        tokio::task::yield_now().await;
    }
    assert_eq!(taken, 100, "all of it can be taken while more is on its way");
    assert!(matches!(numbers.try_next(), Err(TakeError::Refilling)));
    let (asked, at_once) = source.books(|books| (books.asked.len(), books.under_way_max));
    assert_eq!((asked, at_once), (2, 1));
    source.answers.add_permits(10);
    assert_eq!(numbers.next().await.unwrap().position().value(), 101);
}

/// Who waits for the first numbers does not cause a second refill.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_come_is_not_asked_for_again() {
    for _ in 0..200 {
        let source = Counting::new();
        let numbers = source.prefetch(Prefetch::new(100).at_most(100));
        numbers.next().await.unwrap();
        numbers.close().await.unwrap();
        assert_eq!(source.books(|books| books.asked.clone()), [100]);
    }
}

#[tokio::test(start_paused = true)]
async fn it_grows_while_it_is_used_up_quickly() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(10).at_most(1_000));
    for expected in 1..=10_000_u64 {
        assert_eq!(numbers.next().await.unwrap().position().value(), expected);
    }
    let asked = source.books(|books| books.asked.clone());
    assert!(asked.len() < 40 && asked.iter().all(|count| *count <= 1_000), "{asked:?}");
}

#[tokio::test]
async fn what_was_not_used_is_reported_when_the_last_handle_is_dropped() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    let other = numbers.clone();
    for _ in 0..30 {
        numbers.next().await.unwrap();
    }
    drop(numbers);
    tokio::task::yield_now().await;
    assert_eq!(source.books(|books| books.unused.len()), 0, "there is another handle");
    drop(other);
    until(|| source.books(|books| books.open.is_empty())).await;
    assert_eq!(source.used(), (1..=30).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_comes_after_the_last_handle_was_dropped_goes_back() {
    let source = Counting::new();
    source.answers.forget_permits(usize::MAX);
    let numbers = source.prefetch(Prefetch::new(100));
    until(|| !source.books(|books| books.asked.is_empty())).await;
    drop(numbers);
    source.answers.add_permits(1);
    until(|| source.books(|books| books.unused.len() == 100)).await;
    assert!(source.used().is_empty() && source.books(|books| books.open.is_empty()));
}

/// What a call that is given up could have had is there for others, who are woken for it.
#[tokio::test]
async fn who_gives_up_keeps_nobody_waiting() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    until(|| numbers.cached() == 100).await;
    source.answers.forget_permits(usize::MAX);
    let mut many = Box::pin(numbers.take(150));
    let is_waiting =
        std::future::poll_fn(|context| Poll::Ready(many.as_mut().poll(context).is_pending())).await;
    assert!(is_waiting && numbers.cached() == 100, "it takes all or nothing");
    assert_eq!(numbers.next().await.unwrap().position().value(), 1);
    drop(many);
    assert!(matches!(numbers.take(usize::MAX).await, Err(TakeError::TooMany { max: 1_000_000 })));
    assert_eq!(numbers.close().await.unwrap(), 99);
    assert_eq!(source.used(), [1], "nobody used anything else");
}

/// Numbers that came written, taken by two while one of them gives up: what was used is not reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_used_is_never_reported_whoever_gives_up() {
    for _ in 0..50 {
        let source = Counting::written(None);
        let numbers = source.prefetch(Prefetch::new(2_000).at_most(2_000));
        until(|| numbers.cached() == 2_000).await;
        source.answers.forget_permits(usize::MAX);
        let (one, other) = (numbers.clone(), numbers.clone());
        let gives_up = tokio::spawn(async move { one.take(5_000).await.is_ok() });
        let takes = tokio::spawn(async move {
            let taken = (0..50).filter_map(|_| other.try_next().ok()).map(|number| number.position().value());
            taken.collect::<Vec<_>>()
        });
        let used = takes.await.unwrap();
        gives_up.abort();
        assert!(gives_up.await.unwrap_err().is_cancelled());
        source.answers.add_permits(1_000);
        numbers.close().await.unwrap();
        assert_eq!((source.used(), used.len()), (used, 50));
    }
}

#[tokio::test(start_paused = true)]
async fn a_take_gets_the_remainder_if_a_refill_fails_and_the_next_one_says_why() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    until(|| numbers.cached() == 100).await;
    source.books(|books| books.is_away = true);
    let taken = numbers.take(150).await.unwrap();
    assert!(taken.iter().map(|number| number.position().value()).eq(1..=100));
    assert!(matches!(numbers.take(1).await, Err(TakeError::Failed(error)) if *error == Away::Away));
    assert_eq!(numbers.take(0).await.unwrap(), [""; 0], "nothing is asked for");
}

#[tokio::test(start_paused = true)]
async fn the_buffer_lasts_as_long_as_it_lasts_and_then_the_error_says_so() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(100).at_most(100));
    until(|| numbers.cached() == 100).await;
    source.books(|books| books.is_away = true);
    for expected in 1..=100 {
        assert_eq!(numbers.next().await.unwrap().position().value(), expected);
    }
    let error = numbers.next().await.unwrap_err();
    assert_eq!(error.to_string(), "no number is in memory and the last refill failed: the server is away");
    assert!(matches!(numbers.try_next(), Err(TakeError::Failed(error)) if *error == Away::Away));
    let asked = source.books(|books| books.asked.len());
    assert!(asked < 10, "it was asked {asked} times by somebody who never paused");
    source.books(|books| books.is_away = false);
    assert_eq!(numbers.next().await.unwrap().position().value(), 101);
    assert_eq!(numbers.cached(), 99, "it holds no more because the server was away");
}

#[tokio::test]
async fn the_last_numbers_are_given_and_then_it_is_told_that_there_are_no_more() {
    let source = Counting::new();
    source.books(|books| books.end = 31);
    let numbers = source.prefetch(Prefetch::new(20));
    for expected in 1..=30 {
        assert_eq!(numbers.next().await.unwrap().position().value(), expected);
    }
    assert!(matches!(numbers.next().await, Err(TakeError::Failed(error)) if *error == Away::Exhausted));
}

#[tokio::test]
async fn who_asks_for_more_than_is_held_gets_it_and_who_gives_up_loses_nothing() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    let taken: Vec<u64> =
        numbers.take(500).await.unwrap().iter().map(|number| number.position().value()).collect();
    assert_eq!(taken, (1..=500).collect::<Vec<_>>());
    assert!(numbers.take(0).await.unwrap().is_empty());
    source.answers.forget_permits(usize::MAX);
    let before = numbers.cached();
    let gave_up = tokio::time::timeout(Duration::from_millis(1), numbers.take(500)).await;
    assert!(gave_up.is_err());
    assert!(numbers.cached() >= before, "what it had taken is at hand again");
    source.answers.add_permits(100);
    numbers.close().await.unwrap();
    until(|| source.books(|books| books.open.is_empty())).await;
    assert_eq!(source.used(), (1..=500).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn what_nobody_takes_is_exchanged_after_half_a_day() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    assert_eq!(numbers.next().await.unwrap().position().value(), 1);
    tokio::time::sleep(Duration::from_hours(11)).await;
    assert_eq!(numbers.next().await.unwrap().position().value(), 2);
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert_eq!(numbers.next().await.unwrap().position().value(), 11);
    assert_eq!(source.used(), [1, 2]);
    assert_eq!(source.books(|books| books.unused.len()), 8);
}

#[tokio::test]
async fn leases_that_were_used_to_the_last_are_told_with_the_next() {
    let source = Counting::new();
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    for _ in 0..1_000 {
        numbers.next().await.unwrap();
    }
    let open = source.books(|books| books.open.len());
    assert!(open <= 3, "{open} leases are open");
    assert!(source.used().len() >= 980);
}
