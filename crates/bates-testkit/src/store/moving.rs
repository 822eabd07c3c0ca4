//! Moves one store to another: everything arrives, only one of the two stores serves, and an interrupted move is
//! finished by running it again.

use bates_core::{
    Actor, Channel, Definition, Departure, DescriptionChange, GrantPurpose, GrantRequest, MoveError,
    MoveMark, MovePage, MoveProgress, NamedStore, OperationFilter, OperationKind, OperationRecord, Promise,
    QuotaRequest, ScopeId, ScopeKey, SeriesName, Store, SystemRuntime, TokenChange, cancel_departure,
    mark_left, move_store,
};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::audit::{fill_records, read_filled_records};
use super::callers::token;
use super::client_leases::{check_client_leases, fill_client_leases};
use super::moving_documents::{check_documents, fill_documents, fill_gaps, list_documents};
use super::moving_pools::{check_adopted_and_pools, fill_adopted_and_pools, list_adopted};
use super::operations::{check_operations, fill_operations, operation};

const MOVER: Actor<'_> = Actor { caller: "mover", channel: Channel::Command };

/// Moves one store to another, which must be empty, and checks that numbering continues there. Returns the new store.
pub async fn exercise_move<A: Store, B: Store>(from: &A, to: B) -> B {
    fill(from).await;
    let answered = fill_documents(from).await;
    fill_gaps(from).await;
    fill_adopted_and_pools(from).await;
    fill_records(from).await;
    fill_operations(from).await;
    let token = TokenChange { name: "acme".into(), before: None, after: Some(token("acme", 1)) };
    let added = operation(OperationKind::TokenAdded, "acme", 9_999);
    assert_eq!(from.change_token(token, added).await, Ok(true));
    let draw = QuotaRequest { caller: "acme".into(), quota: 100, needed: 3, slice: 7 };
    assert_eq!(from.draw_quota(draw).await.expect("a draw").granted, 7);
    let held = fill_client_leases(from).await;
    let expected = [list_series(from).await, list_documents(from).await, list_adopted(from).await];
    let records = read_filled_records(from).await;
    from.raise_series_floor("short".parse().expect("a name"), 77).await.expect("the series exists");
    let departure = depart(from).await;
    let to = arrive(from, to, &departure).await;
    assert_eq!(to.series_floors().await, from.series_floors().await, "floors");
    assert_eq!(list_series(&to).await, expected[0], "series and scopes");
    assert_eq!(list_documents(&to).await, expected[1], "documents, keys and gaps");
    assert_eq!(list_adopted(&to).await, expected[2], "adopted positions");
    assert_eq!(read_filled_records(&to).await, records, "audit records");
    check_client_leases(&to, &held).await;
    assert_eq!(to.tokens().await, from.tokens().await, "tokens");
    assert_eq!(to.drawn_quotas().await, from.drawn_quotas().await, "quotas");
    check_chains(from, &to).await;
    check_operations(&to).await;
    assert_eq!(from.mark().await, Ok(Some(MoveMark::Left(departure.to_move("to")))));
    assert_eq!(to.mark().await, Ok(None));
    let next =
        to.grant(request("short", ScopeKey::new([], None).expect("a scope"), GrantPurpose::Hold)).await;
    assert_eq!(next.expect("a grant").range.from(), 5, "numbering continues at the old cursor");
    check_documents(&to, answered).await;
    check_adopted_and_pools(&to).await;
    check_move_is_over(from, &to, &departure).await;
    to
}

/// The chains go on in the new store, with one record of the move, however often it was interrupted.
async fn check_chains<A: Store, B: Store>(from: &A, to: &B) {
    let [old, new] = [from.chains().await, to.chains().await].map(|heads| heads.expect("heads"));
    let moved = OperationFilter { kind: Some(OperationKind::StoreMoved), ..OperationFilter::default() };
    let moved = to.operations(moved, None, 10).await.expect("records");
    let [record] = &*moved else { panic!("{moved:?}") };
    let OperationRecord { operation, chain, number, .. } = record;
    assert_eq!((&*operation.caller, operation.before.as_deref()), ("mover", Some("from")));
    for head in &new {
        let before = old.iter().find(|old| old.chain == head.chain).map_or(0, |old| old.number);
        let is_of_move = head.chain == *chain;
        assert_eq!(head.number, before + u64::from(is_of_move), "{head:?}");
        assert!(!is_of_move || *number == head.number, "{record:?}");
    }
}

/// Marks a store as left, and lets a second run take over from the first.
async fn depart<A: Store>(from: &A) -> Departure {
    let departure =
        mark_left(&SystemRuntime, MOVER, NamedStore::new(from, "from"), "to").await.expect("a departure");
    let elsewhere = mark_left(&SystemRuntime, MOVER, NamedStore::new(from, "from"), "elsewhere").await;
    assert!(matches!(elsewhere, Err(MoveError::LeftBefore { .. })), "one move at a time: {elsewhere:?}");
    let late = departure;
    let departure =
        mark_left(&SystemRuntime, MOVER, NamedStore::new(from, "from"), "to").await.expect("a departure");
    assert!(
        late.id == departure.id && late.run != departure.run && !departure.is_new,
        "the same move, another run"
    );
    cancel_departure(from, "to", &late).await.expect("a read");
    assert!(from.mark().await.expect("a read").is_some(), "a run that was taken over does not end the move");
    departure
}

