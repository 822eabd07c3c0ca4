//! What is reckoned of calls that wait together.

use std::sync::Arc;

use bates_core::{Content, Idempotency, ScopeKey, State};
use bates_pattern::{Options, Pattern};
use uuid::Uuid;

use super::super::keys::Known;

use super::*;

fn place() -> Place {
    Place { series: "invoice".parse().unwrap(), scope: ScopeKey::new([], None).unwrap() }
}

fn ask(count: u64, purpose: Purpose) -> Ask {
    Ask::Grant(Want {
        place: place(),
        count,
        least: count,
        start: 1,
        end: 101,
        scopes_max: 2,
        purpose,
        promise: None,
        held_from: Some(7),
    })
}

fn lease(from: u64, to: u64) -> Lease {
    Lease::new(from, to).unwrap()
}

#[test]
fn calls_that_wait_together_are_served_one_behind_the_other() {
    let asks =
        [ask(3, Purpose::Issue), ask(2, Purpose::Issue), ask(5, Purpose::HandOut), ask(32, Purpose::Lease)];
    let reckoned = reckon((Found::New { scopes: 0 }, None), &Aside::default(), &asks, &mut Keys::default());
    let granted =
        |from, to, version| Outcome::Grant(Ok(Grant { lease: lease(from, to), version, aside: vec![] }));
    let expected = [granted(1, 4, 1), granted(4, 6, 2), granted(6, 11, 3), granted(11, 43, 4)];
    assert_eq!(reckoned.outcomes, expected);
    assert_eq!(reckoned.moved, Some(Cursor { next: 43, version: 4 }));
    assert_eq!((reckoned.issued, reckoned.leased), (vec![lease(1, 6)], vec![lease(11, 43)]));
}

#[test]
fn what_is_granted_to_a_pool_is_apart_from_what_the_node_holds() {
    let found = Found::Cursor(Cursor { next: 11, version: 3 });
    let asks = [ask(5, Purpose::Pool), ask(5, Purpose::Pool), ask(200, Purpose::Pool)];
    let reckoned = reckon((found, None), &Aside::default(), &asks, &mut Keys::default());
    assert_eq!(reckoned.pooled, [lease(11, 16), lease(16, 21), lease(21, 101)], "a part is of use");
    assert_eq!((reckoned.leased, reckoned.issued, reckoned.used_to), (vec![], vec![], None));
}

#[test]
fn who_does_not_fit_is_refused_and_who_comes_behind_still_served() {
    let found = Found::Cursor(Cursor { next: 95, version: 7 });
    let asks =
        [ask(7, Purpose::Issue), ask(4, Purpose::Issue), ask(9, Purpose::Lease), ask(1, Purpose::Lease)];
    let reckoned = reckon((found, None), &Aside::default(), &asks, &mut Keys::default());
    let refused = |left| Outcome::Grant(Err(GrantError::Exhausted { left, elsewhere: false }));
    assert_eq!((&reckoned.outcomes[0], &reckoned.outcomes[3]), (&refused(6), &refused(0)));
    assert_eq!((reckoned.issued, reckoned.leased), (vec![lease(95, 99)], vec![lease(99, 101)]));
    assert_eq!(reckoned.moved, Some(Cursor { next: 101, version: 9 }), "a refusal writes nothing");
}

#[test]
fn a_scope_too_many_and_a_series_never_pinned_write_nothing() {
    let full = reckon(
        (Found::New { scopes: 2 }, None),
        &Aside::default(),
        &[ask(1, Purpose::Lease)],
        &mut Keys::default(),
    );
    assert_eq!(full.outcomes, [Outcome::Grant(Err(GrantError::TooManyScopes(2)))]);
    let unknown =
        reckon((Found::NoSeries, None), &Aside::default(), &[ask(1, Purpose::Lease)], &mut Keys::default());
    assert!(matches!(unknown.outcomes[0], Outcome::Grant(Err(GrantError::Store(_)))));
    assert_eq!((full.moved, unknown.moved), (None, None));
}

#[test]
fn a_tail_goes_back_only_where_its_holder_left_the_cursor() {
    let tail = |from, to, version| {
        Ask::Surrender(Tail { place: place(), lease: lease(from, to), version, lost: vec![lease(1, 3)] })
    };
    let found = Found::Cursor(Cursor { next: 33, version: 1 });
    let reckoned = reckon(
        (found, None),
        &Aside::default(),
        &[tail(10, 33, 1), tail(10, 33, 1), ask(5, Purpose::Lease)],
        &mut Keys::default(),
    );
    let surrendered = |outcome| Outcome::Surrender(Ok(outcome));
    assert_eq!(reckoned.outcomes[0], surrendered(Surrendered::Returned));
    assert_eq!(reckoned.outcomes[1], surrendered(Surrendered::Gap), "not twice");
    assert_eq!(reckoned.moved, Some(Cursor { next: 15, version: 3 }), "what came back is granted again");
    assert_eq!(
        (reckoned.lets_go, reckoned.leased, reckoned.used_to),
        (Some(33), vec![lease(10, 15)], Some(7))
    );
    assert_eq!(reckoned.lost, [lease(1, 3), lease(1, 3), lease(10, 33)], "what cannot go back is lost");
}

