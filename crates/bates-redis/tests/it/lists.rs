//! One list and its fillers.

use std::time::Duration;

use bates_core::{
    ListRefusal, ListStatus, ListValue, Numbers, PoolServer, PositionRange, PushRequest, ServerIdentity,
    ServerStatus,
};
use bates_pattern::{Options, Pattern};
use bates_redis::RedisPool;
use bates_testkit::PrivateRedis;
use uuid::Uuid;

const KEY: &str = "id-pool:PROJ:9012";
const STORE: Uuid = Uuid::from_u128(1);
const TTL: Duration = Duration::from_mins(5);

/// A Redis server, and a pool on it.
struct Redis {
    server: PrivateRedis,
    pool: RedisPool,
}

impl Redis {
    fn start_with(settings: &'static [&'static str]) -> Self {
        let server = PrivateRedis::start_with(settings).unwrap();
        let pool = RedisPool::new(&server.url(), STORE).unwrap();
        Self { server, pool }
    }

    fn start() -> Self {
        Self::start_with(&[])
    }

    async fn command<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let client = redis::Client::open(self.server.url()).unwrap();
        // On a busy machine the default timeout of half a second is too short.
        let no_timeout =
            redis::AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut connection = client.get_multiplexed_async_connection_with_config(&no_timeout).await.unwrap();
        redis::cmd(words[0]).arg(&words[1..]).query_async(&mut connection).await.unwrap()
    }

    async fn status(&self) -> ServerStatus {
        self.pool.status(&[KEY.into()]).await.unwrap()
    }

    async fn list(&self) -> Vec<String> {
        self.command(&["LRANGE", KEY, "0", "-1"]).await
    }

    async fn server(&self) -> ServerIdentity {
        self.status().await.server
    }

    async fn push(&self, epoch: u64, fence: u64, from: u64, to: u64) -> Result<(), ListRefusal> {
        let server = self.server().await;
        self.push_on(&server, epoch, fence, (from, to)).await.unwrap()
    }

    async fn push_on(
        &self,
        server: &ServerIdentity,
        epoch: u64,
        fence: u64,
        (from, to): (u64, u64),
    ) -> Result<Result<(), ListRefusal>, Box<str>> {
        let numbers = numbers(from, to);
        self.pool
            .push(KEY, PushRequest { epoch, server, token: "filler", fence, from, to, numbers: &numbers })
            .await
    }

    async fn renew(&self, epoch: u64) -> Result<(), ListRefusal> {
        let server = self.server().await;
        // Only the holder of the lock begins an epoch.
        self.pool.lock(KEY, "filler", TTL).await.unwrap();
        self.pool.renew(KEY, epoch, &server).await.unwrap()
    }
}

fn numbers(from: u64, to: u64) -> Numbers {
    let pattern = Pattern::compile("P-{seq}", Options::default()).unwrap();
    let scope = pattern.scope(std::iter::empty::<(&str, &str)>(), None).unwrap();
    Numbers::rendered(&scope, PositionRange::new(from, to).unwrap(), ListValue::Id)
}

fn texts(positions: std::ops::Range<u64>) -> Vec<String> {
    positions.map(|position| format!("P-{position}")).collect()
}

#[tokio::test]
async fn chunks_are_pushed_once_and_in_order_however_often_they_are_sent() {
    let redis = Redis::start();
    assert_eq!(redis.renew(1).await, Ok(()));
    for _ in 0..3 {
        assert_eq!(redis.push(1, 7, 1, 2501).await, Ok(()));
    }
    assert_eq!(redis.push(1, 7, 2501, 2503).await, Ok(()));
    assert_eq!(redis.push(1, 7, 1, 2501).await, Ok(()), "sent again after the next chunk");
    assert_eq!(redis.push(1, 9, 3000, 3002).await, Ok(()));
    let expected = [texts(1..2503), texts(3000..3002)].concat();
    assert_eq!(redis.list().await, expected);
    let popped: Vec<String> = redis.command(&["LPOP", KEY, "2504"]).await;
    assert_eq!(popped, expected);
    assert_eq!(redis.push(1, 9, 3000, 3002).await, Ok(()), "popped numbers are not pushed again");
    assert!(redis.list().await.is_empty());
    assert_eq!(redis.push(1, 9, 3002, 3004).await, Ok(()), "an empty list is filled like any other");
    assert_eq!(redis.list().await, texts(3002..3004));
    let keys: Vec<String> = redis.command(&["KEYS", "*"]).await;
    assert_eq!(keys.len(), 3, "the list, its marker and its lock, but no staging list: {keys:?}");
}

