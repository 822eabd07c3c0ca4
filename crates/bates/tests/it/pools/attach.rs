//! The request with which a consumer learns the epoch of a pool before it takes numbers.

use super::{Home, Redis, series};
use crate::http::ask;

fn server_ids(redis: &Redis) -> (String, String) {
    let field = |section: &str, name: &str| {
        let info: String = redis.command(&["INFO", section]);
        info.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
    };
    (field("server", "run_id:"), field("replication", "master_replid:"))
}

#[test]
fn a_consumer_learns_the_epoch_only_if_it_sees_the_same_redis_as_bates() {
    for home in [Home::folder(), Home::postgres()] {
        let mut redis = Redis::start();
        let server = home.start(&series(&redis.url(), "size: 10", "{ p: A }"));
        redis.wait_for_level("pool:A", 10);
        let attach = |run: &str, replication: &str| {
            let body =
                format!(r#"{{"scope":{{"p":"A"}},"run_id":"{run}","replication_id":"{replication}"}}"#);
            ask(server.http, "POST", "/v1/series/ticket/pool/attach", &body)
        };
        let (run, replication) = server_ids(&redis);
        let (status, answer) = attach(&run, &replication);
        assert_eq!(
            (status, answer["key"].as_str(), answer["epoch"].as_u64()),
            (200, Some("pool:A"), Some(1))
        );
        let (status, answer) = attach("another", &replication);
        assert_eq!((status, answer["code"].as_str()), (409, Some("pool_elsewhere")));
        assert_eq!(
            (redis.epoch("pool:A"), redis.level("pool:A")),
            (1, 10),
            "a wrong request changes nothing"
        );
        redis.server.restart().unwrap();
        let (run, replication) = server_ids(&redis);
        let epoch = loop {
            let (status, answer) = attach(&run, &replication);
            if status == 200 {
                break answer["epoch"].as_u64().unwrap();
            }
        };
        assert!(epoch > 1, "a restarted Redis starts a new epoch");
        let values =
            ask(server.http, "POST", "/v1/series/ticket/pool/next", r#"{"scope":{"p":"A"},"count":3}"#).1;
        assert_eq!(values["values"].as_array().unwrap().len(), 3);
    }
}
