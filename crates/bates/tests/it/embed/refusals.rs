//! Refused calls: the error code, and whether a number may be burned.

use bates::{Bates, Error, ErrorCode, Limits, Promise, Series};
use tempfile::tempdir;

use super::{PLAN, open};

async fn refusal(series: Series) -> (ErrorCode, String) {
    let folder = tempdir().unwrap();
    let refused = Bates::open(folder.path(), [series]).await.err().unwrap();
    assert!(!refused.may_burn());
    (refused.code(), refused.to_string())
}

#[tokio::test]
async fn an_invalid_series_is_refused_and_the_error_names_the_field() {
    let good = || Series::new("n", "{seq}");
    for (series, code, expected) in [
        (Series::new("No Name", "{seq}"), ErrorCode::BAD_NAME, "name"),
        (Series::new("n", "{seq"), ErrorCode::BAD_SERIES, "{seq"),
        (good().start(u64::MAX), ErrorCode::BAD_SERIES, "start: the maximum is"),
        (good().key("a:{b"), ErrorCode::BAD_SERIES, "key: "),
        (good().time_zone("Nowhere/Never"), ErrorCode::BAD_SERIES, "Nowhere/Never"),
        (good().reject("none"), ErrorCode::BAD_SERIES, "reject: "),
        (good().restrict([""]), ErrorCode::BAD_SERIES, "restrict: "),
        (good().shuffled().promise(Promise::Ordered), ErrorCode::BAD_SERIES, "shuffled"),
        (good().limits(Limits { lease_min: 0, ..Limits::default() }), ErrorCode::BAD_SERIES, "lease_min"),
    ] {
        let (found, message) = refusal(series).await;
        assert_eq!(found, code, "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn a_series_that_differs_from_its_pinned_definition_is_refused() {
    let folder = tempdir().unwrap();
    open(folder.path()).await.close().await.unwrap();
    let other = Series::new("document", "{project}-{type}-{seq}").start(1);
    let refused = Bates::open(folder.path(), [other]).await.err().unwrap();
    assert_eq!(refused.code(), ErrorCode::SERIES_PINNED, "{refused}");
    open(folder.path()).await;
}

#[tokio::test]
async fn a_bad_call_takes_no_number() {
    let folder = tempdir().unwrap();
    let bates = open(folder.path()).await;
    assert!(matches!(bates.series("nothing").err(), Some(Error::UnknownSeries(_))));
    let documents = bates.series("document").unwrap();
    let refused = documents.next().await.unwrap_err();
    assert_eq!((refused.code(), refused.may_burn()), (ErrorCode::BAD_SCOPE, false));
    let bad_scope = documents.scope([("project", "PROJ"), ("kind", "9012")]);
    assert_eq!(bad_scope.take(2).await.unwrap_err().code(), ErrorCode::BAD_SCOPE);
    assert_eq!(bad_scope.peek().await.unwrap_err().code(), ErrorCode::BAD_SCOPE);
    let documents = bad_scope.scope(PLAN);
    assert_eq!(documents.next().await.unwrap(), "PROJ-9012-1001");
}

#[tokio::test]
async fn the_last_numbers_of_a_space_are_issued_and_then_it_is_exhausted() {
    let folder = tempdir().unwrap();
    let bates = Bates::open(folder.path(), [Series::new("ten", "{seq:1}").start(0)]).await.unwrap();
    let ten = bates.series("ten").unwrap();
    assert_eq!(ten.take(7).await.unwrap().len(), 7);
    assert_eq!(ten.take(7).await.unwrap().len(), 3);
    let refused = ten.next().await.unwrap_err();
    assert_eq!((refused.code(), refused.may_burn()), (ErrorCode::EXHAUSTED, false), "{refused}");
    assert!(ten.try_next().is_err());
}