#[tokio::test]
async fn a_filler_with_an_old_fence_lock_or_epoch_pushes_nothing() {
    let redis = Redis::start();
    redis.renew(1).await.unwrap();
    assert_eq!(redis.push(1, 5, 1, 11).await, Ok(()));
    assert_eq!(redis.push(1, 6, 101, 111).await, Ok(()), "another filler has a newer grant");
    assert_eq!(redis.push(1, 5, 11, 21).await, Err(ListRefusal::Fenced));
    assert_eq!(
        redis.push(1, 5, 1, 11).await,
        Err(ListRefusal::Fenced),
        "not even a chunk that it pushed before"
    );
    let _: u64 = redis.command(&["DEL", "{id-pool:PROJ:9012}:bates:lock"]).await;
    assert_eq!(
        redis.push(1, 6, 111, 121).await,
        Err(ListRefusal::Fenced),
        "a filler without the lock pushes nothing"
    );
    redis.renew(2).await.unwrap();
    assert_eq!(redis.push(1, 7, 201, 211).await, Err(ListRefusal::Epoch(Some(2))));
    assert!(redis.list().await.is_empty(), "a new epoch begins empty");
    assert_eq!(redis.renew(2).await, Err(ListRefusal::Epoch(Some(2))), "an epoch begins once");
    assert_eq!(redis.renew(1).await, Err(ListRefusal::Epoch(Some(2))));
}

#[tokio::test]
async fn a_restarted_server_refuses_pushes_for_its_former_identity() {
    let mut redis = Redis::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    redis.renew(1).await.unwrap();
    redis.push(1, 5, 1, 11).await.unwrap();
    let before = redis.server().await;
    redis.server.restart().unwrap();
    let after = loop {
        // The pool reconnects.
        if let Ok(status) = redis.pool.status(&[KEY.into()]).await {
            break status;
        }
    };
    assert_ne!(before, after.server);
    assert_eq!((after.lists[0].level, after.lists[0].epoch), (10, Some(1)), "the list survived the restart");
    let refused = redis.push_on(&before, 1, 6, (11, 21)).await;
    assert_eq!(refused, Ok(Err(ListRefusal::Server(after.server.clone()))));
    assert_eq!(redis.pool.renew(KEY, 2, &before).await, Ok(Err(ListRefusal::Server(after.server))));
    assert_eq!(redis.list().await.len(), 10, "a refused push changes nothing");
}

#[tokio::test]
async fn a_missing_marker_and_a_foreign_value_are_different_refusals() {
    let redis = Redis::start();
    redis.renew(3).await.unwrap();
    redis.push(3, 5, 1, 11).await.unwrap();
    redis.pool.discard(&[(KEY.into(), 2)], &redis.server().await).await.unwrap();
    assert_eq!(redis.list().await.len(), 10, "a newer epoch is left alone");
    redis.pool.discard(&[(KEY.into(), 3)], &redis.server().await).await.unwrap();
    assert!(redis.list().await.is_empty());
    assert_eq!(redis.status().await.lists[0].epoch, None);
    assert_eq!(
        redis.push(3, 6, 11, 21).await,
        Err(ListRefusal::Epoch(None)),
        "a list without a marker accepts no push"
    );
    redis.renew(4).await.unwrap();
    let _: String = redis.command(&["SET", KEY, "something else"]).await;
    assert_eq!(redis.push(4, 7, 21, 31).await, Err(ListRefusal::NotAList));
    assert_eq!(redis.renew(5).await, Err(ListRefusal::NotAList));
    redis.pool.discard(&[(KEY.into(), 9)], &redis.server().await).await.unwrap();
    let value: String = redis.command(&["GET", KEY]).await;
    assert_eq!(value, "something else");
}

#[tokio::test]
async fn a_redis_out_of_memory_pushes_no_part_of_a_chunk() {
    let redis = Redis::start();
    redis.renew(1).await.unwrap();
    redis.push(1, 5, 1, 11).await.unwrap();
    let _: String = redis.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let server = redis.server().await;
    let refused = redis.push_on(&server, 1, 5, (11, 21)).await;
    let shown = format!("{refused:?}");
    assert!(matches!(refused, Ok(Err(ListRefusal::Unable(_)))) && shown.contains("OOM"), "{shown}");
    let _: String = redis.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_eq!(redis.list().await, texts(1..11));
    assert_eq!(redis.push(1, 5, 11, 21).await, Ok(()), "the same chunk again");
    assert_eq!(redis.list().await, texts(1..21));
}

