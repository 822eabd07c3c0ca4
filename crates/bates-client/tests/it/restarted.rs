//! A Redis that came back from an old snapshot holds numbers that it gave away before.

use bates_client::{Pool, PopError, Settings};

use super::proxy::Proxy;
use super::stage::{PATIENT, Stage, Taken};
use super::stand_in::KEY;

/// Brings Redis back as it was when it was saved last.
fn rewind(stage: &mut Stage) {
    stage.redis.kill().unwrap();
    stage.redis.restart().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_an_old_snapshot_are_never_given_again() {
    let mut stage = Stage::new(1_000);
    let (pool, mut taken) = (stage.patient(), Taken::default());
    for _ in 0..3 {
        pool.attach().await;
        stage.ask(&["SAVE"]).await;
        taken.take(&pool, 500).await;
        rewind(&mut stage);
        let level = stage.ask(&["LLEN", KEY]).await;
        assert!(matches!(level, redis::Value::Int(300..)), "{level:?}");
        taken.take(&pool, 500).await;
        taken.until_redis(&pool).await;
    }
    assert_eq!(stage.bates.seen.kept.lock().await.epoch, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_an_old_snapshot_are_not_given_without_bates_either() {
    let mut stage = Stage::new(1_000);
    let (pool, mut taken) = (stage.patient(), Taken::default());
    pool.attach().await;
    stage.ask(&["SAVE"]).await;
    taken.take(&pool, 500).await;
    stage.bates.down();
    rewind(&mut stage);
    let error = pool.pop(1).await.unwrap_err();
    assert!(matches!(error, PopError::Away { .. }), "{error}");
    // The first may have been told of the connection that broke.
    let error = pool.pop(1).await.unwrap_err().to_string();
    assert!(error.contains("cannot check whether Bates filled the list"), "{error}");
    stage.bates.up();
    taken.take(&pool, 500).await;
    taken.until_redis(&pool).await;
}

/// Takes before and after a restart that a proxy hides; how many numbers came twice.
async fn repeated_behind_a_proxy(ignores_server: bool) -> usize {
    let mut stage = Stage::new(1_000);
    let mut proxy = Proxy::start(stage.redis.port()).await;
    let settings =
        Settings { redis: proxy.url(), deadline: PATIENT, batch: 50, ignores_server, ..stage.settings() };
    let pool = Pool::open(&settings).unwrap();
    pool.attach().await;
    stage.ask(&["SAVE"]).await;
    let before = pool.pop(200).await.unwrap();
    rewind(&mut stage);
    proxy.server_is_lost().await;
    let after = pool.pop(200).await.unwrap();
    after.iter().filter(|number| before.contains(number)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_that_a_proxy_hides_is_seen_by_the_script() {
    assert_eq!(repeated_behind_a_proxy(false).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_ignores_the_server_would_be_caught() {
    assert_eq!(repeated_behind_a_proxy(true).await, 200);
}
