//! Documents in the embedded store, where it differs from the shared one: its clock is that of the machine, and it can
//! be opened and looked at while nobody serves it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bates_core::{
    Assign, Claim, Content, Definition, Idempotency, Outbox as _, Place, ScopeKey, Settlement, Store as _,
    Verdict,
};
use bates_pattern::{Options, Pattern};
use bates_sqlite::{Opening, SqliteStore};
use tempfile::TempDir;
use uuid::Uuid;

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, Opening::First).unwrap()
}

async fn opened(folder: &Path) -> SqliteStore {
    let store = open(folder);
    let definition = Definition {
        series: "document".parse().unwrap(),
        template: "{seq}".into(),
        parameters: "".into(),
        shuffled: false,
        start: 1,
        reset: "never".into(),
        time_zone: "UTC".into(),
        construction: 1,
        promise: None,
    };
    store.pin(definition, None).await.unwrap();
    store
}

fn document(key: Option<&str>) -> Assign {
    let pattern = Pattern::compile("{seq}", Options::default()).unwrap();
    let idempotency = key.map(|key| Idempotency { caller: "".into(), key: key.into(), digest: [1; 32] });
    Assign {
        place: Place { series: "document".parse().unwrap(), scope: ScopeKey::new([], None).unwrap() },
        start: 1,
        end: 1_000,
        scopes_max: 10,
        promise: None,
        scope: Arc::new(pattern.scope::<&str, &str>([], None).unwrap()),
        event: Uuid::now_v7(),
        idempotency,
        content: Content::Document("{}".into()),
        audit: None,
    }
}

fn claim() -> Claim {
    Claim { series: "document".parse().unwrap(), limit: 10, bytes: 1 << 30, lasts: Duration::from_mins(1) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_set_back_while_nobody_served_holds_up_no_document() {
    let folder = TempDir::new().unwrap();
    let store = opened(folder.path()).await;
    for _ in 0..2 {
        store.assign(document(None)).await.unwrap();
    }
    let one = store.claim(Claim { limit: 1, ..claim() }).await.unwrap();
    let again = Verdict::Again(Duration::from_secs(2), "down".into());
    let failed = Settlement { event: one[0].event, attempt: one[0].attempt, verdict: again };
    store.settle(vec![failed]).await.unwrap();
    drop(store);
    // As if all of it had been written a year later.
    let database = rusqlite::Connection::open(folder.path().join("bates.db")).unwrap();
    database.execute("UPDATE document SET due_at = due_at + 365 * 86400000", []).unwrap();
    drop(database);
    assert_eq!(open(folder.path()).claim(claim()).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_waits_for_its_next_try_still_waits_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let store = opened(folder.path()).await;
    store.assign(document(None)).await.unwrap();
    let one = store.claim(claim()).await.unwrap();
    // The longest that a first try is answered with.
    let again = Verdict::Again(Duration::from_millis(2_500), "down".into());
    store
        .settle(vec![Settlement { event: one[0].event, attempt: one[0].attempt, verdict: again }])
        .await
        .unwrap();
    drop(store);
    assert_eq!(open(folder.path()).claim(claim()).await.unwrap(), []);
}
