//! Prefetched numbers while servers are killed, and after clients crash.

use std::collections::BTreeSet;

use bates_client::{Error, TakeError};

use super::super::documents::Home;
use super::{Stage, until};

#[tokio::test]
async fn a_client_uses_its_prefetched_numbers_while_the_server_is_down_and_none_is_repeated_later() {
    for home in [Home::folder(), Home::postgres()] {
        let mut stage = Stage::on(home);
        let mut taken = BTreeSet::new();
        let mut count = 0;
        for _ in 0..5 {
            let held = stage.client().series("ticket").prefetch(50);
            for _ in 0..20 {
                count += 1;
                taken.insert(held.next().await.unwrap().position().value());
            }
            until(|| held.cached() >= 30).await;
            stage.server.signal("KILL");
            let error = loop {
                match held.next().await {
                    Ok(number) => {
                        count += 1;
                        taken.insert(number.position().value());
                    }
                    Err(error) => break error,
                }
            };
            let TakeError::Failed(no_answer) = &error else { panic!("{error}") };
            assert!(matches!(&**no_answer, Error::NoAnswer { .. }), "{error}");
            assert!(
                error.to_string().starts_with("no number is in memory and the last refill failed"),
                "{error}"
            );
            stage = stage.killed_and_started_again();
        }
        assert_eq!(taken.len(), count, "each number is taken once");
        let gaps = stage.gaps("ticket");
        let wrong = gaps.iter().find(|(at, reason)| taken.contains(at) && *reason != "crash_skip");
        assert_eq!(wrong, None, "a taken number is at most an uncertain gap");
    }
}

/// The lease of a crashed client stays open, and its numbers go to no other caller.
#[tokio::test]
async fn the_numbers_of_a_crashed_client_are_not_reissued() {
    let stage = Stage::on(Home::folder());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = stage.client();
    let held = std::thread::spawn(move || {
        let taken = runtime.block_on(async {
            let held = client.series("ticket").prefetch(100);
            let position = held.next().await.unwrap().position().value();
            // Its destructor must not run, as after a crash.
            std::mem::forget(held);
            position
        });
        runtime.shutdown_background();
        taken
    });
    assert_eq!(held.join().unwrap(), 1);
    let held = stage.held();
    assert_eq!(held.values().sum::<u64>(), 100);
    assert_eq!(stage.client().series("ticket").next().await.unwrap(), "T-101");
    assert!(stage.gaps("ticket").is_empty(), "the client may still be alive");
    let stage = stage.killed_and_started_again();
    assert_eq!(stage.held(), held, "leases survive a crash of the server");
    let gaps = stage.gaps("ticket");
    assert!(gaps.keys().all(|position| *position > 100), "the client holds 1 to 100: {gaps:?}");
}
