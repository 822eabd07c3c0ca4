//! Redis dies, forgets, sleeps or goes back in time, under load: nothing that Bates or the safe consumer hands out comes
//! twice, and no call of them fails. What programs see that pop directly is counted beside it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bates_client::{Pool, Settings};

use super::faults::Fault;
use super::{Home, Redis, gaps, series};
use crate::documents::send;
use crate::running::{Client, Server};

/// Numbers that a load has taken, and whether it goes on.
#[derive(Default)]
pub(crate) struct Load {
    numbers: Mutex<Vec<String>>,
    count: AtomicU64,
    stop: AtomicBool,
    has_failed: AtomicBool,
}

/// Tells whoever waits for a load that it will not come any further.
struct Watch(Arc<Load>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.has_failed.fetch_or(std::thread::panicking(), Ordering::Relaxed);
    }
}

impl Load {
    fn add(&self, numbers: Vec<String>) {
        self.count.fetch_add(numbers.len() as u64, Ordering::Relaxed);
        self.numbers.lock().unwrap().extend(numbers);
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Waits until it has taken so many more.
    pub(crate) fn wait_for(&self, more: u64) {
        let enough = self.count.load(Ordering::Relaxed) + more;
        while self.count.load(Ordering::Relaxed) < enough {
            assert!(!self.has_failed.load(Ordering::Relaxed), "a call failed");
            std::thread::yield_now();
        }
    }

    /// Threads that work until it stops.
    fn threads(
        self: &Arc<Self>,
        count: usize,
        work: impl Fn(&Self) + Send + Clone + 'static,
    ) -> Vec<JoinHandle<()>> {
        let one = |_| {
            let (load, work) = (self.clone(), work.clone());
            std::thread::spawn(move || work(&Watch(load).0))
        };
        (0..count).map(one).collect()
    }
}

/// Everybody who takes numbers of one scope.
pub(crate) struct Loads {
    own: Arc<Load>,
    pub(crate) safe: Arc<Load>,
    pub(crate) plain: Arc<Load>,
    threads: Vec<JoinHandle<()>>,
}

impl Loads {
    fn begin(server: &Server, redis: &str) -> Self {
        let (own, safe, plain) = (Arc::<Load>::default(), Arc::<Load>::default(), Arc::<Load>::default());
        let (port, http) = (server.port, server.http);
        let mut threads = own.threads(2, move |load| {
            let mut client = Client::connect(port).unwrap();
            while load.goes_on() {
                let answer = client.send(&["LPOP", "own:A"]).expect("Bates answers");
                // The line after `$LENGTH`.
                assert!(answer.starts_with('$'), "Bates refused: {answer}");
                load.add(vec![client.line().expect("Bates answers")]);
            }
        });
        let mut settings = Settings::new(format!("http://127.0.0.1:{http}"), redis, "ticket");
        settings.scope = [("p".to_owned(), "A".to_owned())].into();
        threads.extend(safe.threads(1, move |load| pop_safely(load, &settings)));
        let url = redis.to_owned();
        threads.extend(plain.threads(2, move |load| {
            while load.goes_on() {
                let popped: Option<Vec<String>> =
                    Redis::try_command(&url, &["LPOP", "pool:A", "2"]).flatten();
                load.add(popped.unwrap_or_default());
            }
        }));
        Self { own, safe, plain, threads }
    }

    /// Waits until so many more were taken from the list, also by those who pop directly.
    pub(crate) fn taken_from_list(&self, more: u64) {
        self.safe.wait_for(more);
        self.plain.wait_for(more);
    }

    /// Ends all of it, and tells how many repeats those saw who pop directly. Nobody else may see any.
    fn end(self, fault: &str) -> usize {
        for load in [&self.own, &self.safe, &self.plain] {
            load.stop.store(true, Ordering::Relaxed);
        }
        for thread in self.threads {
            thread.join().expect("no call fails");
        }
        let taken = |load: &Load| std::mem::take(&mut *load.numbers.lock().unwrap());
        let (own, safe, plain) = (taken(&self.own), taken(&self.safe), taken(&self.plain));
        let mut seen: HashSet<&String> = HashSet::new();
        for number in own.iter().chain(&safe) {
            assert!(seen.insert(number), "{fault}: {number} came twice");
        }
        let repeats = plain.iter().filter(|number| !seen.insert(number)).count();
        println!(
            "{fault}: Bates gave {}, the safe consumer {}, no number twice; plain LPOP {}, of which {repeats} repeats",
            own.len(),
            safe.len(),
            plain.len()
        );
        repeats
    }
}

/// Four tasks that share one consumer.
fn pop_safely(load: &Load, settings: &Settings) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let pool = Pool::open(settings).unwrap();
        let one = async || {
            while load.goes_on() {
                load.add(pool.pop(3).await.expect("one of the two is up"));
            }
        };
        tokio::join!(one(), one(), one(), one());
    });
}

