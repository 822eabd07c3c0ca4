//! Taking numbers from a pool, also when its list changes or is missing.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use bates_client::{Pool, PopError, Settings};

use super::fixture::{Fixture, PATIENT, TakenNumbers};
use super::stand_in::{KEY, MARKER};

fn position(number: &str) -> u64 {
    number[2..].parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_callers_get_the_numbers_of_the_list_in_order_and_each_once() {
    let fixture = Fixture::new(4_000);
    let pool = fixture.patient_pool();
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
    assert_eq!(fixture.bates.state.attach_calls.load(Ordering::SeqCst), 1);
    assert_eq!(fixture.bates.state.direct_numbers.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_call_for_more_than_a_batch_gets_all_of_it_in_order() {
    let fixture = Fixture::new(30_000);
    let numbers = fixture.patient_pool().pop(25_000).await.unwrap();
    assert!(numbers.iter().map(|number| position(number)).eq(1..=25_000));
}

#[tokio::test]
async fn numbers_that_the_list_lacks_come_from_bates() {
    let fixture = Fixture::new(3);
    let numbers = fixture.patient_pool().pop(5).await.unwrap();
    assert_eq!(numbers, ["R-1", "R-2", "R-3", "B-4", "B-5"]);
}

#[tokio::test]
async fn a_batch_of_one_pops_no_more_than_was_requested() {
    let fixture = Fixture::new(10);
    let pool = Pool::open(&Settings { batch: 1, deadline: PATIENT, ..fixture.settings() }).unwrap();
    pool.attach().await;
    assert_eq!(pool.pop(4).await.unwrap(), ["R-1", "R-2", "R-3", "R-4"]);
    assert_eq!(fixture.redis_command(&["LLEN", KEY]).await, redis::Value::Int(6));
}

#[tokio::test]
async fn a_list_of_another_epoch_is_not_used_until_bates_confirms_the_epoch() {
    let fixture = Fixture::new(100);
    let (pool, mut taken) = (fixture.patient_pool(), TakenNumbers::default());
    taken.take(&pool, 100).await;
    fixture.redis_command(&["HSET", MARKER, "epoch", "99"]).await;
    fixture.redis_command(&["RPUSH", KEY, "R-1", "R-2"]).await;
    taken.take(&pool, 50).await;
    assert_eq!(fixture.bates.state.attach_calls.load(Ordering::SeqCst), 2);
    assert_eq!(fixture.bates.state.list.lock().await.epoch, 2);
}

#[tokio::test]
async fn popped_numbers_stay_valid_when_the_epoch_changes() {
    let fixture = Fixture::new(100);
    let pool = fixture.patient_pool();
    assert_eq!(pool.pop(1).await.unwrap(), ["R-1"]);
    fixture.redis_command(&["FLUSHALL"]).await;
    let numbers = pool.pop(100).await.unwrap();
    assert_eq!((&*numbers[0], &*numbers[98], &*numbers[99]), ("R-2", "R-100", "R-101"));
}

#[tokio::test]
async fn a_scope_gives_its_last_numbers_and_then_reports_that_it_is_exhausted() {
    let fixture = Fixture::ending(3, 5);
    let pool = fixture.patient_pool();
    assert_eq!(pool.pop(4).await.unwrap(), ["R-1", "R-2", "R-3", "B-4"]);
    assert_eq!(pool.pop(4).await.unwrap(), ["B-5"]);
    let error = pool.pop(4).await.unwrap_err();
    assert!(matches!(error, PopError::Exhausted { .. }), "{error}");
    assert!(error.to_string().contains("its list is empty"), "{error}");
}

#[tokio::test]
async fn a_key_that_is_not_a_list_is_not_used() {
    let fixture = Fixture::new(0);
    fixture.redis_command(&["SET", KEY, "a text"]).await;
    fixture.redis_command(&["HSET", MARKER, "epoch", "1"]).await;
    let (pool, mut taken) = (fixture.patient_pool(), TakenNumbers::default());
    taken.take(&pool, 1).await;
    fixture.redis_command(&["SET", KEY, "a text"]).await;
    assert!(taken.take(&pool, 1).await[0].starts_with("B-"));
}

#[test]
fn invalid_addresses_are_refused_at_once() {
    let refused = |bates: &str, redis: &str| {
        Pool::open(&Settings::new(bates, redis, "document")).err().unwrap().to_string()
    };
    assert!(refused("http://127.0.0.1:1", "nowhere").contains("invalid address of Redis"));
    assert!(refused("127.0.0.1:8080", "redis://127.0.0.1").contains("invalid address of Bates"));
    assert!(refused("ftp://127.0.0.1", "redis://127.0.0.1").contains("such as http://127.0.0.1:8080"));
}
