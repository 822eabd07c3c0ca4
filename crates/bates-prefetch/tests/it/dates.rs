//! Numbers that show a date are valid until that day ends, whatever the clocks do.

use std::time::Duration;

use bates_prefetch::Prefetch;

use super::filling::until;
use super::source::TestSource;

#[tokio::test(start_paused = true)]
async fn numbers_of_a_past_day_are_given_back() {
    let source = TestSource::written(Some(Duration::from_mins(1)));
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    assert_eq!(numbers.next().await.unwrap().position().value(), 1);
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(numbers.try_next().unwrap().position().value(), 2);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(numbers.try_next().is_err(), "the lease was valid for a minute");
    assert_eq!(numbers.next().await.unwrap().position().value(), 11);
    until(|| source.state(|state| state.unused.len() == 8)).await;
}

/// While a machine sleeps, the monotonic clock stands still and the wall clock advances.
#[tokio::test(start_paused = true)]
async fn numbers_of_a_day_that_ended_during_sleep_are_given_back() {
    expires_after_clock_shift(60).await;
}

#[tokio::test(start_paused = true)]
async fn numbers_of_a_day_that_has_not_begun_are_given_back_when_the_clock_is_set_back() {
    expires_after_clock_shift(-1).await;
}

/// Sets the wall clock, and checks that the numbers are given back.
async fn expires_after_clock_shift(seconds: i64) {
    let source = TestSource::written(Some(Duration::from_mins(1)));
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    assert_eq!(numbers.next().await.expect("the source answers").position().value(), 1);
    source.state(|state| state.clock_offset = seconds);
    assert!(numbers.try_next().is_err(), "the numbers belong to another day");
    assert_eq!(numbers.take(2).await.expect("the source answers")[0].position().value(), 11);
    until(|| source.state(|state| state.unused.len() == 9)).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_forward_within_the_day_costs_no_number() {
    let source = TestSource::written(Some(Duration::from_mins(1)));
    let numbers = source.prefetch(Prefetch::new(10).at_most(10));
    assert_eq!(numbers.next().await.unwrap().position().value(), 1);
    source.state(|state| state.clock_offset = 59);
    assert_eq!(numbers.try_next().unwrap().position().value(), 2);
}
