//! A Redis that restarts from an old snapshot holds numbers that were popped before.

use bates_client::{Pool, PopError, Settings};

use super::fixture::{Fixture, PATIENT, TakenNumbers};
use super::proxy::Proxy;
use super::stand_in::KEY;

/// Restarts Redis from its last snapshot.
fn rewind(fixture: &mut Fixture) {
    fixture.redis.kill().unwrap();
    fixture.redis.restart().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_an_old_snapshot_are_never_issued_again() {
    let mut fixture = Fixture::new(1_000);
    let (pool, mut taken) = (fixture.patient_pool(), TakenNumbers::default());
    for _ in 0..3 {
        pool.attach().await;
        fixture.redis_command(&["SAVE"]).await;
        taken.take(&pool, 500).await;
        rewind(&mut fixture);
        let level = fixture.redis_command(&["LLEN", KEY]).await;
        assert!(matches!(level, redis::Value::Int(300..)), "{level:?}");
        taken.take(&pool, 500).await;
        taken.until_redis(&pool).await;
    }
    assert_eq!(fixture.bates.state.list.lock().await.epoch, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_an_old_snapshot_are_not_issued_even_without_bates() {
    let mut fixture = Fixture::new(1_000);
    let (pool, mut taken) = (fixture.patient_pool(), TakenNumbers::default());
    pool.attach().await;
    fixture.redis_command(&["SAVE"]).await;
    taken.take(&pool, 500).await;
    fixture.bates.down();
    rewind(&mut fixture);
    let error = pool.pop(1).await.unwrap_err();
    assert!(matches!(error, PopError::Away { .. }), "{error}");
    // The first error may be about the broken connection.
    let error = pool.pop(1).await.unwrap_err().to_string();
    assert!(error.contains("cannot check whether Bates filled the list"), "{error}");
    fixture.bates.up();
    taken.take(&pool, 500).await;
    taken.until_redis(&pool).await;
}

/// Takes before and after a restart that a proxy hides; returns how many numbers repeat.
async fn repeated_behind_a_proxy(ignores_server: bool) -> usize {
    let mut fixture = Fixture::new(1_000);
    let mut proxy = Proxy::start(fixture.redis.port()).await;
    let settings =
        Settings { redis: proxy.url(), deadline: PATIENT, batch: 50, ignores_server, ..fixture.settings() };
    let pool = Pool::open(&settings).unwrap();
    pool.attach().await;
    fixture.redis_command(&["SAVE"]).await;
    let before = pool.pop(200).await.unwrap();
    rewind(&mut fixture);
    proxy.wait_for_server_loss().await;
    let after = pool.pop(200).await.unwrap();
    after.iter().filter(|number| before.contains(number)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_notices_a_restart_that_a_proxy_hides() {
    assert_eq!(repeated_behind_a_proxy(false).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_check_of_the_server_numbers_repeat() {
    assert_eq!(repeated_behind_a_proxy(true).await, 200);
}
