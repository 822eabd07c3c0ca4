//! Redis or Bates away, slow or held up: no call fails while one of them is there, and none is given a number twice.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bates_client::{Pool, PopError, Settings};

use super::stage::{Stage, Taken};

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_redis_costs_no_call_and_is_taken_from_again_when_it_goes_on() {
    let stage = Stage::new(100_000);
    let (pool, mut taken) = (Pool::open(&stage.settings()).unwrap(), Taken::default());
    taken.until_redis(&pool).await;
    for _ in 0..3 {
        stage.signal("STOP");
        // More than was at hand, so that it comes from Bates.
        taken.take(&pool, 300).await;
        for _ in 0..50 {
            taken.take(&pool, 1).await;
        }
        stage.signal("CONT");
        taken.until_redis(&pool).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_holds_back_writes_costs_no_call() {
    let stage = Stage::new(100_000);
    let (pool, mut taken) = (Pool::open(&stage.settings()).unwrap(), Taken::default());
    taken.until_redis(&pool).await;
    stage.ask(&["CLIENT", "PAUSE", "1000000", "WRITE"]).await;
    taken.take(&pool, 300).await;
    for _ in 0..50 {
        taken.take(&pool, 1).await;
    }
    stage.ask(&["CLIENT", "UNPAUSE"]).await;
    taken.until_redis(&pool).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_redis_costs_no_call_and_its_successor_is_taken_from() {
    let mut stage = Stage::new(100_000);
    let (pool, mut taken) = (Pool::open(&stage.settings()).unwrap(), Taken::default());
    taken.until_redis(&pool).await;
    stage.redis.kill().unwrap();
    let numbers = taken.take(&pool, 300).await;
    assert!(numbers[299].starts_with("B-"));
    for _ in 0..50 {
        taken.take(&pool, 1).await;
    }
    stage.redis.restart().unwrap();
    taken.until_redis(&pool).await;
    assert!(stage.bates.seen.kept.lock().await.epoch > 1, "its list is another one");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_bates_the_list_that_is_known_is_taken_from_over_new_connections_too() {
    let mut stage = Stage::new(2_000);
    let (pool, mut taken) = (Pool::open(&stage.settings()).unwrap(), Taken::default());
    taken.until_redis(&pool).await;
    let direct = stage.bates.seen.direct.load(Ordering::SeqCst);
    stage.bates.down();
    for _ in 0..4 {
        taken.take(&pool, 250).await;
        stage.ask(&["CLIENT", "KILL", "TYPE", "normal"]).await;
    }
    assert_eq!(stage.bates.seen.direct.load(Ordering::SeqCst), direct);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_both_the_error_names_both_and_either_of_them_ends_it() {
    let mut stage = Stage::new(10);
    let (pool, mut taken) = (stage.patient(), Taken::default());
    taken.take(&pool, 10).await;
    stage.bates.down();
    stage.redis.kill().unwrap();
    let error = pool.pop(1).await.unwrap_err();
    let PopError::Away { redis, bates } = &error else { panic!("{error}") };
    for side in [redis, bates] {
        assert!(side.contains("Connection refused") || side.contains("broken pipe"), "{error}");
    }
    stage.bates.up();
    taken.take(&pool, 1).await;
    stage.redis.restart().unwrap();
    taken.until_redis(&pool).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_that_failed_had_at_hand_is_not_lost() {
    let mut stage = Stage::new(10);
    let (pool, mut taken) = (stage.patient(), Taken::default());
    taken.take(&pool, 4).await;
    stage.bates.down();
    stage.redis.kill().unwrap();
    assert!(pool.pop(7).await.is_err());
    assert_eq!(taken.take(&pool, 6).await, ["R-5", "R-6", "R-7", "R-8", "R-9", "R-10"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_attaches_holds_up_nobody() {
    let stage = Stage::new(1_000);
    let (pool, mut taken) = (Pool::open(&stage.settings()).unwrap(), Taken::default());
    let held = stage.bates.seen.kept.lock().await;
    for _ in 0..20 {
        assert!(taken.take(&pool, 1).await[0].starts_with("B-"));
    }
    drop(held);
    taken.until_redis(&pool).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bates_that_hangs_and_a_redis_that_is_late_cost_no_call() {
    let stage = Stage::new(1_000);
    // Nothing answers within no time at all.
    let settings = Settings { deadline: Duration::ZERO, ..stage.settings() };
    let (pool, mut taken) = (Pool::open(&settings).unwrap(), Taken::default());
    let held = stage.bates.seen.giving.lock().await;
    assert!(taken.take(&pool, 1).await[0].starts_with("R-"));
    assert!(taken.take(&pool, 150).await[149].starts_with("R-"));
    drop(held);
    taken.take(&pool, 300).await;
}