/// A server, a Redis and a load that has begun. `fault` breaks Redis, and mends it if it can be mended.
pub(crate) fn survive(name: &str, forgets: bool, fault: impl FnOnce(&mut Redis, &Loads)) -> usize {
    survive_on(&Home::folder(), name, forgets, fault)
}

fn survive_on(home: &Home, name: &str, forgets: bool, fault: impl FnOnce(&mut Redis, &Loads)) -> usize {
    let mut redis = Redis::start();
    let server = home.start(&series(&redis.url(), "size: 1000", "{ p: A }"));
    redis.wait_for_level("pool:A", 200);
    let epoch = redis.epoch("pool:A");
    let loads = Loads::begin(&server, &redis.url());
    for load in [&loads.own, &loads.safe, &loads.plain] {
        load.wait_for(300);
    }
    fault(&mut redis, &loads);
    if forgets {
        while redis.epoch("pool:A") <= epoch {
            std::thread::yield_now();
        }
        loads.plain.wait_for(300);
    }
    loads.own.wait_for(300);
    loads.safe.wait_for(300);
    let repeats = loads.end(name);
    let gaps = gaps(&server);
    assert!(gaps.contains_key("pool_invalidated") == forgets, "{gaps:?}");
    repeats
}

#[test]
fn redis_is_killed_for_good_and_documents_still_get_numbers() {
    survive("killed for good", false, |redis, _| redis.server.kill().unwrap());
    let home = Home::folder();
    let sink = home.sink();
    let pool = "pool: { redis: \"redis://127.0.0.1:1\", key: k, size: 10 }";
    let server = home.start(&format!("  letter: {{ pattern: \"L-{{seq}}\", sink: {sink}, {pool} }}\n"));
    let (status, body) =
        send(server.http, "/v1/series/letter/documents", "application/json", None, r#"{"document":{}}"#);
    assert_eq!(status, 202, "{body}");
}

#[test]
fn redis_is_flushed() {
    survive("flushed", true, |redis, _| redis.command(&["FLUSHALL"]));
}

#[test]
fn redis_is_paused_and_goes_on() {
    survive("paused", false, |redis, loads| {
        let _: String = redis.command(&["CLIENT", "PAUSE", "2000", "ALL"]);
        loads.own.wait_for(300);
        loads.safe.wait_for(300);
        // Back at Redis by itself: the list is taken from again.
        let before: u64 = redis.command(&["LLEN", "pool:A"]);
        while redis.level("pool:A") == before {
            std::thread::yield_now();
        }
    });
}

#[test]
fn redis_is_restarted_empty() {
    survive("restarted empty", true, |redis, loads| {
        redis.server.kill().unwrap();
        loads.safe.wait_for(100);
        redis.server.restart().unwrap();
    });
}

#[test]
fn redis_is_restarted_from_an_old_snapshot() {
    for home in [Home::folder(), Home::postgres()] {
        survive_on(&home, "restarted from an old snapshot", true, |redis, loads| {
            let _: String = redis.command(&["SAVE"]);
            for load in [&loads.safe, &loads.plain] {
                load.wait_for(300);
            }
            redis.server.kill().unwrap();
            redis.server.restart().unwrap();
        });
    }
}

#[test]
fn redis_is_replaced_by_a_replica_that_lagged() {
    survive("replaced by a lagging replica", true, |redis, loads| {
        Fault::ReplacedByALaggingReplica.strike(redis, loads);
    });
}

/// Programs that are still connected with the old one take what the new one has as well.
#[test]
fn redis_is_switched_while_the_old_one_is_still_taken_from() {
    survive("switched", true, |redis, loads| Fault::Switched.strike(redis, loads));
}
