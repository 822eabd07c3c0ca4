//! Decisions for requests that wait together.

use std::sync::Arc;

use bates_pattern::{Options, Pattern, Position, Reject};
use uuid::Uuid;

use super::super::batch_state::SEARCHED_MAX;
use super::super::{KeyState, SeriesBefore};
use super::*;
use crate::document::{DocumentContent, DocumentState, Idempotency};
use crate::gap::MissingRange;
use crate::range::RangeSet;
use crate::scope::ScopeKey;

fn scope_id() -> ScopeId {
    ScopeId { series: "invoice".parse().unwrap(), scope: ScopeKey::new([], None).unwrap() }
}

fn positions<const N: usize>(values: [u64; N]) -> Vec<Position> {
    values.into_iter().map(|value| Position::new(value).unwrap()).collect()
}

fn grant(count: u64, purpose: GrantPurpose) -> Request {
    Request::Grant(GrantRequest {
        scope_id: scope_id(),
        count,
        count_needed: count,
        start: 1,
        end: 101,
        scopes_max: 2,
        purpose,
        promise: None,
        held_from: Some(7),
    })
}

fn range(from: u64, to: u64) -> PositionRange {
    PositionRange::new(from, to).unwrap()
}

fn release(from: u64, to: u64, version: u64) -> Request {
    let (range, lost) = (range(from, to), vec![range(1, 3)]);
    Request::Release(ReleaseRequest { scope_id: scope_id(), range, version, lost })
}

fn missing(from: u64, to: u64, reason: GapReason) -> MissingRange {
    MissingRange { range: range(from, to), reason }
}

/// A scope whose cursor stands here.
fn at(next: u64, version: u64) -> ScopeBefore {
    ScopeBefore { cursor: Some(Cursor { next, version }), ..ScopeBefore::default() }
}

/// A new scope of a series that has this many others.
fn new(scopes: u64) -> ScopeBefore {
    ScopeBefore { series: Some(SeriesBefore { scopes, start: 1, floor: 0 }), ..ScopeBefore::default() }
}

fn decided(before: &ScopeBefore, requests: &[Request]) -> Decision {
    decide(before, &scope_id(), requests, &mut BatchState::default())
}

#[test]
fn requests_that_wait_together_are_served_one_after_the_other() {
    let requests = [
        grant(3, GrantPurpose::Issue),
        grant(2, GrantPurpose::Issue),
        grant(5, GrantPurpose::HandOut),
        grant(32, GrantPurpose::Hold),
    ];
    let Decision { outcomes, change } = decided(&new(0), &requests);
    let granted = [range(1, 4), range(4, 6), range(6, 11), range(11, 43)].into_iter().zip(1..);
    let granted = granted.map(|(range, version)| Grant { range, version, adopted: vec![] });
    assert_eq!(outcomes, granted.map(|grant| Outcome::Grant(Ok(grant))).collect::<Vec<_>>());
    assert_eq!((change.cursor, change.is_new), (Some(Cursor { next: 43, version: 4 }), true));
    assert_eq!((change.issued, change.held), (vec![range(1, 6)], vec![range(11, 43)]));
    assert_eq!(change.held_from, Some(7));
}

#[test]
fn positions_for_a_pool_do_not_count_as_held_in_memory() {
    let requests = [5, 5, 200].map(|count| grant(count, GrantPurpose::Pool));
    let change = decided(&at(11, 3), &requests).change;
    assert_eq!(change.pooled, [range(11, 16), range(16, 21), range(21, 101)], "a part is useful");
    assert_eq!((change.held, change.issued, change.used_to), (vec![], vec![], None));
}

#[test]
fn a_request_that_does_not_fit_is_refused_and_later_ones_are_served() {
    let requests = [
        grant(7, GrantPurpose::Issue),
        grant(4, GrantPurpose::Issue),
        grant(9, GrantPurpose::Hold),
        grant(1, GrantPurpose::Hold),
    ];
    let Decision { outcomes, change } = decided(&at(95, 7), &requests);
    let refused = |left| Outcome::Grant(Err(GrantError::Exhausted { left, held_elsewhere: false }));
    assert_eq!((&outcomes[0], &outcomes[3]), (&refused(6), &refused(0)));
    assert_eq!((change.issued, change.held), (vec![range(95, 99)], vec![range(99, 101)]));
    assert_eq!(change.cursor, Some(Cursor { next: 101, version: 9 }), "a refusal writes nothing");
}

