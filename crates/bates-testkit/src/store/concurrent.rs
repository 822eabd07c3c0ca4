//! The part of the conformance suite about concurrent callers: a store that combines requests must answer each as if
//! it came alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{GrantError, GrantPurpose, GrantRequest, PositionRange, ScopeId};

use super::exercise::{DataSet, grant, next, open_pinned, request, scope_id};

pub async fn grants_of_concurrent_callers_are_disjoint_and_without_holes<D: DataSet>(data: &D) {
    let store = Arc::new(open_pinned(data).await);
    let callers: Vec<_> = (1..=50)
        .map(|count| {
            let store = store.clone();
            tokio::spawn(async move { grant(&*store, request(scope_id("a"), count)).await })
        })
        .collect();
    let mut ranges = Vec::new();
    let mut versions = Vec::new();
    for caller in callers {
        let grant = caller.await.expect("a caller ends");
        ranges.push(grant.range);
        versions.push(grant.version);
    }
    ranges.sort();
    assert_eq!(ranges[0].from(), 1001, "the first grant begins at the start");
    assert!(ranges.windows(2).all(|pair| pair[0].to() == pair[1].from()), "{ranges:?}");
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), 50, "every write has its own version");
}

pub async fn concurrent_callers_of_many_scopes_get_disjoint_ranges<D: DataSet>(data: &D) {
    let store = Arc::new(open_pinned(data).await);
    let purposes = [GrantPurpose::Hold, GrantPurpose::HandOut, GrantPurpose::Issue];
    let callers: Vec<_> = (0..300)
        .map(|caller| {
            let (store, at) = (store.clone(), scope_id(&format!("s{}", caller % 20)));
            let purpose = purposes[caller % 3];
            // Each scope has 100 positions and gets 15 requests for 7.
            let request = GrantRequest { purpose, end: 1_101, ..request(at.clone(), 7) };
            tokio::spawn(async move { (at, store.grant(request).await) })
        })
        .collect();
    let mut granted: BTreeMap<ScopeId, Vec<PositionRange>> = BTreeMap::new();
    for caller in callers {
        match caller.await.expect("a caller ends") {
            (at, Ok(grant)) => granted.entry(at).or_default().push(grant.range),
            (_, Err(error)) => assert!(matches!(error, GrantError::Exhausted { left: 0..=2, .. }), "{error}"),
        }
    }
    assert_eq!(granted.len(), 20);
    for (at, ranges) in &mut granted {
        ranges.sort();
        assert_eq!(ranges[0].from(), 1001, "{at}");
        assert!(ranges.windows(2).all(|pair| pair[0].to() == pair[1].from()), "{at}: {ranges:?}");
        let end = ranges[ranges.len() - 1].to();
        assert!((1_099..=1_101).contains(&end), "{at}: the space is used to its end: {ranges:?}");
        assert_eq!(next(&*store, at.clone()).await, Some(end), "{at}");
    }
}
