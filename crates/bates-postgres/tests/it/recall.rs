//! Recalls between nodes: which nodes hold ranges of a series, which ranges they give up, and nodes that stay
//! silent.

use bates_core::store::prelude::*;
use bates_core::{
    GapReason, GrantPurpose, GrantRequest, MissingRange, PositionRange, ReleaseOutcome, ReleaseRequest,
};
use bates_postgres::{OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;

use super::{connect, open_store, pin_series, request, scope_id};

async fn nodes(server: &PrivatePostgres) -> [PostgresStore; 2] {
    let open = async || open_store(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    let nodes = [open().await, open().await];
    pin_series(&nodes[0]).await;
    nodes
}

fn range(from: u64, to: u64) -> PositionRange {
    PositionRange::new(from, to).unwrap()
}

/// The held and the lost ranges of a scope.
async fn held_and_lost(store: &PostgresStore, scope: &str) -> (Vec<PositionRange>, Vec<MissingRange>) {
    let all = store.scope_positions(scope_id(scope).series, None, 10).await.unwrap();
    let reconciliation = all.into_iter().find(|(key, _)| *key == scope_id(scope).scope).unwrap().1;
    (reconciliation.held, reconciliation.lost)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_a_holder_until_it_gives_up_its_ranges_of_before_the_recall() {
    let server = PrivatePostgres::start().unwrap();
    let [one, other] = nodes(&server).await;
    let series = scope_id("a").series;
    let held = one.grant(request("a", 10, GrantPurpose::Hold)).await.unwrap().range;
    one.grant(request("b", 10, GrantPurpose::Hold)).await.unwrap();
    let epoch = other.recall(series.clone()).await.unwrap();
    let more = GrantRequest { held_from: Some(5), ..request("a", 10, GrantPurpose::Hold) };
    let later = one.grant(more).await.unwrap().range;
    let holders = other.holders(series.clone(), epoch).await.unwrap();
    assert_eq!((holders.len(), holders[0].positions), (1, 16), "{holders:?}");
    assert!(!holders[0].has_ended && holders[0].name.contains("process"), "{holders:?}");
    assert_eq!(held, range(1, 11));
    assert_eq!(holders[0].ranges, [(scope_id("a").scope, range(5, 11)), (scope_id("b").scope, range(1, 11))]);
    assert_eq!(one.recalls().await, Ok(vec![]), "the node has not read the store yet");
    one.check_revision().await.unwrap();
    let recalls = one.recalls().await.unwrap();
    assert_eq!((recalls.len(), &recalls[0].series, recalls[0].epoch), (1, &series, epoch));
    // The node has issued 1 to 4 of the first scope and all of the second.
    let unused = vec![(scope_id("a").scope, range(5, 11))];
    for _ in 0..2 {
        one.give_up(series.clone(), Some(epoch), unused.clone()).await.unwrap();
    }
    assert_eq!(other.holders(series.clone(), epoch).await, Ok(vec![]));
    assert_eq!(one.recalls().await, Ok(vec![]));
    let lost = MissingRange { range: range(5, 11), reason: GapReason::LeaseLost };
    assert_eq!(
        held_and_lost(&other, "a").await,
        (vec![later], vec![lost]),
        "the range granted after the recall is held"
    );
    assert_eq!(held_and_lost(&other, "b").await, (vec![], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_written_off_cannot_release_its_ranges_and_they_are_uncertain() {
    let server = PrivatePostgres::start().unwrap();
    let [one, other] = nodes(&server).await;
    let series = scope_id("a").series;
    let held = one.grant(request("a", 10, GrantPurpose::Hold)).await.unwrap();
    let epoch = other.recall(series.clone()).await.unwrap();
    let holders = other.holders(series.clone(), epoch).await.unwrap();
    other.write_off(series.clone(), epoch, vec![holders[0].node], None).await.unwrap();
    assert_eq!(other.holders(series, epoch).await, Ok(vec![]));
    let uncertain = MissingRange { range: held.range, reason: GapReason::CrashSkip };
    assert_eq!(held_and_lost(&other, "a").await, (vec![], vec![uncertain]));
    let release =
        ReleaseRequest { scope_id: scope_id("a"), range: held.range, version: held.version, lost: vec![] };
    assert_eq!(
        one.release(release).await,
        Ok(ReleaseOutcome::Gap),
        "a range reported as uncertain must not be issued again"
    );
    assert_eq!(other.grant(request("a", 1, GrantPurpose::HandOut)).await.unwrap().range.from(), 11);
}

/// A range reported as uncertain must not be granted again.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_counted_as_crashed_cannot_release_its_ranges() {
    let server = PrivatePostgres::start().unwrap();
    let [one, other] = nodes(&server).await;
    let held = one.grant(request("a", 10, GrantPurpose::Hold)).await.unwrap();
    let silence = "UPDATE bates.node SET seen_at = now() - interval '6 minutes';
                   UPDATE bates.last_commit SET committed_at = now() - interval '6 minutes'";
    connect(&server.url()).await.batch_execute(silence).await.unwrap();
    let uncertain = MissingRange { range: held.range, reason: GapReason::CrashSkip };
    assert_eq!(held_and_lost(&other, "a").await, (vec![], vec![uncertain]));
    one.probe().await.unwrap();
    assert_eq!(held_and_lost(&other, "a").await.1, [uncertain], "the reported range stays uncertain");
    assert_eq!(
        other.holders(scope_id("a").series, u64::MAX).await.unwrap().len(),
        1,
        "the node may still issue from its range"
    );
    let release =
        ReleaseRequest { scope_id: scope_id("a"), range: held.range, version: held.version, lost: vec![] };
    assert_eq!(one.release(release).await, Ok(ReleaseOutcome::Gap));
    let known = MissingRange { range: held.range, reason: GapReason::LeaseLost };
    assert_eq!(
        held_and_lost(&other, "a").await,
        (vec![], vec![known]),
        "the node reports that it did not use them"
    );
}

/// After a restore, a range that the node remembers may belong to another node.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_can_report_only_its_own_ranges_as_lost() {
    let server = PrivatePostgres::start().unwrap();
    let [one, other] = nodes(&server).await;
    let held = other.grant(request("a", 10, GrantPurpose::Hold)).await.unwrap().range;
    let unused = vec![(scope_id("a").scope, held)];
    one.give_up(scope_id("a").series, None, unused).await.unwrap();
    assert_eq!(held_and_lost(&one, "a").await, (vec![held], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_leaves_holds_no_range() {
    let server = PrivatePostgres::start().unwrap();
    let [one, other] = nodes(&server).await;
    one.grant(request("a", 10, GrantPurpose::Hold)).await.unwrap();
    one.leave().await.unwrap();
    assert_eq!(other.holders(scope_id("a").series, u64::MAX).await, Ok(vec![]));
}

/// If a recall did not wait for a running batch, the positions granted by it would be issued after the
/// recall.
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
                    one.grant(request(&format!("s{at}"), 1, GrantPurpose::Hold)).await.unwrap();
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
        assert!(now <= *seen, "{now} positions of before epoch {epoch}, but only {seen} were seen then");
    }
    assert!(before.len() > 2, "{before:?}");
}
