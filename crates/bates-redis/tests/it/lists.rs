//! One list, asked by whoever fills it.

use std::time::Duration;

use bates_core::{
    ListRefusal, ListStatus, ListValue, Numbers, PositionRange, PushRequest, ServerIdentity, ServerStatus,
    SharedPool,
};
use bates_pattern::{Options, Pattern};
use bates_redis::RedisPool;
use bates_testkit::PrivateRedis;
use uuid::Uuid;

const KEY: &str = "id-pool:PROJ:9012";
const STORE: Uuid = Uuid::from_u128(1);
const LASTS: Duration = Duration::from_mins(5);

/// A server, and what is asked of it besides.
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
        // A busy machine takes longer than the half second that is the default.
        let patient =
            redis::AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut connection = client.get_multiplexed_async_connection_with_config(&patient).await.unwrap();
        redis::cmd(words[0]).arg(&words[1..]).query_async(&mut connection).await.unwrap()
    }

    async fn looked(&self) -> ServerStatus {
        self.pool.status(&[KEY.into()]).await.unwrap()
    }

    async fn all(&self) -> Vec<String> {
        self.command(&["LRANGE", KEY, "0", "-1"]).await
    }

    async fn server(&self) -> ServerIdentity {
        self.looked().await.server
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

    async fn renewed(&self, epoch: u64) -> Result<(), ListRefusal> {
        let server = self.server().await;
        // Whoever begins an epoch has the lock.
        self.pool.lock(KEY, "filler", LASTS).await.unwrap();
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
async fn chunks_come_in_order_each_once_however_often_they_are_sent() {
    let redis = Redis::start();
    assert_eq!(redis.renewed(1).await, Ok(()));
    for _ in 0..3 {
        assert_eq!(redis.push(1, 7, 1, 2501).await, Ok(()));
    }
    assert_eq!(redis.push(1, 7, 2501, 2503).await, Ok(()));
    assert_eq!(redis.push(1, 7, 1, 2501).await, Ok(()), "sent again behind the next one");
    assert_eq!(redis.push(1, 9, 3000, 3002).await, Ok(()));
    let expected = [texts(1..2503), texts(3000..3002)].concat();
    assert_eq!(redis.all().await, expected);
    let popped: Vec<String> = redis.command(&["LPOP", KEY, "2504"]).await;
    assert_eq!(popped, expected);
    assert_eq!(redis.push(1, 9, 3000, 3002).await, Ok(()), "what was taken does not come again");
    assert!(redis.all().await.is_empty());
    assert_eq!(redis.push(1, 9, 3002, 3004).await, Ok(()), "an empty list is filled like any other");
    assert_eq!(redis.all().await, texts(3002..3004));
    let keys: Vec<String> = redis.command(&["KEYS", "*"]).await;
    assert_eq!(keys.len(), 3, "the list, its marker and its lock, and nothing on the stage: {keys:?}");
}

#[tokio::test]
async fn a_filler_that_slept_pushes_nothing() {
    let redis = Redis::start();
    redis.renewed(1).await.unwrap();
    assert_eq!(redis.push(1, 5, 1, 11).await, Ok(()));
    assert_eq!(redis.push(1, 6, 101, 111).await, Ok(()), "another one was granted later, and pushes");
    assert_eq!(redis.push(1, 5, 11, 21).await, Err(ListRefusal::Fenced));
    assert_eq!(redis.push(1, 5, 1, 11).await, Err(ListRefusal::Fenced), "not even what it pushed before");
    let _: u64 = redis.command(&["DEL", "{id-pool:PROJ:9012}:bates:lock"]).await;
    assert_eq!(redis.push(1, 6, 111, 121).await, Err(ListRefusal::Fenced), "nobody pushes without the lock");
    redis.renewed(2).await.unwrap();
    assert_eq!(redis.push(1, 7, 201, 211).await, Err(ListRefusal::Epoch(Some(2))));
    assert!(redis.all().await.is_empty(), "a new epoch begins empty");
    assert_eq!(redis.renewed(2).await, Err(ListRefusal::Epoch(Some(2))), "an epoch begins once");
    assert_eq!(redis.renewed(1).await, Err(ListRefusal::Epoch(Some(2))));
}

#[tokio::test]
async fn a_server_with_another_memory_takes_nothing() {
    let mut redis = Redis::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    redis.renewed(1).await.unwrap();
    redis.push(1, 5, 1, 11).await.unwrap();
    let before = redis.server().await;
    redis.server.restart().unwrap();
    let after = loop {
        // The connection finds out that it was cut.
        if let Ok(looked) = redis.pool.status(&[KEY.into()]).await {
            break looked;
        }
    };
    assert_ne!(before, after.server);
    assert_eq!((after.lists[0].level, after.lists[0].epoch), (10, Some(1)), "the list is there as it was");
    let refused = redis.push_on(&before, 1, 6, (11, 21)).await;
    assert_eq!(refused, Ok(Err(ListRefusal::Server(after.server.clone()))));
    assert_eq!(redis.pool.renew(KEY, 2, &before).await, Ok(Err(ListRefusal::Server(after.server))));
    assert_eq!(redis.all().await.len(), 10, "what is refused changes nothing");
}

#[tokio::test]
async fn what_redis_forgot_or_somebody_else_put_there_is_told_apart() {
    let redis = Redis::start();
    redis.renewed(3).await.unwrap();
    redis.push(3, 5, 1, 11).await.unwrap();
    redis.pool.discard(&[(KEY.into(), 2)], &redis.server().await).await.unwrap();
    assert_eq!(redis.all().await.len(), 10, "a newer epoch is left alone");
    redis.pool.discard(&[(KEY.into(), 3)], &redis.server().await).await.unwrap();
    assert!(redis.all().await.is_empty());
    assert_eq!(redis.looked().await.lists[0].epoch, None);
    assert_eq!(
        redis.push(3, 6, 11, 21).await,
        Err(ListRefusal::Epoch(None)),
        "nothing goes into what has no marker"
    );
    redis.renewed(4).await.unwrap();
    let _: String = redis.command(&["SET", KEY, "something else"]).await;
    assert_eq!(redis.push(4, 7, 21, 31).await, Err(ListRefusal::NotAList));
    assert_eq!(redis.renewed(5).await, Err(ListRefusal::NotAList));
    redis.pool.discard(&[(KEY.into(), 9)], &redis.server().await).await.unwrap();
    let kept: String = redis.command(&["GET", KEY]).await;
    assert_eq!(kept, "something else");
}

#[tokio::test]
async fn a_redis_without_memory_pushes_all_of_a_chunk_or_nothing() {
    let redis = Redis::start();
    redis.renewed(1).await.unwrap();
    redis.push(1, 5, 1, 11).await.unwrap();
    let _: String = redis.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let server = redis.server().await;
    let refused = redis.push_on(&server, 1, 5, (11, 21)).await;
    let said = format!("{refused:?}");
    assert!(matches!(refused, Ok(Err(ListRefusal::Unable(_)))) && said.contains("OOM"), "{said}");
    let _: String = redis.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_eq!(redis.all().await, texts(1..11));
    assert_eq!(redis.push(1, 5, 11, 21).await, Ok(()), "the same chunk again");
    assert_eq!(redis.all().await, texts(1..21));
}

#[tokio::test]
async fn a_lock_is_one_filler_s_until_it_ends_it() {
    let redis = Redis::start();
    let pool = &redis.pool;
    assert_eq!(pool.lock(KEY, "one", LASTS).await, Ok(true));
    assert_eq!(pool.lock(KEY, "other", LASTS).await, Ok(false));
    assert_eq!(pool.extend(KEY, "other", LASTS).await, Ok(false));
    assert_eq!(pool.extend(KEY, "one", LASTS).await, Ok(true));
    pool.unlock(KEY, "other").await.unwrap();
    assert_eq!(pool.lock(KEY, "other", LASTS).await, Ok(false), "nobody else ends it");
    pool.unlock(KEY, "one").await.unwrap();
    assert_eq!(pool.lock(KEY, "other", LASTS).await, Ok(true));
}

#[tokio::test]
async fn a_lock_that_came_back_with_an_old_memory_keeps_nobody_out() {
    let mut redis = Redis::start();
    assert_eq!(redis.pool.lock(KEY, "one", LASTS).await, Ok(true));
    let _: String = redis.command(&["SAVE"]).await;
    redis.server.kill().unwrap();
    redis.server.restart().unwrap();
    assert_eq!(redis.command::<u64>(&["EXISTS", "{id-pool:PROJ:9012}:bates:lock"]).await, 1);
    let locked = loop {
        // The connection finds out that it was cut.
        if let Ok(locked) = redis.pool.lock(KEY, "other", LASTS).await {
            break locked;
        }
    };
    assert!(locked);
    assert_eq!(redis.pool.extend(KEY, "one", LASTS).await, Ok(false));
}

#[tokio::test]
async fn lists_are_looked_at_together_and_one_that_is_none_keeps_no_other_from_it() {
    let redis = Redis::start();
    let _: String = redis.command(&["SET", "none", "x"]).await;
    let _: u64 = redis.command(&["RPUSH", "foreign", "a", "b"]).await;
    redis.renewed(1).await.unwrap();
    redis.push(1, 5, 7, 9).await.unwrap();
    let looked = redis.pool.status(&["none".into(), "foreign".into(), KEY.into()]).await.unwrap();
    let list = |level, head: Option<&str>, marker: Option<(u64, u64)>| ListStatus {
        level,
        head: head.map(Into::into),
        epoch: marker.map(|(epoch, _)| epoch),
        pushed_to: marker.map(|(_, to)| to),
        is_not_a_list: false,
        is_foreign: false,
    };
    let other = ListStatus { is_not_a_list: true, ..ListStatus::default() };
    let expected = [other, list(2, Some("a"), None), list(2, Some("P-7"), Some((1, 9)))];
    assert_eq!(looked.lists, expected);
}

/// Two installations fill lists of one key, and both count their epochs from 1.
#[tokio::test]
async fn a_list_of_another_store_is_left_alone_whatever_its_epoch() {
    let redis = Redis::start();
    redis.renewed(1).await.unwrap();
    redis.push(1, 5, 7, 9).await.unwrap();
    let other = RedisPool::new(&redis.server.url(), Uuid::from_u128(2)).unwrap();
    let looked = other.status(&[KEY.into()]).await.unwrap();
    assert!(looked.lists[0].is_foreign && !redis.looked().await.lists[0].is_foreign);
    for epoch in [1, 2] {
        let numbers = numbers(20, 22);
        let (server, token) = (&looked.server, "filler");
        let push = PushRequest { epoch, server, token, fence: 9, from: 20, to: 22, numbers: &numbers };
        assert_eq!(other.push(KEY, push).await, Ok(Err(ListRefusal::Foreign)));
        assert_eq!(other.renew(KEY, epoch, server).await, Ok(Err(ListRefusal::Foreign)));
        other.discard(&[(KEY.into(), epoch)], server).await.unwrap();
    }
    assert_eq!(redis.all().await, ["P-7", "P-8"]);
    let _: u64 = redis.command(&["HDEL", &format!("{{{KEY}}}:bates"), "store"]).await;
    assert_eq!(redis.looked().await.lists[0].epoch, None, "a marker without a store is begun anew");
    redis.renewed(2).await.unwrap();
    redis.push(2, 6, 9, 10).await.unwrap();
}
