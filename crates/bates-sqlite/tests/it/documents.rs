//! Documents in the embedded store, where it differs from the shared one: it uses the clock of the machine,
//! which may change while the store is closed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    ActionOutcome, AssignRequest, ClaimRequest, Definition, DocumentAction, DocumentContent, DocumentFilter,
    Idempotency, ScopeId, ScopeKey, Settlement, Verdict,
};
use bates_pattern::{Options, Pattern};
use bates_sqlite::{OpenMode, SqliteStore};
use tempfile::TempDir;
use uuid::Uuid;

const YEAR_MS: i64 = 365 * 86_400_000;

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, OpenMode::First).unwrap()
}

pub(crate) async fn open_pinned(folder: &Path) -> SqliteStore {
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
        rules: None,
    };
    store.pin(definition, None).await.unwrap();
    store
}

pub(crate) fn document(key: Option<&str>) -> AssignRequest {
    let pattern = Pattern::compile("{seq}", Options::default()).unwrap();
    let idempotency = key.map(|key| Idempotency { caller: "".into(), key: key.into(), digest: [1; 32] });
    AssignRequest {
        scope_id: ScopeId { series: "document".parse().unwrap(), scope: ScopeKey::new([], None).unwrap() },
        start: 1,
        end: 1_000,
        scopes_max: 10,
        promise: None,
        scope: Arc::new(pattern.scope::<&str, &str>([], None).unwrap()),
        document_id: Uuid::now_v7(),
        idempotency,
        only_repeats: false,
        content: DocumentContent::Document("{}".into()),
        caller: "test".into(),
        audit_stamp: None,
    }
}

fn claim() -> ClaimRequest {
    ClaimRequest {
        series: "document".parse().unwrap(),
        limit: 10,
        stop_at_bytes: 1 << 30,
        ttl: Duration::from_mins(1),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_set_back_while_the_store_was_closed_delays_no_document() {
    let folder = TempDir::new().unwrap();
    let store = open_pinned(folder.path()).await;
    for _ in 0..2 {
        store.assign(document(None)).await.unwrap();
    }
    let claimed = store.claim(ClaimRequest { limit: 1, ..claim() }).await.unwrap();
    let verdict = Verdict::RetryAfter(Duration::from_secs(2), "down".into());
    let failed = Settlement { document_id: claimed[0].document_id, attempt: claimed[0].attempt, verdict };
    store.settle_claims(vec![failed]).await.unwrap();
    drop(store);
    // Makes the clock of the earlier run a year ahead of the present one.
    let database = rusqlite::Connection::open(folder.path().join("bates.db")).unwrap();
    database.execute("UPDATE document SET due_at = due_at + 365 * 86400000", []).unwrap();
    drop(database);
    assert_eq!(open(folder.path()).claim(claim()).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_waits_for_its_next_attempt_still_waits_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let store = open_pinned(folder.path()).await;
    store.assign(document(None)).await.unwrap();
    let claimed = store.claim(claim()).await.unwrap();
    // The longest delay after a first attempt.
    let verdict = Verdict::RetryAfter(Duration::from_millis(2_500), "down".into());
    store
        .settle_claims(vec![Settlement {
            document_id: claimed[0].document_id,
            attempt: claimed[0].attempt,
            verdict,
        }])
        .await
        .unwrap();
    drop(store);
    assert_eq!(open(folder.path()).claim(claim()).await.unwrap(), []);
}

/// The clock was set forward or back by a year, or the store was closed for a year.
#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_keeps_its_remaining_time_over_a_restart_in_another_year() {
    for passed_ms in [YEAR_MS, -YEAR_MS] {
        let folder = TempDir::new().unwrap();
        let store = open_pinned(folder.path()).await;
        let ttl = Duration::from_mins(15);
        let reserved = AssignRequest { content: DocumentContent::Reservation(ttl), ..document(None) };
        let token = store.assign(reserved).await.unwrap().document_id;
        drop(store);
        // Shifts all stored times, so that this much time has passed since.
        let database = rusqlite::Connection::open(folder.path().join("bates.db")).unwrap();
        for sql in ["UPDATE document SET due_at = due_at - ?", "UPDATE progress SET seen_at = seen_at - ?"] {
            database.execute(sql, [passed_ms]).unwrap();
        }
        drop(database);
        let store = open(folder.path());
        assert_eq!(
            store.expire_reservations(10).await,
            Ok(0),
            "time while the store is closed does not count"
        );
        let filter = DocumentFilter { document_id: Some(token), ..DocumentFilter::default() };
        let due = store.documents(filter, None, 1).await.unwrap()[0].due.unwrap();
        let left = due.duration_since(jiff::Timestamp::now());
        assert!(left <= ttl.try_into().unwrap() && left.as_secs() > 800, "{left:?}");
        assert!(matches!(
            store.apply_action(token, DocumentAction::Confirm, None).await,
            Ok(ActionOutcome::Done(_))
        ));
    }
}

/// The check for expired reservations runs every second. It writes nothing while there are no reservations,
/// and once a minute while there are some.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_open_reservations_records_once_a_minute_that_it_was_running() {
    let folder = TempDir::new().unwrap();
    let store = open_pinned(folder.path()).await;
    let database = rusqlite::Connection::open(folder.path().join("bates.db")).unwrap();
    let commits =
        || -> i64 { database.query_row("SELECT commits FROM progress", [], |row| row.get(0)).unwrap() };
    let pass_a_minute = || database.execute("UPDATE progress SET seen_at = seen_at - 61000", []).unwrap();
    let commits_of_check = async || {
        let before = commits();
        store.expire_reservations(10).await.unwrap();
        commits() - before
    };
    pass_a_minute();
    assert_eq!(commits_of_check().await, 0);
    let ttl = Duration::from_mins(15);
    store
        .assign(AssignRequest { content: DocumentContent::Reservation(ttl), ..document(None) })
        .await
        .unwrap();
    assert_eq!(commits_of_check().await, 0);
    pass_a_minute();
    assert_eq!((commits_of_check().await, commits_of_check().await), (1, 0));
}
