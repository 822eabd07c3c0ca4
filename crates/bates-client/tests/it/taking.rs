//! What a pool gives while all is well, and when its list is another one.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use bates_client::{Pool, PopError, Settings};

use super::stage::{PATIENT, Stage, Taken};
use super::stand_in::{KEY, MARKER};

fn position(number: &str) -> u64 {
    number[2..].parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_come_from_the_list_in_order_and_each_once_with_twenty_callers() {
    let stage = Stage::new(4_000);
    let pool = stage.patient();
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move {
                let mut mine = Vec::new();
                for _ in 0..100 {
                    mine.extend(pool.pop(2).await.unwrap());
                }
                mine
            })
        })
        .collect();
    let mut all = BTreeSet::new();
    for caller in callers {
        let mine = caller.await.unwrap();
        assert!(mine.iter().all(|number| number.starts_with("R-")));
        assert!(mine.iter().map(|number| position(number)).is_sorted());
        all.extend(mine.iter().map(|number| position(number)));
    }
    assert_eq!(all, (1..=4_000).collect());
    assert_eq!(stage.bates.seen.attached.load(Ordering::SeqCst), 1);
    assert_eq!(stage.bates.seen.direct.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_call_for_more_than_a_batch_gets_all_of_it_in_order() {
    let stage = Stage::new(30_000);
    let numbers = stage.patient().pop(25_000).await.unwrap();
    assert!(numbers.iter().map(|number| position(number)).eq(1..=25_000));
}

#[tokio::test]
async fn what_the_list_lacks_comes_from_bates() {
    let stage = Stage::new(3);
    let numbers = stage.patient().pop(5).await.unwrap();
    assert_eq!(numbers, ["R-1", "R-2", "R-3", "B-4", "B-5"]);
}

#[tokio::test]
async fn a_batch_of_one_takes_no_more_than_is_asked_for() {
    let stage = Stage::new(10);
    let pool = Pool::open(&Settings { batch: 1, deadline: PATIENT, ..stage.settings() }).unwrap();
    pool.attach().await;
    assert_eq!(pool.pop(4).await.unwrap(), ["R-1", "R-2", "R-3", "R-4"]);
    assert_eq!(stage.ask(&["LLEN", KEY]).await, redis::Value::Int(6));
}

#[tokio::test]
async fn a_list_of_another_epoch_gives_nothing_until_bates_has_told_its_epoch() {
    let stage = Stage::new(100);
    let (pool, mut taken) = (stage.patient(), Taken::default());
    taken.take(&pool, 100).await;
    stage.ask(&["HSET", MARKER, "epoch", "99"]).await;
    stage.ask(&["RPUSH", KEY, "R-1", "R-2"]).await;
    taken.take(&pool, 50).await;
    assert_eq!(stage.bates.seen.attached.load(Ordering::SeqCst), 2);
    assert_eq!(stage.bates.seen.kept.lock().await.epoch, 2);
}

#[tokio::test]
async fn what_was_popped_stays_ours_when_the_epoch_moves_on() {
    let stage = Stage::new(100);
    let pool = stage.patient();
    assert_eq!(pool.pop(1).await.unwrap(), ["R-1"]);
    stage.ask(&["FLUSHALL"]).await;
    let numbers = pool.pop(100).await.unwrap();
    assert_eq!((&*numbers[0], &*numbers[98], &*numbers[99]), ("R-2", "R-100", "R-101"));
}

#[tokio::test]
async fn a_scope_that_ends_gives_what_is_left_and_then_says_so() {
    let stage = Stage::ending(3, 5);
    let pool = stage.patient();
    assert_eq!(pool.pop(4).await.unwrap(), ["R-1", "R-2", "R-3", "B-4"]);
    assert_eq!(pool.pop(4).await.unwrap(), ["B-5"]);
    let error = pool.pop(4).await.unwrap_err();
    assert!(matches!(error, PopError::Exhausted { .. }), "{error}");
    assert!(error.to_string().contains("its list is empty"), "{error}");
}

#[tokio::test]
async fn what_is_no_list_is_not_taken_from() {
    let stage = Stage::new(0);
    stage.ask(&["SET", KEY, "a text"]).await;
    stage.ask(&["HSET", MARKER, "epoch", "1"]).await;
    let (pool, mut taken) = (stage.patient(), Taken::default());
    taken.take(&pool, 1).await;
    stage.ask(&["SET", KEY, "a text"]).await;
    assert!(taken.take(&pool, 1).await[0].starts_with("B-"));
}

#[test]
fn addresses_that_are_none_are_refused_at_once() {
    let refused = |bates: &str, redis: &str| {
        Pool::open(&Settings::new(bates, redis, "document")).err().unwrap().to_string()
    };
    assert!(refused("http://127.0.0.1:1", "nowhere").contains("invalid address of Redis"));
    assert!(refused("127.0.0.1:8080", "redis://127.0.0.1").contains("invalid address of Bates"));
    assert!(refused("ftp://127.0.0.1", "redis://127.0.0.1").contains("such as http://127.0.0.1:8080"));
}
