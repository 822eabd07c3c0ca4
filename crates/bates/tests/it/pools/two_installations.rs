//! Two installations that were given one Redis and one key: neither takes the list of the other for its own.

use std::collections::HashSet;
use std::time::Duration;

use bates_client::{Pool, Settings};

use super::{Home, Redis, series};

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_takes_nothing_from_the_list_of_another_installation_and_its_server_stays_away() {
    let redis = Redis::start();
    let (first, second) = (Home::folder(), Home::folder());
    let described = series(&redis.url(), "size: 600", "{ p: A }");
    let one = first.start(&described);
    redis.wait_for_level("pool:A", 600);
    let mut settings = Settings::new(format!("http://127.0.0.1:{}", one.http), redis.url(), "ticket");
    settings.scope = [("p".to_owned(), "A".to_owned())].into();
    // Redis is waited for as long as it takes, so that it is taken from if that is allowed.
    settings.deadline = Duration::from_mins(5);
    let pool = Pool::open(&settings).unwrap();
    let mut taken: HashSet<String> = pool.pop(300).await.unwrap().into_iter().collect();
    one.signal("STOP");
    let _: String = redis.command(&["FLUSHALL"]);
    let other = second.start(&described);
    redis.wait_for_level("pool:A", 600);
    assert_eq!(redis.epoch("pool:A"), 1, "as in the first list");
    one.signal("CONT");
    taken.extend(pool.pop(900).await.unwrap());
    assert_eq!(taken.len(), 1_200, "the numbers of the other installation are others' to give");
    assert_eq!(redis.level("pool:A"), 600, "nothing was taken from its list, and nothing pushed into it");
    one.stop_once_it_said("another installation of Bates fills the list");
    drop(other);
}
