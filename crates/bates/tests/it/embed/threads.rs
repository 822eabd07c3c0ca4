//! Many threads and tasks on one scope get distinct numbers, and idle scopes leave memory.

use std::thread;
use std::time::Duration;

use bates::{Bates, Limits, NotCached, Numbering, Promise, Series, Settings};
use bates_testkit::history::{Gaps, History, Rules};
use tempfile::tempdir;
use tokio::runtime::Builder;

use super::series;

const THREADS: u64 = 4;
const EACH: u64 = 20_000;

/// Takes numbers without a runtime and records each in the history.
fn take_from_memory(numbering: &Numbering, history: &History) {
    let scope = history.scope("all");
    let mut client = history.client();
    let mut taken = 0;
    while taken < EACH {
        let request = client.ask(scope);
        match numbering.try_next() {
            Ok(number) => {
                let position = number.position().value();
                client.answered(request, position, position);
                taken += 1;
            }
            Err(refused) => {
                assert_eq!(refused, NotCached::Fetching);
                thread::yield_now();
            }
        }
    }
}

/// Threads that never wait run beside a task that does: no number is repeated, out of order or missing.
fn check_threads_on(mut builder: Builder) {
    let folder = tempdir().unwrap();
    let runtime = builder.enable_time().build().unwrap();
    let limits = Limits { lease_max: 1_024, ..Limits::default() };
    let series = Series::new("n", "{seq}").promise(Promise::Ordered).limits(limits);
    let bates = runtime.block_on(Bates::open(folder.path(), [series])).unwrap();
    let (numbering, history) = (bates.series("n").unwrap(), History::default());
    thread::scope(|threads| {
        let takers: Vec<_> =
            (0..THREADS).map(|_| threads.spawn(|| take_from_memory(&numbering, &history))).collect();
        runtime.block_on(async {
            let (scope, mut client) = (history.scope("all"), history.client());
            let mut taken = 0;
            // While the threads take numbers, this task drives the runtime that fetches for them.
            while taken < EACH || !takers.iter().all(thread::ScopedJoinHandle::is_finished) {
                let request = client.ask(scope);
                let position = numbering.next().await.unwrap().position().value();
                client.answered(request, position, position);
                taken += 1;
                tokio::task::yield_now().await;
            }
        });
    });
    let rules = Rules { is_ordered: true, gaps: Gaps::AtMost { start: 1, skipped_max: 0 } };
    assert!(history.len() as u64 >= (THREADS + 1) * EACH);
    let violations = history.check(rules);
    assert!(violations.is_empty(), "{:?}", violations.first());
    drop(numbering);
    runtime.block_on(bates.close()).unwrap();
}

#[test]
fn threads_without_a_runtime_get_no_number_twice_from_a_current_thread_runtime() {
    check_threads_on(Builder::new_current_thread());
}

#[test]
fn threads_without_a_runtime_get_no_number_twice_from_a_multi_threaded_runtime() {
    check_threads_on(Builder::new_multi_thread());
}

#[tokio::test]
async fn idle_scopes_leave_memory_and_later_continue_without_a_gap() {
    let folder = tempdir().unwrap();
    let settings = Settings { idle: Duration::from_millis(10), ..Settings::default() };
    let bates = Bates::open_with(folder.path(), series(), settings).await.unwrap();
    let held = || bates.machine().unwrap().levels().values().map(|level| level.scopes).sum::<u64>();
    for round in 1..=3_u64 {
        for scope in 0..100 {
            let messages = bates.series("conversation").unwrap().scope([("conversation", scope.to_string())]);
            assert_eq!(messages.next().await.unwrap().position().value(), round);
        }
        while held() > 0 {
            tokio::task::yield_now().await;
        }
    }
}
