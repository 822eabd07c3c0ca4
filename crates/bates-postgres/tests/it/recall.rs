//! Recalls between nodes: who holds what of a series, what is given up, and nodes that stay silent.

use bates_core::store::prelude::*;
use bates_core::{
    GapReason, GrantPurpose, GrantRequest, MissingRange, PositionRange, ReleaseOutcome, ReleaseRequest,
};
use bates_postgres::{OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;

use super::{connect, opened, pinned, scope_id, want};

async fn nodes(server: &PrivatePostgres) -> [PostgresStore; 2] {
    let open = async || opened(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    let nodes = [open().await, open().await];
    pinned(&nodes[0]).await;
    nodes
}

fn lease(from: u64, to: u64) -> PositionRange {
    PositionRange::new(from, to).unwrap()
}

/// What is held and what is lost of a scope.
async fn account(store: &PostgresStore, scope: &str) -> (Vec<PositionRange>, Vec<MissingRange>) {
    let accounts = store.reconciliations(scope_id(scope).series, None, 10).await.unwrap();
    let account = accounts.into_iter().find(|(key, _)| *key == scope_id(scope).scope).unwrap().1;
    (account.held, account.lost)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_a_holder_until_it_has_given_up_what_it_was_granted_before_the_recall() {
    let server = PrivatePostgres::start().unwrap();
    let [one, other] = nodes(&server).await;
    let series = scope_id("a").series;
    let held = one.grant(want("a", 10, GrantPurpose::Hold)).await.unwrap().range;
    one.grant(want("b", 10, GrantPurpose::Hold)).await.unwrap();
    let epoch = other.recall(series.clone()).await.unwrap();
    let more = GrantRequest { held_from: Some(5), ..want("a", 10, GrantPurpose::Hold) };
    let later = one.grant(more).await.unwrap().range;
    let holders = other.holders(series.clone(), epoch).await.unwrap();
    assert_eq!((holders.len(), holders[0].positions), (1, 16), "{holders:?}");
    assert!(!holders[0].has_ended && holders[0].name.contains("process"), "{holders:?}");
    assert_eq!(held, lease(1, 11));
    assert_eq!(holders[0].ranges, [(scope_id("a").scope, lease(5, 11)), (scope_id("b").scope, lease(1, 11))]);
    assert_eq!(one.recalls().await, Ok(vec![]), "it has not looked yet");
    one.check_revision().await.unwrap();
    let recalls = one.recalls().await.unwrap();
    assert_eq!((recalls.len(), &recalls[0].series, recalls[0].epoch), (1, &series, epoch));
    // It has handed out 1 to 4 of the one and all of the other.
    let unused = vec![(scope_id("a").scope, lease(5, 11))];
    for _ in 0..2 {
        one.give_up(series.clone(), Some(epoch), unused.clone()).await.unwrap();
    }
    assert_eq!(other.holders(series.clone(), epoch).await, Ok(vec![]));
    assert_eq!(one.recalls().await, Ok(vec![]));
    let lost = MissingRange { range: lease(5, 11), reason: GapReason::LeaseLost };
    assert_eq!(account(&other, "a").await, (vec![later], vec![lost]), "what came later is held");
    assert_eq!(account(&other, "b").await, (vec![], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_written_off_gives_nothing_back_and_its_ranges_are_uncertain() {
    let server = PrivatePostgres::start().unwrap();
    let [one, other] = nodes(&server).await;
    let series = scope_id("a").series;
    let held = one.grant(want("a", 10, GrantPurpose::Hold)).await.unwrap();
    let epoch = other.recall(series.clone()).await.unwrap();
    let holders = other.holders(series.clone(), epoch).await.unwrap();
    other.write_off(series.clone(), epoch, vec![holders[0].node]).await.unwrap();
    assert_eq!(other.holders(series, epoch).await, Ok(vec![]));
    let uncertain = MissingRange { range: held.range, reason: GapReason::CrashSkip };
    assert_eq!(account(&other, "a").await, (vec![], vec![uncertain]));
    let tail =
        ReleaseRequest { scope_id: scope_id("a"), range: held.range, version: held.version, lost: vec![] };
    assert_eq!(
        one.release(tail).await,
        Ok(ReleaseOutcome::Gap),
        "or it would be issued although it was reported"
    );
    assert_eq!(other.grant(want("a", 1, GrantPurpose::HandOut)).await.unwrap().range.from(), 11);
}

/// A range that was reported as uncertain must not be granted again.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_silent_for_so_long_that_it_counted_as_crashed_gives_nothing_back() {
    let server = PrivatePostgres::start().unwrap();
    let [one, other] = nodes(&server).await;
    let held = one.grant(want("a", 10, GrantPurpose::Hold)).await.unwrap();
    let silence = "UPDATE bates.node SET seen_at = now() - interval '6 minutes';
                   UPDATE bates.last_commit SET committed_at = now() - interval '6 minutes'";
    connect(&server.url()).await.batch_execute(silence).await.unwrap();
    let uncertain = MissingRange { range: held.range, reason: GapReason::CrashSkip };
    assert_eq!(account(&other, "a").await, (vec![], vec![uncertain]));
    one.probe().await.unwrap();
    assert_eq!(account(&other, "a").await.1, [uncertain], "what was reported stays so");
    assert_eq!(
        other.holders(scope_id("a").series, u64::MAX).await.unwrap().len(),
        1,
        "it may still hand it out"
    );
    let tail =
        ReleaseRequest { scope_id: scope_id("a"), range: held.range, version: held.version, lost: vec![] };
    assert_eq!(one.release(tail).await, Ok(ReleaseOutcome::Gap));
    let known = MissingRange { range: held.range, reason: GapReason::LeaseLost };
    assert_eq!(account(&other, "a").await, (vec![], vec![known]), "it tells that it did not use them");
}

/// Ranges of a lost history may belong to another node by now.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_reports_as_lost_only_what_the_store_says_it_was_granted() {
    let server = PrivatePostgres::start().unwrap();
    let [one, other] = nodes(&server).await;
    let held = other.grant(want("a", 10, GrantPurpose::Hold)).await.unwrap().range;
    let unused = vec![(scope_id("a").scope, held)];
    one.give_up(scope_id("a").series, None, unused).await.unwrap();
    assert_eq!(account(&one, "a").await, (vec![held], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_leaves_holds_nothing_any_more() {
    let server = PrivatePostgres::start().unwrap();
    let [one, other] = nodes(&server).await;
    one.grant(want("a", 10, GrantPurpose::Hold)).await.unwrap();
    one.leave().await.unwrap();
    assert_eq!(other.holders(scope_id("a").series, u64::MAX).await, Ok(vec![]));
}

/// Positions granted by a batch that a recall did not wait for would be handed out afterwards, and no one would know.
#[tokio::test(flavor = "multi_thread")]
async fn no_range_of_an_earlier_epoch_appears_after_a_recall() {
    let server = PrivatePostgres::start().unwrap();
    let [one, other] = nodes(&server).await;
    let series = scope_id("a").series;
    let one = std::sync::Arc::new(one);
    let granting: Vec<_> = (0..8)
        .map(|at| {
            let one = one.clone();
            tokio::spawn(async move {
                for _ in 0..60 {
                    one.grant(want(&format!("s{at}"), 1, GrantPurpose::Hold)).await.unwrap();
                }
            })
        })
        .collect();
    let mut before: Vec<(u64, u64)> = Vec::new();
    let count = async |epoch| {
        let holders = other.holders(series.clone(), epoch).await.unwrap();
        holders.iter().map(|holder| holder.positions).sum::<u64>()
    };
    while granting.iter().any(|granting| !granting.is_finished()) {
        let epoch = other.recall(series.clone()).await.unwrap();
        before.push((epoch, count(epoch).await));
    }
    for granting in granting {
        granting.await.unwrap();
    }
    for (epoch, seen) in &before {
        let now = count(*epoch).await;
        assert!(now <= *seen, "{now} positions of before epoch {epoch}, and {seen} were seen then");
    }
    assert!(before.len() > 2, "{before:?}");
}