#[test]
fn a_scope_too_many_and_a_series_that_was_never_pinned_write_nothing() {
    let request = [grant(1, GrantPurpose::Hold)];
    let full = decided(&new(2), &request);
    assert_eq!(full.outcomes, [Outcome::Grant(Err(GrantError::TooManyScopes(2)))]);
    let unknown = decided(&ScopeBefore::default(), &request);
    assert!(matches!(unknown.outcomes[0], Outcome::Grant(Err(GrantError::Store(_)))));
    assert!(full.change.is_empty() && unknown.change.is_empty());
}

#[test]
fn a_range_is_released_only_where_its_holder_left_the_cursor() {
    let requests = [release(10, 33, 1), release(10, 33, 1), grant(5, GrantPurpose::Hold)];
    let Decision { outcomes, change } = decided(&ScopeBefore { held_from: Some(9), ..at(33, 1) }, &requests);
    assert_eq!(outcomes[0], Outcome::Release(Ok(ReleaseOutcome::Returned)));
    assert_eq!(outcomes[1], Outcome::Release(Ok(ReleaseOutcome::Gap)), "not twice");
    assert_eq!(change.cursor, Some(Cursor { next: 15, version: 3 }), "released positions are granted again");
    assert_eq!((change.released_to, change.held, change.used_to), (Some(33), vec![range(10, 15)], Some(7)));
    let lost = [(1, 3), (1, 3), (10, 33)].map(|(from, to)| missing(from, to, GapReason::LeaseLost));
    assert_eq!(change.lost, lost, "a range that cannot go back is lost");
}

#[test]
fn a_release_ends_the_held_range_unless_it_was_granted_later() {
    let held = |from| ScopeBefore { held_from: Some(from), ..at(64, 9) };
    assert_eq!(decided(&held(10), &[release(20, 33, 1)]).change.held_from, None);
    assert_eq!(decided(&held(33), &[release(20, 33, 1)]).change.held_from, Some(33), "a later holder's");
}

#[test]
fn the_next_move_of_the_cursor_loses_the_positions_of_a_crashed_process_once() {
    let crashed = RangeSet::of([range(5, 9)]);
    let before = ScopeBefore { crashed, ..at(9, 2) };
    let change = decided(&before, &[grant(1, GrantPurpose::HandOut), grant(1, GrantPurpose::HandOut)]).change;
    assert_eq!(change.lost, [missing(5, 9, GapReason::CrashSkip)]);
    let refused = decided(&before, &[grant(200, GrantPurpose::HandOut)]);
    assert!(refused.change.is_empty(), "a refusal writes nothing");
}

#[test]
fn a_floor_loses_the_positions_it_passes_and_a_lower_one_changes_nothing() {
    let requests =
        [Request::RaiseFloor(20, None), Request::RaiseFloor(15, None), grant(1, GrantPurpose::Issue)];
    let Decision { outcomes, change } = decided(&at(9, 2), &requests);
    let raised = Cursor { next: 20, version: 3 };
    assert_eq!(outcomes[..2], [Outcome::RaiseFloor(Ok(raised)), Outcome::RaiseFloor(Ok(raised))]);
    assert_eq!(change.lost, [missing(9, 20, GapReason::FloorRaised)]);
    assert_eq!((change.issued, change.cursor), (vec![range(20, 21)], Some(Cursor { next: 21, version: 4 })));
    let new = decided(&new(7), &[Request::RaiseFloor(5, None)]).change;
    assert_eq!((new.is_new, new.lost), (true, vec![missing(1, 5, GapReason::FloorRaised)]));
    let unknown = decided(&ScopeBefore::default(), &[Request::RaiseFloor(5, None)]).outcomes;
    assert_eq!(unknown, [Outcome::RaiseFloor(Err(StoreError::UnknownSeries("invoice".into())))]);
}

