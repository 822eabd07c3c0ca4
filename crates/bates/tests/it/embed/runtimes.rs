//! Calls from threads with another runtime, with a runtime that ends, or without one.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use bates::{Bates, Limits, Numbering, Series};
use tempfile::tempdir;
use tokio::runtime::{Builder, Runtime};

/// A series that fetches a range with nearly every call.
fn small_ranges() -> Series {
    let limits = Limits { lease_min: 1, lease_max: 8, ..Limits::default() };
    Series::new("n", "{seq}").limits(limits)
}

/// Takes this many numbers, and panics instead of waiting forever.
async fn take(numbering: &Numbering, count: usize) -> Vec<u64> {
    let taken = tokio::time::timeout(Duration::from_mins(5), numbering.take(count));
    let taken = taken.await.expect("it must not wait forever").unwrap();
    taken.iter().map(|number| number.position().value()).collect()
}

#[test]
fn short_lived_runtimes_leave_the_scope_usable() {
    let (folder, owner) = (tempdir().unwrap(), Runtime::new().unwrap());
    let bates = owner.block_on(Bates::open(folder.path(), [small_ranges()])).unwrap();
    let numbering = bates.series("n").unwrap();
    let mut taken: Vec<u64> = Vec::new();
    for round in 0..60 {
        let numbering = &numbering;
        let each = thread::scope(|threads| {
            let call = || {
                let own = Builder::new_current_thread().enable_time().build().unwrap();
                let taken = own.block_on(take(numbering, 20));
                // Work that it was doing for other callers ends with it.
                drop(own);
                taken
            };
            let calls: Vec<_> = (0..3).map(|_| threads.spawn(call)).collect();
            calls.into_iter().flat_map(|call| call.join().unwrap()).collect::<Vec<u64>>()
        });
        taken.extend(each);
        // A call that is dropped while it waits, unless it can be served from memory.
        let gone = Builder::new_current_thread().enable_time().build().unwrap();
        let polled = gone.block_on(async {
            let mut call = pin!(numbering.take(50 + round));
            std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await
        });
        if let Poll::Ready(numbers) = polled {
            taken.extend(numbers.unwrap().iter().map(|number| number.position().value()));
        }
    }
    taken.extend(owner.block_on(take(&numbering, 100)));
    let count = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert!(taken.len() == count && count >= 60 * 60 + 100, "a number came twice");
    drop(numbering);
    owner.block_on(bates.close()).unwrap();
}

#[test]
fn a_thread_without_a_runtime_may_wait_for_numbers() {
    let (folder, owner) = (tempdir().unwrap(), Runtime::new().unwrap());
    let bates = owner.block_on(Bates::open(folder.path(), [small_ranges()])).unwrap();
    let numbering = bates.series("n").unwrap();
    let taken =
        thread::scope(|threads| threads.spawn(|| block_on(numbering.take(100)).unwrap().len()).join());
    assert_eq!(taken.unwrap(), 100);
    drop(numbering);
    thread::spawn(move || block_on(bates.close()))
        .join()
        .expect("such a thread may also close the folder")
        .unwrap();
    drop(owner.block_on(Bates::open(folder.path(), [small_ranges()])).expect("the folder is free"));
}

#[test]
fn when_the_opening_runtime_has_ended_calls_are_refused_and_the_folder_can_be_opened_again() {
    let (folder, owner) = (tempdir().unwrap(), Runtime::new().unwrap());
    let bates = owner.block_on(Bates::open(folder.path(), [small_ranges()])).unwrap();
    let numbering = bates.series("n").unwrap();
    let first = owner.block_on(take(&numbering, 1));
    drop(owner);
    let other = Runtime::new().unwrap();
    for _ in 0..3 {
        let refused = other.block_on(numbering.take(50)).unwrap_err();
        assert!(refused.to_string().contains("runtime in which the store was opened has ended"), "{refused}");
    }
    drop(numbering);
    other.block_on(bates.close()).unwrap();
    let bates = other.block_on(Bates::open(folder.path(), [small_ranges()])).unwrap();
    let next = other.block_on(take(&bates.series("n").unwrap(), 1));
    assert!(next > first);
    other.block_on(bates.close()).unwrap();
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on a thread without a runtime.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
