//! The part of the conformance suite in which many callers come at once: what a store does for several together
//! must be what it would have done for each alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use bates_core::store::prelude::*;
use bates_core::{GrantError, GrantPurpose, GrantRequest, PositionRange, ScopeId};

use super::exercise::{DataSet, granted, next, open_pinned, scope_id, want};

pub async fn grants_of_concurrent_callers_are_disjoint_and_without_holes<D: DataSet>(data: &D) {
    let store = Arc::new(open_pinned(data).await);
    let callers: Vec<_> = (1..=50)
        .map(|count| {
            let store = store.clone();
            tokio::spawn(async move { granted(&*store, want(scope_id("a"), count)).await })
        })
        .collect();
    let mut leases = Vec::new();
    let mut versions = Vec::new();
    for caller in callers {
        let grant = caller.await.expect("a caller ends");
        leases.push(grant.range);
        versions.push(grant.version);
    }
    leases.sort();
    assert_eq!(leases[0].from(), 1001, "the first grant begins at the start");
    assert!(leases.windows(2).all(|pair| pair[0].to() == pair[1].from()), "{leases:?}");
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), 50, "every write has a version of its own");
}

/// Callers that wait together are served together, and still each as if it were alone.
pub async fn callers_of_many_scopes_at_once_get_each_its_own<D: DataSet>(data: &D) {
    let store = Arc::new(open_pinned(data).await);
    let purposes = [GrantPurpose::Hold, GrantPurpose::HandOut, GrantPurpose::Issue];
    let callers: Vec<_> = (0..300)
        .map(|caller| {
            let (store, at) = (store.clone(), scope_id(&format!("s{}", caller % 20)));
            let purpose = purposes[caller % 3];
            // Each scope has room for 100, and is asked for 15 times 7.
            let want = GrantRequest { purpose, end: 1_101, ..want(at.clone(), 7) };
            tokio::spawn(async move { (at, store.grant(want).await) })
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
    for (at, leases) in &mut granted {
        leases.sort();
        assert_eq!(leases[0].from(), 1001, "{at}");
        assert!(leases.windows(2).all(|pair| pair[0].to() == pair[1].from()), "{at}: {leases:?}");
        let end = leases[leases.len() - 1].to();
        assert!((1_099..=1_101).contains(&end), "{at}: what fits was granted: {leases:?}");
        assert_eq!(next(&*store, at.clone()).await, Some(end), "{at}");
    }
}
