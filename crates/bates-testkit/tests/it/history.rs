//! The history checker passes a correct history, and finds every planted violation with the answers that show it.

use bates_testkit::history::{Entry, ExplainedGap, Gaps, History, Rules, Scope, Violation, check};
use proptest::prelude::*;

const STRICT: Rules = Rules { is_ordered: true, gaps: Gaps::AtMost { start: 1, skipped_max: 0 } };

/// A step of a correct server with a few clients.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A client sends a request, or gets the answer to the one it sent.
    Turn { client: usize, scope: u32, count: u64 },
    /// Numbers are skipped for a known reason.
    Skip { scope: u32, count: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        9 => (0..6_usize, 0..3_u32, 1..5_u64)
            .prop_map(|(client, scope, count)| Step::Turn { client, scope, count }),
        1 => (0..3_u32, 1..40_u64).prop_map(|(scope, count)| Step::Skip { scope, count }),
    ]
}

/// The history of a correct server, which takes numbers when a request comes and answers later.
fn correct_history(steps: &[Step]) -> (Vec<Entry>, Vec<ExplainedGap>) {
    let (mut entries, mut explained) = (Vec::new(), Vec::new());
    let mut next = [1_u64; 3];
    let mut waiting: [Option<Entry>; 6] = [None; 6];
    for (at, step) in (0..).zip(steps) {
        match *step {
            Step::Skip { scope, count } => {
                let first = next[scope as usize];
                next[scope as usize] += count;
                explained.push(ExplainedGap { scope: Scope(scope), first, last: first + count - 1 });
            }
            Step::Turn { client, scope, count } => match waiting[client].take() {
                Some(entry) => entries.push(Entry { answered: at, ..entry }),
                None => {
                    let first = next[scope as usize];
                    next[scope as usize] += count;
                    waiting[client] = Some(Entry {
                        scope: Scope(scope),
                        client: u32::try_from(client).unwrap(),
                        asked: at,
                        answered: u64::MAX,
                        first,
                        last: first + count - 1,
                    });
                }
            },
        }
    }
    // A request without an answer may have taken its numbers.
    for unanswered in waiting.into_iter().flatten() {
        explained.push(ExplainedGap {
            scope: unanswered.scope,
            first: unanswered.first,
            last: unanswered.last,
        });
    }
    (entries, explained)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 0..200)
}

fn pairs(entries: &[Entry], is_wanted: impl Fn(&Entry, &Entry) -> bool) -> Vec<(usize, usize)> {
    let all = (0..entries.len()).flat_map(|one| (0..entries.len()).map(move |other| (one, other)));
    all.filter(|(one, other)| one != other && is_wanted(&entries[*one], &entries[*other])).collect()
}

proptest! {
    #[test]
    fn a_correct_history_passes(steps in steps()) {
        let (entries, explained) = correct_history(&steps);
        prop_assert_eq!(check(&entries, &explained, STRICT), []);
    }

    #[test]
    fn a_repeated_number_is_found(steps in steps(), pick: prop::sample::Index) {
        let (mut entries, explained) = correct_history(&steps);
        let same_scope = pairs(&entries, |one, other| one.scope == other.scope);
        prop_assume!(!same_scope.is_empty());
        let (one, other) = same_scope[pick.index(same_scope.len())];
        (entries[other].first, entries[other].last) = (entries[one].last, entries[one].last);
        let rules = Rules { is_ordered: false, gaps: Gaps::Any };
        let planted = entries[one].last;
        let found = check(&entries, &explained, rules);
        let holds = |entry: &Entry| entry.first <= planted && planted <= entry.last;
        prop_assert!(
            matches!(found[..], [Violation::Repeated { one, other }] if holds(&one) && holds(&other)),
            "{:?}", found
        );
    }

    #[test]
    fn a_number_out_of_order_is_found(steps in steps(), pick: prop::sample::Index) {
        let (mut entries, explained) = correct_history(&steps);
        let in_order = pairs(&entries, |one, other| one.scope == other.scope && one.answered < other.asked);
        prop_assume!(!in_order.is_empty());
        let (one, other) = in_order[pick.index(in_order.len())];
        let (early, late) = (entries[one], entries[other]);
        (entries[one].first, entries[one].last) = (late.first, late.last);
        (entries[other].first, entries[other].last) = (early.first, early.last);
        let found = check(&entries, &explained, STRICT);
        prop_assert!(!found.is_empty());
        for violation in &found {
            let Violation::OutOfOrder { earlier, later } = violation else { panic!("{violation}") };
            prop_assert!(earlier.answered < later.asked && earlier.last >= later.first, "{}", violation);
        }
        let unordered = Rules { is_ordered: false, ..STRICT };
        prop_assert_eq!(check(&entries, &explained, unordered), [], "the order is the only violation");
    }

    #[test]
    fn an_unexplained_gap_is_found(steps in steps(), pick: prop::sample::Index) {
        let (mut entries, explained) = correct_history(&steps);
        let below = pairs(&entries, |one, other| one.scope == other.scope && one.first < other.first);
        prop_assume!(!below.is_empty());
        let (lost, _) = below[pick.index(below.len())];
        let Entry { scope, first, last, .. } = entries.remove(lost);
        let missing = last - first + 1;
        let found = check(&entries, &explained, STRICT);
        let [Violation::Skipped { scope: at, skipped, before, after, .. }] = found[..] else {
            panic!("{found:?}")
        };
        prop_assert_eq!((at, skipped), (scope, missing));
        prop_assert!(before.is_none_or(|before| before.last < first) && after.first > last);
        let gaps = Gaps::AtMost { start: 1, skipped_max: missing };
        prop_assert_eq!(check(&entries, &explained, Rules { gaps, ..STRICT }), [], "within a bound");
        let explained = [explained, vec![ExplainedGap { scope, first, last }]].concat();
        prop_assert_eq!(check(&entries, &explained, STRICT), [], "explained");
    }
}

#[test]
fn threads_write_one_history_and_only_answers_count() {
    let history = History::default();
    let number = std::sync::atomic::AtomicU64::new(1);
    let scope = history.scope("counter:a");
    assert_eq!(scope, history.scope("counter:a"));
    assert_ne!(scope, history.scope("counter:b"));
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let mut client = history.client();
                for _ in 0..10_000 {
                    let request = client.ask(scope);
                    let taken = number.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    client.answered(request, taken, taken);
                }
                let _ = client.ask(scope);
            });
        }
    });
    assert_eq!((history.len(), history.check(STRICT)), (40_000, vec![]));
}

#[test]
fn at_most_a_hundred_violations_are_reported() {
    let entry = |at| Entry { scope: Scope(0), client: 1, asked: at, answered: at, first: 7, last: 7 };
    let entries: Vec<Entry> = (0..100_000).map(entry).collect();
    let found = check(&entries, &[], STRICT);
    assert_eq!(found.len(), 100);
    assert!(found[0].to_string().starts_with("came twice: scope 0: 7 to 7, to client 1"), "{}", found[0]);
}

#[test]
fn a_wide_answer_is_compared_with_every_answer_that_begins_inside_it() {
    let entry = |at, first, last| Entry { scope: Scope(0), client: 1, asked: at, answered: at, first, last };
    let (wide, small, late) = (entry(1, 1, 10), entry(2, 2, 3), entry(3, 9, 9));
    let found = check(&[late, small, wide], &[], Rules { is_ordered: false, gaps: Gaps::Any });
    let repeated = |other| Violation::Repeated { one: wide, other };
    assert_eq!(found, [repeated(small), repeated(late)]);
}
