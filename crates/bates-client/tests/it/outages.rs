//! Redis or Bates is down, slow or blocked: no call fails while one of them works, and no number repeats.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bates_client::{Pool, PopError, Settings};

use super::fixture::{Fixture, TakenNumbers};

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_redis_fails_no_call_and_is_used_again_when_it_resumes() {
    let fixture = Fixture::new(100_000);
    let (pool, mut taken) = (Pool::open(&fixture.settings()).unwrap(), TakenNumbers::default());
    taken.until_redis(&pool).await;
    for _ in 0..3 {
        fixture.signal("STOP");
        // More than the pool has in memory, so that Bates must give numbers.
        taken.take(&pool, 300).await;
        for _ in 0..50 {
            taken.take(&pool, 1).await;
        }
        fixture.signal("CONT");
        taken.until_redis(&pool).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_pauses_writes_fails_no_call() {
    let fixture = Fixture::new(100_000);
    let (pool, mut taken) = (Pool::open(&fixture.settings()).unwrap(), TakenNumbers::default());
    taken.until_redis(&pool).await;
    fixture.redis_command(&["CLIENT", "PAUSE", "1000000", "WRITE"]).await;
    taken.take(&pool, 300).await;
    for _ in 0..50 {
        taken.take(&pool, 1).await;
    }
    fixture.redis_command(&["CLIENT", "UNPAUSE"]).await;
    taken.until_redis(&pool).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_redis_fails_no_call_and_is_used_again_after_its_restart() {
    let mut fixture = Fixture::new(100_000);
    let (pool, mut taken) = (Pool::open(&fixture.settings()).unwrap(), TakenNumbers::default());
    taken.until_redis(&pool).await;
    fixture.redis.kill().unwrap();
    let numbers = taken.take(&pool, 300).await;
    assert!(numbers[299].starts_with("B-"));
    for _ in 0..50 {
        taken.take(&pool, 1).await;
    }
    fixture.redis.restart().unwrap();
    taken.until_redis(&pool).await;
    assert!(fixture.bates.state.list.lock().await.epoch > 1, "the restarted Redis has a new list");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_bates_a_known_list_is_used_even_over_new_connections() {
    let mut fixture = Fixture::new(2_000);
    let (pool, mut taken) = (Pool::open(&fixture.settings()).unwrap(), TakenNumbers::default());
    taken.until_redis(&pool).await;
    let direct = fixture.bates.state.direct_numbers.load(Ordering::SeqCst);
    fixture.bates.down();
    for _ in 0..4 {
        taken.take(&pool, 250).await;
        fixture.redis_command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
    }
    assert_eq!(fixture.bates.state.direct_numbers.load(Ordering::SeqCst), direct);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_and_bates_the_error_names_both_and_either_of_them_ends_it() {
    let mut fixture = Fixture::new(10);
    let (pool, mut taken) = (fixture.patient_pool(), TakenNumbers::default());
    taken.take(&pool, 10).await;
    fixture.bates.down();
    fixture.redis.kill().unwrap();
    let error = pool.pop(1).await.unwrap_err();
    let PopError::Away { redis, bates } = &error else { panic!("{error}") };
    for side in [redis, bates] {
        assert!(side.contains("Connection refused") || side.contains("broken pipe"), "{error}");
    }
    fixture.bates.up();
    taken.take(&pool, 1).await;
    fixture.redis.restart().unwrap();
    taken.until_redis(&pool).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_call_loses_none_of_the_numbers_in_memory() {
    let mut fixture = Fixture::new(10);
    let (pool, mut taken) = (fixture.patient_pool(), TakenNumbers::default());
    taken.take(&pool, 4).await;
    fixture.bates.down();
    fixture.redis.kill().unwrap();
    assert!(pool.pop(7).await.is_err());
    assert_eq!(taken.take(&pool, 6).await, ["R-5", "R-6", "R-7", "R-8", "R-9", "R-10"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_attach_delays_no_call() {
    let fixture = Fixture::new(1_000);
    let (pool, mut taken) = (Pool::open(&fixture.settings()).unwrap(), TakenNumbers::default());
    let held = fixture.bates.state.list.lock().await;
    for _ in 0..20 {
        assert!(taken.take(&pool, 1).await[0].starts_with("B-"));
    }
    drop(held);
    taken.until_redis(&pool).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bates_that_hangs_and_a_redis_that_is_late_fail_no_call() {
    let fixture = Fixture::new(1_000);
    // No answer of Redis comes within a deadline of zero.
    let settings = Settings { deadline: Duration::ZERO, ..fixture.settings() };
    let (pool, mut taken) = (Pool::open(&settings).unwrap(), TakenNumbers::default());
    let held = fixture.bates.state.next_gate.lock().await;
    assert!(taken.take(&pool, 1).await[0].starts_with("R-"));
    assert!(taken.take(&pool, 150).await[149].starts_with("R-"));
    drop(held);
    taken.take(&pool, 300).await;
}
