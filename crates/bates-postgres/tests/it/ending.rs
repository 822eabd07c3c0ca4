//! The end of a space that several nodes grant from: nobody is told that it is exhausted while another node may still
//! hold some of it.

use bates_core::store::prelude::*;
use bates_core::{GrantError, GrantPurpose, GrantRequest, ReleaseRequest};
use bates_postgres::{OpenMode, Settings};
use bates_testkit::PrivatePostgres;

use super::{connect, opened, pinned, scope_id, want};

const ELSEWHERE: GrantError = GrantError::Exhausted { left: 0, elsewhere: true };
const EXHAUSTED: GrantError = GrantError::Exhausted { left: 0, elsewhere: false };

/// One of ten positions.
fn lease(count: u64, held_from: Option<u64>) -> GrantRequest {
    GrantRequest { end: 11, held_from, ..want("a", count, GrantPurpose::Hold) }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_positions_are_elsewhere_until_their_holder_has_spent_them() {
    let server = PrivatePostgres::start().unwrap();
    let one = opened(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    let other = opened(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    pinned(&one).await;
    one.grant(lease(4, None)).await.unwrap();
    other.grant(lease(6, None)).await.unwrap();
    assert_eq!(one.grant(lease(1, Some(3))).await, Err(ELSEWHERE), "it holds 3 and 4 itself");
    let handed_out = GrantRequest { purpose: GrantPurpose::HandOut, ..lease(1, None) };
    assert_eq!(one.grant(handed_out).await, Err(ELSEWHERE));
    assert_eq!(other.grant(lease(1, None)).await, Err(ELSEWHERE), "it has spent all, and one has not");
    assert_eq!(
        one.grant(lease(1, Some(3))).await,
        Err(EXHAUSTED),
        "nobody else has any, whatever it holds itself"
    );
    assert_eq!(other.grant(lease(1, None)).await, Err(ELSEWHERE));
    assert_eq!(one.grant(lease(1, None)).await, Err(EXHAUSTED));
    assert_eq!(other.grant(lease(1, None)).await, Err(EXHAUSTED), "for ever, and from every node");
    let leases =
        connect(&server.url()).await.query_one("SELECT count(*) FROM bates.held_range", &[]).await.unwrap();
    assert_eq!(leases.get::<_, i64>(0), 0);
}

/// A scope that is asked for again while it is evicted: what is given back comes behind what was granted since.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_give_back_does_not_end_what_the_node_holds_since() {
    let server = PrivatePostgres::start().unwrap();
    let one = opened(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    let other = opened(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    pinned(&one).await;
    let old = one.grant(lease(4, None)).await.unwrap();
    one.grant(lease(6, None)).await.unwrap();
    one.release(ReleaseRequest {
        scope_id: scope_id("a"),
        range: old.range,
        version: old.version,
        lost: vec![],
    })
    .await
    .unwrap();
    assert_eq!(other.grant(lease(1, None)).await, Err(ELSEWHERE));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_gives_back_or_takes_into_its_grave_holds_nobody_up() {
    let server = PrivatePostgres::start().unwrap();
    let one = opened(&server.url(), Settings::default(), OpenMode::New).await.unwrap();
    let other = opened(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    pinned(&one).await;
    let dead = one.grant(lease(4, None)).await.unwrap();
    let held = other.grant(lease(6, None)).await.unwrap();
    assert_eq!(dead.range.to(), held.range.from());
    let third = opened(&server.url(), Settings::default(), OpenMode::Existing).await.unwrap();
    assert_eq!(third.grant(lease(1, None)).await, Err(ELSEWHERE));
    let tail =
        ReleaseRequest { scope_id: scope_id("a"), range: held.range, version: held.version, lost: vec![] };
    other.release(tail).await.unwrap();
    let again = third.grant(lease(6, None)).await.unwrap();
    assert_eq!(again.range, held.range, "what was given back is granted again");
    assert_eq!(third.grant(lease(1, None)).await, Err(ELSEWHERE), "one holds four of them");
    let client = connect(&server.url()).await;
    // Not heard of for so long, a node counts as crashed.
    let long_ago = "UPDATE bates.node SET seen_at = now() - interval '6 minutes';
                    UPDATE bates.last_commit SET committed_at = now() - interval '6 minutes'";
    client.batch_execute(long_ago).await.unwrap();
    assert_eq!(third.grant(lease(1, None)).await, Err(EXHAUSTED));
}
