//! A process forked from one with an open folder: the fork gets no number and leaves the folder to its parent.

use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use bates::{Bates, CloseError, NotCached, Position, Promise, Series, TakeError};
use fork::{Fork, WEXITSTATUS, WIFEXITED};
use tempfile::tempdir;
use tokio::runtime::{Builder, Runtime};

#[test]
fn a_forked_process_gets_no_number_and_leaves_the_folder_locked() {
    let (folder, runtime) = (tempdir().unwrap(), Runtime::new().unwrap());
    let series = [
        Series::new("n", "{seq}"),
        Series::new("ordered", "{seq}").promise(Promise::Ordered),
        Series::new("gapless", "{seq}").promise(Promise::Gapless),
    ];
    let bates = runtime.block_on(Bates::open(folder.path(), series)).unwrap();
    let numbering = bates.series("n").unwrap();
    let [ordered, gapless] = ["ordered", "gapless"].map(|name| bates.series(name).unwrap());
    assert_eq!(runtime.block_on(numbering.next()).unwrap(), "1");
    let held = numbering.prefetch(5);
    assert_eq!(runtime.block_on(held.next()).unwrap().position().value(), 2);
    // A call that waits while the process is forked; its answer has arrived or is about to.
    let mut waiting = Box::pin(gapless.next());
    let first = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(first.is_pending());
    while runtime.block_on(gapless.peek()).unwrap().next != Position::new(2) {}
    let child = match fork::fork().unwrap() {
        Fork::Parent(child) => child,
        Fork::Child => {
            let own = Builder::new_current_thread().enable_all().build().unwrap();
            let is_forked = |error: &dyn std::error::Error| error.to_string().contains("forked from");
            let wrong = [
                !matches!(numbering.try_next(), Err(NotCached::Forked)),
                !own.block_on(numbering.next()).is_err_and(|error| is_forked(&error) && !error.may_burn()),
                !own.block_on(numbering.take(40)).is_err_and(|error| is_forked(&error)),
                !own.block_on(numbering.peek()).is_err_and(|error| is_forked(&error)),
                !own.block_on(bates.reconcile()).is_err_and(|error| is_forked(&error)),
                !own.block_on(&mut waiting).is_err_and(|error| is_forked(&error)),
                !own.block_on(ordered.reserve(Duration::from_mins(1))).is_err_and(|error| is_forked(&error)),
                !matches!(own.block_on(numbering.prefetch(5).next()), Err(TakeError::Forked)),
                !matches!(held.try_next(), Err(TakeError::Forked)),
                !matches!(own.block_on(held.close()), Err(CloseError::Forked)),
                own.block_on(Bates::open(folder.path(), [])).is_ok(),
            ];
            drop((waiting, held, numbering, ordered));
            assert!(matches!(own.block_on(bates.close()), Err(CloseError::Forked)));
            let is_unlocked = own.block_on(Bates::open(folder.path(), [])).is_ok();
            let wrong = wrong.iter().chain([&is_unlocked]).position(|wrong| *wrong);
            std::process::exit(wrong.map_or(0, |at| i32::try_from(at).unwrap_or(100) + 1));
        }
    };
    let status = fork::waitpid(child).unwrap();
    assert_eq!(
        (WIFEXITED(status), WEXITSTATUS(status)),
        (true, 0),
        "the exit status is the index of the failed check, plus 1"
    );
    let second = runtime.block_on(Bates::open(folder.path(), []));
    assert!(second.is_err(), "the folder is still locked");
    assert_eq!(held.try_next().unwrap().position().value(), 3, "the parent continues");
    assert_eq!(runtime.block_on(waiting).unwrap(), "1", "the waiting call is answered in the parent");
    runtime.block_on(held.close()).unwrap();
    drop((ordered, gapless));
    let next: u64 = runtime.block_on(numbering.next()).unwrap().to_string().parse().unwrap();
    assert!(next > 6);
    drop((held, numbering));
    runtime.block_on(bates.close()).unwrap();
    let again = runtime.block_on(Bates::open(folder.path(), [Series::new("n", "{seq}")])).unwrap();
    assert!(runtime.block_on(again.series("n").unwrap().next()).unwrap().position().value() > next);
    runtime.block_on(again.close()).unwrap();
}
