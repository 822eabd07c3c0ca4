//! A process forked from a consumer of a pool: the fork uses none of the popped numbers.

use bates_client::{Pool, PopError, Settings};
use fork::{Fork, WEXITSTATUS, WIFEXITED};
use tokio::runtime::{Builder, Runtime};

use super::{Home, Redis, series};

#[test]
fn a_forked_consumer_gets_errors_and_no_popped_number() {
    let (redis, home, runtime) = (Redis::start(), Home::folder(), Runtime::new().unwrap());
    let server = home.start(&series(&redis.url(), "size: 600", "{ p: A }"));
    redis.wait_for_level("pool:A", 600);
    let mut settings = Settings::new(format!("http://127.0.0.1:{}", server.http), redis.url(), "ticket");
    settings.scope = [("p".to_owned(), "A".to_owned())].into();
    let pool = Pool::open(&settings).unwrap();
    runtime.block_on(pool.attach());
    let first = runtime.block_on(pool.pop(1)).unwrap();
    let child = match fork::fork().unwrap() {
        Fork::Parent(child) => child,
        Fork::Child => {
            let own = Builder::new_current_thread().enable_all().build().unwrap();
            let wrong =
                [!matches!(own.block_on(pool.pop(5)), Err(PopError::Forked)), !pool.rest().is_empty()];
            let wrong = wrong.iter().position(|wrong| *wrong);
            std::process::exit(wrong.map_or(0, |at| i32::try_from(at).unwrap_or(100) + 1));
        }
    };
    let status = fork::waitpid(child).unwrap();
    assert_eq!(
        (WIFEXITED(status), WEXITSTATUS(status)),
        (true, 0),
        "the exit status is the index of the failed check, plus 1"
    );
    let more = runtime.block_on(pool.pop(5)).unwrap();
    assert!(more.len() == 5 && !more.contains(&first[0]), "the parent continues");
    assert!(!pool.rest().is_empty());
}
