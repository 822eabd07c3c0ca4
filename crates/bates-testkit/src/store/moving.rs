//! What every store that can be moved must do: everything arrives, nothing is served twice, and a move that was
//! interrupted is finished by doing it again.

use bates_core::{
    Definition, Departure, GrantPurpose, GrantRequest, MoveError, MoveMark, MovePage, MoveProgress,
    NamedStore, Promise, ScopeId, ScopeKey, SeriesName, Store, SystemRuntime, cancel_departure, mark_left,
    move_store,
};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::audit::{fill_records, told_of_records};
use super::carried::{carried_goes_on, fill_carried, told_of_carried};
use super::client_leases::{client_leases_go_on, fill_client_leases};
use super::moved::{documents_go_on, fill_documents, fill_gaps, told_of_documents};

/// Moves one store to another, which must be empty, and checks that numbering goes on there. Answers with the new one.
pub async fn exercise_move<A: Store, B: Store>(from: &A, to: B) -> B {
    fill(from).await;
    let answered = fill_documents(from).await;
    fill_gaps(from).await;
    fill_carried(from).await;
    fill_records(from).await;
    let held = fill_client_leases(from).await;
    let expected = [told(from).await, told_of_documents(from).await, told_of_carried(from).await];
    let recorded = told_of_records(from).await;
    let departure = departed(from).await;
    let to = arrived(from, to, &departure).await;
    assert_eq!(told(&to).await, expected[0], "everything is as it was");
    assert_eq!(told_of_documents(&to).await, expected[1], "documents, keys and gaps as well");
    assert_eq!(told_of_carried(&to).await, expected[2], "and what was set aside");
    assert_eq!(told_of_records(&to).await, recorded, "and who took what");
    client_leases_go_on(&to, &held).await;
    assert_eq!(from.mark().await, Ok(Some(MoveMark::Left(departure.to_move("to")))));
    assert_eq!(to.mark().await, Ok(None));
    let next = to.grant(want("short", ScopeKey::new([], None).expect("a scope"), GrantPurpose::Hold)).await;
    assert_eq!(next.expect("a grant").range.from(), 5, "it goes on where the old one was");
    documents_go_on(&to, answered).await;
    carried_goes_on(&to).await;
    is_over(from, &to, &departure).await;
    to
}

/// Marks a store as left, by a run that is taken over by another.
async fn departed<A: Store>(from: &A) -> Departure {
    let departure =
        mark_left(&SystemRuntime, NamedStore::new(from, "from"), "to").await.expect("a departure");
    let elsewhere = mark_left(&SystemRuntime, NamedStore::new(from, "from"), "elsewhere").await;
    assert!(matches!(elsewhere, Err(MoveError::LeftBefore { .. })), "one move at a time: {elsewhere:?}");
    let late = departure;
    let departure =
        mark_left(&SystemRuntime, NamedStore::new(from, "from"), "to").await.expect("a departure");
    assert!(
        late.id == departure.id && late.run != departure.run && !departure.is_new,
        "the same move, another run"
    );
    cancel_departure(from, "to", &late).await.expect("a read");
    assert!(from.mark().await.expect("a read").is_some(), "a run that was taken over does not end the move");
    departure
}

/// A move that is over is not done again, and the new store takes nothing more of it.
async fn is_over<A: Store, B: Store>(from: &A, to: &B, departure: &Departure) {
    let again = move_store(NamedStore::new(from, "from"), NamedStore::new(to, "to"), departure, |_| {}).await;
    assert!(
        matches!(again, Err(MoveError::LeftBefore { .. })),
        "what was issued since is not written over: {again:?}"
    );
    let late = to.import_page(departure.run, MovePage::Documents(Vec::new())).await;
    assert_eq!(late, Ok(false), "a run that is late writes no page into a store that serves");
    let leaving = mark_left(&SystemRuntime, NamedStore::new(to, "to"), "from").await.expect("a departure");
    let back = move_store(NamedStore::new(to, "to"), NamedStore::new(from, "from"), &leaving, |_| {}).await;
    assert!(
        matches!(back, Err(MoveError::NotEmpty(_))),
        "a store that was left is not written over: {back:?}"
    );
    cancel_departure(to, "from", &leaving).await.expect("a mark");
    assert_eq!(to.mark().await, Ok(None), "a move that was refused leaves the old store as it was");
}

/// Moves a store, interrupted after each page that is written, and begun again.
async fn arrived<A: Store, B: Store>(from: &A, to: B, departure: &Departure) -> B {
    let arriving = MoveMark::Arriving(departure.to_move("from"));
    assert_eq!(to.change_mark(None, Some(arriving)).await, Ok(true), "as if it was interrupted");
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
        // The last write of a move that was interrupted may have come through.
        if let (Some(Ok(_) | Err(MoveError::LeftBefore { .. })), None) = (&ended, &mark) {
            all = ended.and_then(Result::ok).unwrap_or(all);
            assert_eq!(
                all,
                MoveProgress { series: 5, scopes: 1_111, documents: 14, keys: 11, records: 2_345 }
            );
            assert!(pages > 12, "interrupted at {pages} pages");
            return to;
        }
        assert!(ended.is_none(), "{ended:?}");
        all = last;
        let other = to.import_page(Uuid::now_v7(), MovePage::Documents(Vec::new())).await;
        assert_eq!(other, Ok(false), "no page of another run is taken");
    }
    unreachable!("there is no end of numbers")
}

fn series(name: &str) -> SeriesName {
    name.parse().expect("a good name")
}

fn want(name: &str, scope: ScopeKey, purpose: GrantPurpose) -> GrantRequest {
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
    assert_eq!(from.describe(series("invoice"), None, Some("{}".into())).await, Ok(true));
    from.grant(want("short", ScopeKey::new([], None).expect("a scope"), GrantPurpose::Hold))
        .await
        .expect("a grant");
    for scope in 0..1_101 {
        let scope = ScopeKey::new([("scope", &*scope.to_string())], None).expect("a scope");
        for purpose in [GrantPurpose::Issue, GrantPurpose::Hold] {
            from.grant(want("invoice", scope.clone(), purpose)).await.expect("a grant");
        }
    }
}

/// Everything that a store says of itself.
async fn told<S: Store>(store: &S) -> Vec<String> {
    let mut told = vec![format!("{:?}", store.descriptions().await.expect("a read"))];
    for (definition, key) in store.definitions().await.expect("a read") {
        let scopes = store.moved_scopes(definition.series.clone(), None, 10_000).await.expect("a read");
        for adopted in scopes {
            let scope_id = ScopeId { series: definition.series.clone(), scope: adopted.scope.clone() };
            let ledger = store.issued_ranges(scope_id).await.expect("a read");
            assert_eq!(ledger, adopted.ledger);
            told.push(format!("{} {adopted:?}", definition.series.as_str()));
        }
        told.push(format!("{definition:?} {key:?}"));
    }
    told
}
