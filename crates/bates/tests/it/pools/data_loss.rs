//! Redis dies, pauses, loses data or returns to an old state under load: Bates and the safe consumer repeat no number
//! and fail no call. Repeats seen by programs that pop directly are only counted.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bates_client::{Pool, Settings};

use super::faults::Fault;
use super::{Home, Redis, gaps, series};
use crate::documents::send;
use crate::running::{Client, Server};

/// The numbers that a load has taken, and whether it still runs.
#[derive(Default)]
pub(crate) struct Load {
    numbers: Mutex<Vec<String>>,
    count: AtomicU64,
    stop: AtomicBool,
    has_failed: AtomicBool,
}

/// Marks a load as failed if its thread panics.
struct PanicGuard(Arc<Load>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        self.0.has_failed.fetch_or(std::thread::panicking(), Ordering::Relaxed);
    }
}

impl Load {
    fn add(&self, numbers: Vec<String>) {
        self.count.fetch_add(numbers.len() as u64, Ordering::Relaxed);
        self.numbers.lock().unwrap().extend(numbers);
    }

    fn is_running(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Waits until the load has taken this many more numbers.
    pub(crate) fn wait_for(&self, more: u64) {
        let enough = self.count.load(Ordering::Relaxed) + more;
        while self.count.load(Ordering::Relaxed) < enough {
            assert!(!self.has_failed.load(Ordering::Relaxed), "a call failed");
            std::thread::yield_now();
        }
    }

    /// Starts threads that work until the load stops.
    fn threads(
        self: &Arc<Self>,
        count: usize,
        work: impl Fn(&Self) + Send + Clone + 'static,
    ) -> Vec<JoinHandle<()>> {
        let one = |_| {
            let (load, work) = (self.clone(), work.clone());
            std::thread::spawn(move || work(&PanicGuard(load).0))
        };
        (0..count).map(one).collect()
    }
}

/// All loads on one scope: Bates itself, the safe consumer, and plain `LPOP`.
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
            while load.is_running() {
                let answer = client.send(&["LPOP", "own:A"]).expect("Bates answers");
                assert!(answer.starts_with('$'), "Bates refused: {answer}");
                // The number is on the line after `$LENGTH`.
                load.add(vec![client.line().expect("Bates answers")]);
            }
        });
        let mut settings = Settings::new(format!("http://127.0.0.1:{http}"), redis, "ticket");
        settings.scope = [("p".to_owned(), "A".to_owned())].into();
        threads.extend(safe.threads(1, move |load| pop_safely(load, &settings)));
        let url = redis.to_owned();
        threads.extend(plain.threads(2, move |load| {
            while load.is_running() {
                let popped: Option<Vec<String>> =
                    Redis::try_command(&url, &["LPOP", "pool:A", "2"]).flatten();
                load.add(popped.unwrap_or_default());
            }
        }));
        Self { own, safe, plain, threads }
    }

    /// Waits until the safe consumer and the plain `LPOP` have each taken this many more numbers.
    pub(crate) fn wait_for_list(&self, more: u64) {
        self.safe.wait_for(more);
        self.plain.wait_for(more);
    }

    /// Ends all loads, and returns how many repeats plain `LPOP` saw. The other loads may see none.
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
            "{fault}: Bates gave {}, the safe consumer {}, no number twice; plain LPOP {}, with {repeats} repeats",
            own.len(),
            safe.len(),
            plain.len()
        );
        repeats
    }
}

/// Pops in four tasks that share one consumer.
fn pop_safely(load: &Load, settings: &Settings) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let pool = Pool::open(settings).unwrap();
        let one = async || {
            while load.is_running() {
                load.add(pool.pop(3).await.expect("Redis or Bates is up"));
            }
        };
        tokio::join!(one(), one(), one(), one());
    });
}

/// Runs a server and a Redis under load while `fault` breaks Redis and, where possible, repairs it.
pub(crate) fn survive(name: &str, loses_data: bool, fault: impl FnOnce(&mut Redis, &Loads)) -> usize {
    survive_on(&Home::folder(), name, loses_data, fault)
}

fn survive_on(home: &Home, name: &str, loses_data: bool, fault: impl FnOnce(&mut Redis, &Loads)) -> usize {
    let mut redis = Redis::start();
    let server = home.start(&series(&redis.url(), "size: 1000", "{ p: A }"));
    redis.wait_for_level("pool:A", 200);
    let epoch = redis.epoch("pool:A");
    let loads = Loads::begin(&server, &redis.url());
    for load in [&loads.own, &loads.safe, &loads.plain] {
        load.wait_for(300);
    }
    fault(&mut redis, &loads);
    if loses_data {
        while redis.epoch("pool:A") <= epoch {
            std::thread::yield_now();
        }
        loads.plain.wait_for(300);
    }
    loads.own.wait_for(300);
    loads.safe.wait_for(300);
    let repeats = loads.end(name);
    let gaps = gaps(&server);
    let is_invalidated = gaps.contains_key("pool_invalidated");
    // An empty list loses nothing, but then a fill was under way, whose push the new epoch refused.
    assert!(
        if loses_data { is_invalidated || gaps.contains_key("fill_fenced") } else { !is_invalidated },
        "{gaps:?}"
    );
    repeats
}

#[test]
fn a_redis_that_never_returns_fails_no_call_and_documents_still_get_numbers() {
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
fn a_flush_of_redis_repeats_no_number() {
    survive("flushed", true, |redis, _| redis.command(&["FLUSHALL"]));
}

#[test]
fn a_pause_of_redis_repeats_no_number() {
    survive("paused", false, |redis, loads| {
        let _: String = redis.command(&["CLIENT", "PAUSE", "2000", "ALL"]);
        loads.own.wait_for(300);
        loads.safe.wait_for(300);
        // After the pause the consumer takes from the list again.
        let before: u64 = redis.command(&["LLEN", "pool:A"]);
        while redis.level("pool:A") == before {
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_restart_of_redis_without_data_repeats_no_number() {
    survive("restarted empty", true, |redis, loads| {
        redis.server.kill().unwrap();
        loads.safe.wait_for(100);
        redis.server.restart().unwrap();
    });
}

#[test]
fn a_restart_of_redis_from_an_old_snapshot_repeats_no_number() {
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
fn a_failover_to_a_lagging_replica_repeats_no_number() {
    survive("replaced by a lagging replica", true, |redis, loads| {
        Fault::ReplacedByALaggingReplica.strike(redis, loads);
    });
}

/// Programs that are still connected to the old server take numbers that the new one has, too.
#[test]
fn a_switch_to_a_replica_repeats_no_number_while_the_old_server_is_in_use() {
    survive("switched", true, |redis, loads| Fault::Switched.strike(redis, loads));
}
