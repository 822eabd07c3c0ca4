//! The end of a space that several nodes share: a scope is not exhausted while another node may still hold
//! positions of it.

use bates_core::store::prelude::*;
use bates_core::{GrantError, GrantPurpose, GrantRequest, ReleaseRequest};
use bates_postgres::{OpenMode, Settings};
use bates_testkit::PrivatePostgres;

use super::{connect, open_store, pin_series, request, scope_id};

const ELSEWHERE: GrantError = GrantError::Exhausted { left: 0, held_elsewhere: true };
const EXHAUSTED: GrantError = GrantError::Exhausted { left: 0, held_elsewhere: false };

/// A request for `count` positions to hold, of a space of ten.
fn hold(count: u64, held_from: Option<u64>) -> GrantRequest {
    GrantRequest { end: 11, held_from, ..request("a", count, GrantPurpose::Hold) }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_positions_are_elsewhere_until_their_holder_has_issued_them() {
    let server = PrivatePostgres::start().unwrap();
    let one = open_store(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    let other = open_store(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    pin_series(&one).await;
    one.grant(hold(4, None)).await.unwrap();
    other.grant(hold(6, None)).await.unwrap();
    assert_eq!(one.grant(hold(1, Some(3))).await, Err(ELSEWHERE), "the other node holds 5 to 10");
    let handed_out = GrantRequest { purpose: GrantPurpose::HandOut, ..hold(1, None) };
    assert_eq!(one.grant(handed_out).await, Err(ELSEWHERE));
    assert_eq!(other.grant(hold(1, None)).await, Err(ELSEWHERE), "the first node still holds 3 and 4");
    assert_eq!(
        one.grant(hold(1, Some(3))).await,
        Err(EXHAUSTED),
        "no other node holds any; its own do not count"
    );
    assert_eq!(other.grant(hold(1, None)).await, Err(ELSEWHERE));
    assert_eq!(one.grant(hold(1, None)).await, Err(EXHAUSTED));
    assert_eq!(other.grant(hold(1, None)).await, Err(EXHAUSTED), "every node sees the end, and for good");
    let held =
        connect(&server.url()).await.query_one("SELECT count(*) FROM bates.held_range", &[]).await.unwrap();
    assert_eq!(held.get::<_, i64>(0), 0);
}

/// A scope is used again while it is being evicted: its old range is released after a new one was granted.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_release_does_not_end_a_newer_range_of_the_node() {
    let server = PrivatePostgres::start().unwrap();
    let one = open_store(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    let other = open_store(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    pin_series(&one).await;
    let old = one.grant(hold(4, None)).await.unwrap();
    one.grant(hold(6, None)).await.unwrap();
    one.release(ReleaseRequest {
        scope_id: scope_id("a"),
        range: old.range,
        version: old.version,
        lost: vec![],
    })
    .await
    .unwrap();
    assert_eq!(other.grant(hold(1, None)).await, Err(ELSEWHERE));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_range_or_a_crashed_node_does_not_delay_the_end() {
    let server = PrivatePostgres::start().unwrap();
    let one = open_store(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    let other = open_store(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    pin_series(&one).await;
    let dead = one.grant(hold(4, None)).await.unwrap();
    let held = other.grant(hold(6, None)).await.unwrap();
    assert_eq!(dead.range.to(), held.range.from());
    let third = open_store(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    assert_eq!(third.grant(hold(1, None)).await, Err(ELSEWHERE));
    let release =
        ReleaseRequest { scope_id: scope_id("a"), range: held.range, version: held.version, lost: vec![] };
    other.release(release).await.unwrap();
    let again = third.grant(hold(6, None)).await.unwrap();
    assert_eq!(again.range, held.range, "a released range is granted again");
    assert_eq!(third.grant(hold(1, None)).await, Err(ELSEWHERE), "the first node holds four positions");
    let client = connect(&server.url()).await;
    // A node that was silent for that long counts as crashed.
    let long_ago = "UPDATE bates.node SET seen_at = now() - interval '6 minutes';
                    UPDATE bates.last_commit SET committed_at = now() - interval '6 minutes'";
    client.batch_execute(long_ago).await.unwrap();
    assert_eq!(third.grant(hold(1, None)).await, Err(EXHAUSTED));
}