/// A finished move cannot be repeated, and the new store accepts no more pages of it.
async fn check_move_is_over<A: Store, B: Store>(from: &A, to: &B, departure: &Departure) {
    let again = move_store(NamedStore::new(from, "from"), NamedStore::new(to, "to"), departure, |_| {}).await;
    assert!(
        matches!(again, Err(MoveError::LeftBefore { .. })),
        "a repeated move would overwrite newer cursors: {again:?}"
    );
    let late = to.import_page(departure.run, MovePage::Documents(Vec::new())).await;
    assert_eq!(late, Ok(false), "a late run writes no page into a store that serves");
    let leaving =
        mark_left(&SystemRuntime, MOVER, NamedStore::new(to, "to"), "from").await.expect("a departure");
    let back = move_store(NamedStore::new(to, "to"), NamedStore::new(from, "from"), &leaving, |_| {}).await;
    assert!(
        matches!(back, Err(MoveError::NotEmpty(_))),
        "a store that was left is not overwritten: {back:?}"
    );
    cancel_departure(to, "from", &leaving).await.expect("a mark");
    assert_eq!(to.mark().await, Ok(None), "a refused move leaves the old store unmarked");
}

/// Moves a store: the first run is interrupted after one page, the next after two, until a run finishes.
async fn arrive<A: Store, B: Store>(from: &A, to: B, departure: &Departure) -> B {
    let arriving = MoveMark::Arriving(departure.to_move("from"));
    assert_eq!(to.change_mark(None, Some(arriving)).await, Ok(true), "a mark of an interrupted move");
    let mut all = MoveProgress::default();
    for pages in 0.. {
        let (mut last, mut written) = (MoveProgress::default(), 0);
        let (interrupt, is_interrupted) = oneshot::channel();
        let mut interrupt = Some(interrupt);
        let moving =
            move_store(NamedStore::new(from, "from"), NamedStore::new(&to, "to"), departure, |moved| {
                (last, written) = (moved, written + 1);
                if written > pages
                    && let Some(interrupt) = interrupt.take()
                {
                    interrupt.send(()).expect("the move is under way");
                }
            });
        let ended = tokio::select! {
            biased;
            Ok(()) = is_interrupted => None,
            ended = moving => Some(ended),
        };
        let mark = to.mark().await.expect("a read");
        // The last write of an interrupted move may have been committed.
        if let (Some(Ok(_) | Err(MoveError::LeftBefore { .. })), None) = (&ended, &mark) {
            all = ended.and_then(Result::ok).unwrap_or(all);
            assert_eq!(
                all,
                MoveProgress { series: 5, scopes: 1_111, documents: 14, keys: 13, records: 2_345 }
            );
            assert!(pages > 12, "interrupted at {pages} pages");
            return to;
        }
        assert!(ended.is_none(), "{ended:?}");
        all = last;
        let other = to.import_page(Uuid::now_v7(), MovePage::Documents(Vec::new())).await;
        assert_eq!(other, Ok(false), "a page of another run is refused");
    }
    unreachable!("the loop has no end")
}

fn series(name: &str) -> SeriesName {
    name.parse().expect("a good name")
}

fn request(name: &str, scope: ScopeKey, purpose: GrantPurpose) -> GrantRequest {
    let scope_id = ScopeId { series: series(name), scope };
    GrantRequest {
        scope_id,
        count: 5,
        count_needed: 5,
        start: 0,
        end: 10_000,
        scopes_max: 10_000,
        purpose,
        promise: None,
        held_from: None,
    }
}

async fn fill<A: Store>(from: &A) {
    let definition = |name: &str, shuffled| Definition {
        series: series(name),
        template: "{seq:5}".into(),
        parameters: if shuffled { "" } else { "scope" }.into(),
        shuffled,
        start: 0,
        reset: "never".into(),
        time_zone: "UTC".into(),
        construction: 1,
        promise: Some(if shuffled { Promise::Unique } else { Promise::Gapless }),
        rules: None,
    };
    from.pin(definition("short", true), Some(vec![7; 32])).await.expect("a pin");
    from.pin(definition("invoice", false), None).await.expect("a pin");
    assert_eq!(
        from.describe(
            series("invoice"),
            DescriptionChange { after: Some("{}".into()), ..DescriptionChange::default() },
            None
        )
        .await,
        Ok(true)
    );
    from.grant(request("short", ScopeKey::new([], None).expect("a scope"), GrantPurpose::Hold))
        .await
        .expect("a grant");
    for scope in 0..1_101 {
        let scope = ScopeKey::new([("scope", &*scope.to_string())], None).expect("a scope");
        for purpose in [GrantPurpose::Issue, GrantPurpose::Hold] {
            from.grant(request("invoice", scope.clone(), purpose)).await.expect("a grant");
        }
    }
}

/// The series of a store with their descriptions, scopes and ledgers, as text.
async fn list_series<S: Store>(store: &S) -> Vec<String> {
    let mut listed = vec![format!("{:?}", store.descriptions().await.expect("a read"))];
    for (definition, key) in store.definitions().await.expect("a read") {
        let scopes = store.moved_scopes(definition.series.clone(), None, 10_000).await.expect("a read");
        for moved in scopes {
            let scope_id = ScopeId { series: definition.series.clone(), scope: moved.scope.clone() };
            let ledger = store.issued_ranges(scope_id).await.expect("a read");
            assert_eq!(ledger, moved.ledger);
            listed.push(format!("{} {moved:?}", definition.series.as_str()));
        }
        listed.push(format!("{definition:?} {key:?}"));
    }
    listed
}