#[tokio::test]
async fn a_lock_belongs_to_one_filler_until_that_filler_unlocks_it() {
    let redis = Redis::start();
    let pool = &redis.pool;
    assert_eq!(pool.lock(KEY, "one", TTL).await, Ok(true));
    assert_eq!(pool.lock(KEY, "other", TTL).await, Ok(false));
    assert_eq!(pool.extend(KEY, "other", TTL).await, Ok(false));
    assert_eq!(pool.extend(KEY, "one", TTL).await, Ok(true));
    pool.unlock(KEY, "other").await.unwrap();
    assert_eq!(pool.lock(KEY, "other", TTL).await, Ok(false), "another filler cannot unlock it");
    pool.unlock(KEY, "one").await.unwrap();
    assert_eq!(pool.lock(KEY, "other", TTL).await, Ok(true));
}

#[tokio::test]
async fn a_lock_restored_from_a_snapshot_blocks_no_filler() {
    let mut redis = Redis::start();
    assert_eq!(redis.pool.lock(KEY, "one", TTL).await, Ok(true));
    let _: String = redis.command(&["SAVE"]).await;
    redis.server.kill().unwrap();
    redis.server.restart().unwrap();
    assert_eq!(redis.command::<u64>(&["EXISTS", "{id-pool:PROJ:9012}:bates:lock"]).await, 1);
    let locked = loop {
        // The pool reconnects.
        if let Ok(locked) = redis.pool.lock(KEY, "other", TTL).await {
            break locked;
        }
    };
    assert!(locked);
    assert_eq!(redis.pool.extend(KEY, "one", TTL).await, Ok(false));
}

#[tokio::test]
async fn one_call_reads_the_status_of_many_keys_even_if_one_is_not_a_list() {
    let redis = Redis::start();
    let _: String = redis.command(&["SET", "none", "x"]).await;
    let _: u64 = redis.command(&["RPUSH", "foreign", "a", "b"]).await;
    redis.renew(1).await.unwrap();
    redis.push(1, 5, 7, 9).await.unwrap();
    let status = redis.pool.status(&["none".into(), "foreign".into(), KEY.into()]).await.unwrap();
    let list = |level, head: Option<&str>, marker: Option<(u64, u64)>| ListStatus {
        level,
        head: head.map(Into::into),
        epoch: marker.map(|(epoch, _)| epoch),
        pushed_to: marker.map(|(_, to)| to),
        is_not_a_list: false,
        is_of_other_store: false,
    };
    let other = ListStatus { is_not_a_list: true, ..ListStatus::default() };
    let expected = [other, list(2, Some("a"), None), list(2, Some("P-7"), Some((1, 9)))];
    assert_eq!(status.lists, expected);
}

/// Two installations use the same key, and both count their epochs from 1.
#[tokio::test]
async fn a_list_of_another_store_is_left_alone_whatever_its_epoch() {
    let redis = Redis::start();
    redis.renew(1).await.unwrap();
    redis.push(1, 5, 7, 9).await.unwrap();
    let other = RedisPool::new(&redis.server.url(), Uuid::from_u128(2)).unwrap();
    let status = other.status(&[KEY.into()]).await.unwrap();
    assert!(status.lists[0].is_of_other_store && !redis.status().await.lists[0].is_of_other_store);
    for epoch in [1, 2] {
        let numbers = numbers(20, 22);
        let (server, token) = (&status.server, "filler");
        let push = PushRequest { epoch, server, token, fence: 9, from: 20, to: 22, numbers: &numbers };
        assert_eq!(other.push(KEY, push).await, Ok(Err(ListRefusal::OtherStore)));
        assert_eq!(other.renew(KEY, epoch, server).await, Ok(Err(ListRefusal::OtherStore)));
        other.discard(&[(KEY.into(), epoch)], server).await.unwrap();
    }
    assert_eq!(redis.list().await, ["P-7", "P-8"]);
    let _: u64 = redis.command(&["HDEL", &format!("{{{KEY}}}:bates"), "store"]).await;
    assert_eq!(redis.status().await.lists[0].epoch, None, "a marker without a store counts as missing");
    redis.renew(2).await.unwrap();
    redis.push(2, 6, 9, 10).await.unwrap();
}