#[test]
fn adopted_positions_are_never_granted_from_the_same_batch_on() {
    let requests = [
        Request::Adopt(positions([3, 9, 11, 12]), None),
        release(8, 9, 2),
        grant(2, GrantPurpose::HandOut),
        grant(3, GrantPurpose::Hold),
    ];
    let Decision { outcomes, change } = decided(&at(9, 2), &requests);
    assert_eq!(outcomes[0], Outcome::Adopt(Ok(1)), "one of them was granted before");
    assert_eq!(outcomes[1], Outcome::Release(Ok(ReleaseOutcome::Gap)), "it could hold adopted positions");
    let short = Outcome::Grant(Err(GrantError::Exhausted { left: 1, held_elsewhere: false }));
    assert_eq!(outcomes[2], short, "only position 10 is free before the next adopted one");
    let spanned = Grant { range: range(9, 15), version: 4, adopted: positions([9, 11, 12]) };
    assert_eq!(outcomes[3], Outcome::Grant(Ok(spanned)), "a held range spans them");
    assert_eq!((change.adopted, change.resets_pool_server), (positions([3, 9, 11, 12]), true));
}

#[test]
fn a_node_that_knows_an_older_promise_is_refused() {
    let before = ScopeBefore { promise: Some(Promise::Gapless), ..at(5, 1) };
    let mut request = grant(1, GrantPurpose::Hold);
    if let Request::Grant(request) = &mut request {
        request.promise = Some(Promise::Unique);
    }
    let Decision { outcomes, change } = decided(&before, &[request]);
    let refused = StoreError::PromiseChanged { series: "invoice".into(), pinned: Promise::Gapless };
    assert_eq!((outcomes, change.is_empty()), (vec![Outcome::Grant(Err(refused.into()))], true));
}

fn document(key: &str, digest: u8, end: u64) -> AssignRequest {
    let pattern = Pattern::compile("I-{seq}", Options::default()).unwrap();
    AssignRequest {
        scope_id: scope_id(),
        start: 1,
        end,
        scopes_max: 2,
        promise: None,
        scope: Arc::new(pattern.scope::<&str, &str>([], None).unwrap()),
        document_id: Uuid::now_v7(),
        idempotency: Some(Idempotency { caller: "c".into(), key: key.into(), digest: [digest; 32] }),
        only_repeats: false,
        content: DocumentContent::Document("{}".into()),
        caller: "test".into(),
        audit_stamp: None,
    }
}

fn keys(documents: &[AssignRequest], states: Vec<KeyState>) -> BatchState {
    let mut keys = BatchState::default();
    for document in documents {
        keys.add_key(document);
    }
    keys.with_states(states).unwrap()
}

fn assignment(
    before: &ScopeBefore,
    documents: &[AssignRequest],
    keys: &mut BatchState,
) -> (Vec<Result<Assignment, AssignError>>, ScopeChange) {
    let requests = documents.iter().map(|assign| Request::Assign(Box::new(assign.clone())));
    let Decision { outcomes, change } = decide(before, &scope_id(), &requests.collect::<Vec<_>>(), keys);
    (outcomes.into_iter().map(Outcome::into_assign).collect(), change)
}

#[test]
fn a_key_twice_in_a_batch_takes_one_position() {
    let documents = [document("k", 1, 9), document("other", 1, 9), document("k", 1, 9), document("k", 2, 9)];
    let mut keys = keys(&documents, vec![KeyState::New, KeyState::New]);
    let (answers, change) = assignment(&new(0), &documents, &mut keys);
    let first = answers[0].clone().unwrap();
    assert_eq!((&*first.number, first.is_new), ("I-1", true));
    assert_eq!(answers[2], Ok(Assignment { is_new: false, ..first }), "the same number, and not a new one");
    assert_eq!(answers[3], Err(AssignError::KeyReused));
    assert_eq!(change.issued, [range(1, 3)]);
    assert!(keys.unused().is_empty() && keys.reassigned().is_empty());
}

#[test]
fn a_request_for_an_earlier_answer_leaves_its_key_unused() {
    let documents = [
        AssignRequest { only_repeats: true, ..document("k", 1, 9) },
        AssignRequest { only_repeats: true, ..document("later", 1, 9) },
        document("later", 1, 9),
        AssignRequest { only_repeats: true, ..document("later", 1, 9) },
    ];
    let mut keys = keys(&documents, vec![KeyState::New, KeyState::New]);
    let (answers, change) = assignment(&new(0), &documents, &mut keys);
    assert_eq!(answers[..2], [Err(AssignError::KeyUnused), Err(AssignError::KeyUnused)]);
    assert_eq!(answers[3].as_ref().map(|again| again.is_new), Ok(false));
    assert_eq!((change.issued, keys.unused().len()), (vec![range(1, 2)], 1));
}

