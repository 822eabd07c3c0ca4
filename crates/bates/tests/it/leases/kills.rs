//! What is held in advance while servers are killed, and by clients that crash.

use std::collections::BTreeSet;

use bates_client::{Error, TakeError};

use super::super::documents::Home;
use super::{Stage, until};

#[tokio::test]
async fn what_is_held_lasts_while_the_server_is_away_and_nothing_comes_twice_when_it_is_back() {
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
            let TakeError::Failed(away) = &error else { panic!("{error}") };
            assert!(matches!(&**away, Error::NoAnswer { .. }), "{error}");
            assert!(
                error.to_string().starts_with("no number is in memory and the last refill failed"),
                "{error}"
            );
            stage = stage.killed_and_started_again();
        }
        assert_eq!(taken.len(), count, "each number came once");
        let gaps = stage.gaps("ticket");
        let wrong = gaps.iter().find(|(at, reason)| taken.contains(at) && *reason != "crash_skip");
        assert_eq!(wrong, None, "what was used is no gap");
    }
}

/// A client that vanishes: its lease stays, and what it held is with it and with nobody else.
#[tokio::test]
async fn what_a_crashed_client_held_comes_to_nobody() {
    let stage = Stage::on(Home::folder());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = stage.client();
    let held = std::thread::spawn(move || {
        let taken = runtime.block_on(async {
            let held = client.series("ticket").prefetch(100);
            let position = held.next().await.unwrap().position().value();
            // Nothing of it runs when the runtime is gone.
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
    assert!(stage.gaps("ticket").is_empty(), "it may still be there");
    let stage = stage.killed_and_started_again();
    assert_eq!(stage.held(), held, "a crash of the server forgets no lease");
    let gaps = stage.gaps("ticket");
    assert!(gaps.keys().all(|position| *position > 100), "the client has the others: {gaps:?}");
}