fn document(key: &str, digest: u8, end: u64) -> Assign {
    let pattern = Pattern::compile("I-{seq}", Options::default()).unwrap();
    Assign {
        place: place(),
        start: 1,
        end,
        scopes_max: 2,
        promise: None,
        scope: Arc::new(pattern.scope::<&str, &str>([], None).unwrap()),
        event: Uuid::now_v7(),
        idempotency: Some(Idempotency { caller: "c".into(), key: key.into(), digest: [digest; 32] }),
        content: Content::Document("{}".into()),
        audit: None,
    }
}

fn keys(asks: &[Assign], known: Vec<Known>) -> Keys {
    let mut keys = Keys::default();
    for ask in asks {
        keys.add(ask);
    }
    keys.learn(known).unwrap()
}

fn reckoned(
    found: Found,
    asks: &[Assign],
    keys: &mut Keys,
) -> (Vec<Result<Assigned, AssignError>>, Reckoned) {
    let asks: Vec<Ask> = asks.iter().map(|assign| Ask::Assign(Box::new(assign.clone()))).collect();
    let mut reckoned = reckon((found, None), &Aside::default(), &asks, keys);
    let outcomes = std::mem::take(&mut reckoned.outcomes).into_iter();
    let assigned =
        outcomes.map(|outcome| if let Outcome::Assign(assigned) = outcome { assigned } else { panic!() });
    (assigned.collect(), reckoned)
}

#[test]
fn a_key_twice_in_a_batch_takes_one_position() {
    let asks = [document("k", 1, 9), document("other", 1, 9), document("k", 1, 9), document("k", 2, 9)];
    let mut keys = keys(&asks, vec![Known::Ours, Known::Ours]);
    let (told, reckoned) = reckoned(Found::New { scopes: 0 }, &asks, &mut keys);
    let first = told[0].clone().unwrap();
    assert_eq!((&*first.number, first.is_new), ("I-1", true));
    assert_eq!(told[2], Ok(Assigned { is_new: false, ..first }), "the same, told as such");
    assert_eq!(told[3], Err(AssignError::KeyReused));
    assert_eq!(reckoned.issued, [lease(1, 3)]);
    assert!(keys.untaken().is_empty() && keys.retaken().is_empty());
}

#[test]
fn a_key_that_was_used_is_answered_where_the_space_has_ended_and_the_scope_is_one_too_many() {
    let ask = document("k", 1, 3);
    let before =
        Assigned { event: Uuid::nil(), position: 1, number: "I-1".into(), state: State::Dead, is_new: true };
    for found in [Found::Cursor(Cursor { next: 3, version: 2 }), Found::New { scopes: 2 }] {
        let mut keys = keys(std::slice::from_ref(&ask), vec![Known::Before([1; 32], before.clone())]);
        let (told, reckoned) = reckoned(found, std::slice::from_ref(&ask), &mut keys);
        assert_eq!(told, [Ok(Assigned { is_new: false, ..before.clone() })]);
        assert_eq!((reckoned.moved, keys.untaken().len()), (None, 0), "and takes nothing");
    }
}

/// The one that the key was inserted for does not fit, and the one behind it does.
#[test]
fn a_key_whose_first_call_is_refused_goes_to_the_next_or_does_not_stay() {
    let asks = [document("k", 1, 5), document("k", 2, 9), document("gone", 1, 5)];
    let mut keys = keys(&asks, vec![Known::Ours, Known::Ours]);
    let (told, _) = reckoned(Found::Cursor(Cursor { next: 5, version: 4 }), &asks, &mut keys);
    assert_eq!(told[0], Err(AssignError::Grant(GrantError::Exhausted { left: 0, elsewhere: false })));
    assert_eq!(told[1].as_ref().map(|assigned| assigned.position), Ok(5));
    let [(key, request)] = &*keys.retaken() else { panic!("one was") };
    assert_eq!((&*key.text, request.digest, request.event), ("k", [2; 32], asks[1].event));
    assert_eq!(keys.untaken().iter().map(|key| &*key.text).collect::<Vec<_>>(), ["gone"]);
}

#[test]
fn a_key_that_was_not_inserted_takes_nothing() {
    let (told, reckoned) = reckoned(Found::New { scopes: 0 }, &[document("k", 1, 9)], &mut Keys::default());
    assert!(told[0].is_err() && reckoned.moved.is_none());
}