#[test]
fn a_used_key_is_answered_where_the_scope_is_exhausted_or_one_too_many() {
    let document = document("k", 1, 3);
    let before = Assignment {
        document_id: Uuid::nil(),
        position: Position::MIN,
        number: "I-1".into(),
        state: DocumentState::Dead,
        is_new: true,
    };
    for scope in [at(3, 2), new(2)] {
        let mut keys = keys(std::slice::from_ref(&document), vec![KeyState::Used([1; 32], before.clone())]);
        let (answers, change) = assignment(&scope, std::slice::from_ref(&document), &mut keys);
        assert_eq!(answers, [Ok(Assignment { is_new: false, ..before.clone() })]);
        assert_eq!((change.cursor, keys.unused().len()), (None, 0), "and takes no position");
    }
}

#[test]
fn a_key_whose_document_was_removed_takes_no_number_and_is_not_to_be_retried() {
    let document = document("k", 1, 9);
    let mut keys = keys(std::slice::from_ref(&document), vec![KeyState::Lost]);
    let (answers, change) = assignment(&new(0), std::slice::from_ref(&document), &mut keys);
    let lost = StoreError::KeyLost { series: "invoice".into(), key: "k".into() };
    assert_eq!(answers, [Err(AssignError::from(lost.clone()))]);
    assert!(change.issued.is_empty());
    let code = crate::IssueError::from_grant(&scope_id(), 1, 9, lost.into()).code();
    assert_eq!((code, code.http_status(), code.may_burn()), (crate::ErrorCode::UNKNOWN_DOCUMENT, 404, false));
}

/// The scope has no room for the first request with the key, but for the next.
#[test]
fn a_key_whose_first_request_is_refused_goes_to_the_next_or_is_removed() {
    let documents = [document("k", 1, 5), document("k", 2, 9), document("gone", 1, 5)];
    let mut keys = keys(&documents, vec![KeyState::New, KeyState::New]);
    let (answers, _) = assignment(&at(5, 4), &documents, &mut keys);
    assert_eq!(answers[0], Err(AssignError::Grant(GrantError::Exhausted { left: 0, held_elsewhere: false })));
    assert_eq!(answers[1].as_ref().map(|assignment| assignment.position.value()), Ok(5));
    let [(key, used)] = &*keys.reassigned() else { panic!("one key was reused") };
    assert_eq!((&*key.text, used.digest, used.document_id), ("k", [2; 32], documents[1].document_id));
    assert_eq!(keys.unused().iter().map(|key| &*key.text).collect::<Vec<_>>(), ["gone"]);
}

#[test]
fn a_key_that_the_store_does_not_know_takes_nothing() {
    let (answers, change) = assignment(&new(0), &[document("k", 1, 9)], &mut BatchState::default());
    assert!(answers[0].is_err() && change.is_empty());
}

/// One batch must not search for long: all others wait for it.
#[test]
fn a_search_past_rejected_positions_goes_on_in_the_next_batch() {
    let reject = Reject::default().with_restricted(&["0"]).unwrap();
    let pattern = Pattern::compile("{seq:6}", Options { reject, ..Options::default() }).unwrap();
    let mut first = document("k", 1, 1_000_000);
    first.scope = Arc::new(pattern.scope::<&str, &str>([], None).unwrap());
    let documents = [first.clone(), AssignRequest { idempotency: None, ..first.clone() }];
    let mut before = new(0);
    for batch in 1.. {
        let mut keys = keys(&documents, vec![KeyState::New]);
        let (answers, change) = assignment(&before, &documents, &mut keys);
        let next = change.cursor.unwrap().next;
        if let [Ok(one), Ok(other)] = &*answers {
            assert_eq!((&*one.number, &*other.number), ("111111", "111112"));
            assert_eq!(change.issued, [range(111_111, 111_113)]);
            assert_eq!(batch, 4, "three batches pass a third each");
            return;
        }
        assert!(answers.iter().all(|answer| matches!(answer, Err(AssignError::Rejected { .. }))));
        assert_eq!(keys.unused().len(), 1, "the key is not used yet");
        assert!(change.issued.is_empty() && change.lost.is_empty(), "rejected positions are no gaps");
        let passed = next - before.cursor.map_or(1, |cursor| cursor.next);
        assert!((1..=SEARCHED_MAX + 2).contains(&passed), "{passed} positions in one batch");
        before = at(next, change.cursor.unwrap().version);
    }
}
