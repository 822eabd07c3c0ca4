//! Two installations configured with the same Redis and key: neither uses the list of the other.

use std::collections::HashSet;
use std::time::Duration;

use bates_client::{Pool, Settings};

use super::{Home, Redis, series};

#[tokio::test(flavor = "multi_thread")]
async fn neither_a_consumer_nor_its_server_uses_the_list_of_another_installation() {
    let redis = Redis::start();
    let (first, second) = (Home::folder(), Home::folder());
    let definition = series(&redis.url(), "size: 600", "{ p: A }");
    let one = first.start(&definition);
    redis.wait_for_level("pool:A", 600);
    let mut settings = Settings::new(format!("http://127.0.0.1:{}", one.http), redis.url(), "ticket");
    settings.scope = [("p".to_owned(), "A".to_owned())].into();
    // Long enough that the consumer would take from Redis if it were allowed to.
    settings.deadline = Duration::from_mins(5);
    let pool = Pool::open(&settings).unwrap();
    let mut taken: HashSet<String> = pool.pop(300).await.unwrap().into_iter().collect();
    one.signal("STOP");
    let _: String = redis.command(&["FLUSHALL"]);
    let other = second.start(&definition);
    redis.wait_for_level("pool:A", 600);
    assert_eq!(redis.epoch("pool:A"), 1, "the same epoch as the first list");
    one.signal("CONT");
    taken.extend(pool.pop(900).await.unwrap());
    assert_eq!(taken.len(), 1_200, "no number of the other installation");
    assert_eq!(redis.level("pool:A"), 600, "the list of the other installation is untouched");
    one.stop_once_it_said("another installation of Bates fills the list");
    drop(other);
}
