//! A forked process holds none of its parent's numbers.

use bates_prefetch::{CloseError, Prefetch, TakeError};
use fork::{Fork, WEXITSTATUS, WIFEXITED};
use tokio::runtime::{Builder, Runtime};

use super::source::TestSource;

#[test]
fn a_forked_process_gets_errors_and_takes_and_reports_nothing() {
    for source in [TestSource::new(), TestSource::written(None)] {
        let runtime = Runtime::new().unwrap();
        let numbers = runtime.block_on(async { source.prefetch(Prefetch::new(100).at_most(100)) });
        assert_eq!(runtime.block_on(numbers.next()).unwrap().position().value(), 1);
        let child = match fork::fork().unwrap() {
            Fork::Parent(child) => child,
            Fork::Child => {
                let own = Builder::new_current_thread().enable_all().build().unwrap();
                let wrong = [
                    !matches!(numbers.try_next(), Err(TakeError::Forked)),
                    !matches!(own.block_on(numbers.next()), Err(TakeError::Forked)),
                    !matches!(own.block_on(numbers.take(3)), Err(TakeError::Forked)),
                    !matches!(own.block_on(numbers.close()), Err(CloseError::Forked)),
                    numbers.cached() != 0,
                ];
                drop(numbers);
                let unused = source.state(|state| state.unused.len());
                let failed = wrong.iter().position(|wrong| *wrong).map_or(0, |at| at + 1);
                std::process::exit(i32::try_from(failed + 10 * unused).unwrap_or(255));
            }
        };
        let status = fork::waitpid(child).unwrap();
        assert_eq!(
            (WIFEXITED(status), WEXITSTATUS(status)),
            (true, 0),
            "the exit code names the call that was not refused"
        );
        assert_eq!(numbers.try_next().unwrap().position().value(), 2, "the parent continues");
        assert_eq!(runtime.block_on(numbers.close()).unwrap(), 98);
        assert_eq!(source.used(), [1, 2]);
    }
}
