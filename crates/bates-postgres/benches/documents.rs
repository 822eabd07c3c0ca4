//! `cargo xtask bench outbox`: documents per second of one node on a private PostgreSQL, with bodies of 1 KiB, with and
//! without keys, in one scope and in a hundred: first assigned, then claimed and settled.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bates_core::store::prelude::*;
use bates_core::{
    AssignRequest, ClaimRequest, Definition, DocumentContent, Idempotency, ScopeId, ScopeKey, Settlement,
    Verdict,
};
use bates_pattern::{Options, Pattern, Scope};
use bates_postgres::{Address, OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;
use uuid::Uuid;

/// Concurrent callers.
const CALLERS: u64 = 4_000;
const PHASE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() {
    for (scopes, is_keyed) in [(1, false), (1, true), (100, false), (100, true)] {
        let server = PrivatePostgres::start().unwrap();
        let address = Address::parse(&server.url()).unwrap();
        let store = PostgresStore::open(&address, Settings::default(), OpenMode::New).await.unwrap();
        store.pin(definition(), None).await.unwrap();
        let store = Arc::new(store);
        let (count, elapsed) = assign_documents(&store, scopes, is_keyed).await;
        let rate = |count: u64, elapsed: Duration| u128::from(count) * 1_000 / elapsed.as_millis().max(1);
        println!("{scopes:>3} scopes, keys: {is_keyed:<5}  assigned {:>7}/s", rate(count, elapsed));
        let (count, elapsed) = deliver_documents(&store).await;
        println!("                         delivered {:>6}/s", rate(count, elapsed));
    }
}

fn definition() -> Definition {
    Definition {
        series: "document".parse().unwrap(),
        template: "{scope}-{seq}".into(),
        parameters: "scope".into(),
        shuffled: false,
        start: 1,
        reset: "never".into(),
        time_zone: "UTC".into(),
        construction: 1,
        promise: None,
        rules: None,
    }
}

async fn assign_documents(store: &Arc<PostgresStore>, scopes: u64, is_keyed: bool) -> (u64, Duration) {
    let (started, count) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let pattern = Pattern::compile("{scope}-{seq}", Options::default()).unwrap();
    let callers = (0..CALLERS).map(|caller| {
        let (store, count) = (store.clone(), count.clone());
        let name = format!("s{}", caller % scopes);
        let scope = Arc::new(pattern.scope([("scope", &name)], None).unwrap());
        let scope_id = ScopeId {
            series: "document".parse().unwrap(),
            scope: ScopeKey::new([("scope", &*name)], None).unwrap(),
        };
        tokio::spawn(async move {
            while started.elapsed() < PHASE {
                store.assign(document(&scope_id, &scope, is_keyed)).await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    (count.load(Ordering::Relaxed), started.elapsed())
}

fn document(scope_id: &ScopeId, scope: &Arc<Scope>, is_keyed: bool) -> AssignRequest {
    let document_id = Uuid::now_v7();
    let key = || Idempotency { caller: "bench".into(), key: document_id.to_string().into(), digest: [1; 32] };
    AssignRequest {
        scope_id: scope_id.clone(),
        start: 1,
        end: 1 << 50,
        scopes_max: 1_000,
        promise: None,
        scope: scope.clone(),
        document_id,
        idempotency: is_keyed.then(key),
        only_repeats: false,
        content: DocumentContent::Document(format!("{{\"text\":\"{}\"}}", "x".repeat(1_012)).into()),
        caller: "bench".into(),
        audit_stamp: None,
    }
}

async fn deliver_documents(store: &PostgresStore) -> (u64, Duration) {
    let (started, mut count) = (Instant::now(), 0);
    while started.elapsed() < PHASE {
        let claim = ClaimRequest {
            series: "document".parse().unwrap(),
            limit: 500,
            stop_at_bytes: 1 << 30,
            ttl: Duration::from_mins(1),
        };
        let claims = store.claim(claim).await.unwrap();
        if claims.is_empty() {
            break;
        }
        let settled = claims.into_iter().map(|claimed| Settlement {
            document_id: claimed.document_id,
            attempt: claimed.attempt,
            verdict: Verdict::Delivered,
        });
        count += store.settle_claims(settled.collect()).await.unwrap();
    }
    (count, started.elapsed())
}
