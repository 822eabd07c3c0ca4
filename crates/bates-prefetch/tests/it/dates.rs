//! Numbers that show a date are good until that day ends, whatever the clocks do.

use std::time::Duration;

use bates_prefetch::Prefetch;

use super::filling::until;
use super::source::Counting;

#[tokio::test(start_paused = true)]
async fn numbers_of_a_day_that_is_over_are_given_back() {
    let source = Counting::written(Some(Duration::from_mins(1)));
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    assert_eq!(numbers.next().await.unwrap().position().value(), 1);
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(numbers.try_next().unwrap().position().value(), 2);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(numbers.try_next().is_err(), "it was good for a minute");
    assert_eq!(numbers.next().await.unwrap().position().value(), 11);
    until(|| source.books(|books| books.unused.len() == 8)).await;
}

/// The steady clock stands still while a machine sleeps, and the wall clock goes on.
#[tokio::test(start_paused = true)]
async fn numbers_of_a_day_that_ended_during_sleep_are_given_back() {
    after_the_clock_was_set(60).await;
}

#[tokio::test(start_paused = true)]
async fn numbers_of_a_day_that_has_not_begun_are_given_back_when_the_clock_is_set_back() {
    after_the_clock_was_set(-1).await;
}

async fn after_the_clock_was_set(seconds: i64) {
    let source = Counting::written(Some(Duration::from_mins(1)));
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    assert_eq!(numbers.next().await.expect("the source answers").position().value(), 1);
    source.books(|books| books.clock_offset = seconds);
    assert!(numbers.try_next().is_err(), "they are of another day");
    assert_eq!(numbers.take(2).await.expect("the source answers")[0].position().value(), 11);
    until(|| source.books(|books| books.unused.len() == 9)).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_forward_within_the_day_costs_no_number() {
    let source = Counting::written(Some(Duration::from_mins(1)));
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    assert_eq!(numbers.next().await.unwrap().position().value(), 1);
    source.books(|books| books.clock_offset = 59);
    assert_eq!(numbers.try_next().unwrap().position().value(), 2);
}
