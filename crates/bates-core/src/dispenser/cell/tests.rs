//! How much a cell holds: a crash skips it.

use bates_pattern::{Options, Pattern, Position};
use proptest::prelude::*;

use super::*;
use crate::series::Limits;

fn cell(limits: Limits) -> Cell {
    let pattern = Pattern::compile("{seq}", Options::default()).unwrap();
    let (start, promise) = (Position::new(1).unwrap(), Promise::Unique);
    Cell::new(Series::new("number".parse().unwrap(), pattern, promise, start, limits), "")
}

/// Takes positions, lets the store grant every refill, and returns the most that the cell held on the way.
fn take(cell: &mut Cell, cursor: &mut u64, count: u64) -> u64 {
    let (outcome, mut refill) = cell.take(TakeRequest::Any(count), false).unwrap();
    let mut held_most = 0;
    while let Some(request) = refill {
        let range = PositionRange::new(*cursor, *cursor + request.count).unwrap();
        *cursor = range.to();
        refill = cell.finish_refill(Ok(Grant { range, version: *cursor, adopted: Vec::new() }));
        held_most = held_most.max(cell.held.count());
    }
    let answer = match outcome {
        TakeOutcome::Answered(answer) => answer,
        TakeOutcome::Waits(mut receiver) => receiver.try_recv().unwrap(),
    };
    assert_eq!(answer.unwrap().count(), count);
    held_most
}

proptest! {
    #[test]
    fn a_cell_never_holds_more_than_crash_skip_max(
        lease_min in 1_u64..50, factor in 1_u64..20, watermark_percent in 0_u8..=100,
        counts in prop::collection::vec(prop_oneof![Just(1_u64), 1_u64..40, 1_u64..2_000], 1..200),
    ) {
        let limits = Limits { lease_min, lease_max: lease_min * factor, watermark_percent, ..Limits::default() };
        let (mut cell, mut cursor) = (cell(limits), 1);
        for count in counts {
            let held = take(&mut cell, &mut cursor, count);
            prop_assert!(held <= limits.crash_skip_max(), "{} of {}", held, limits.crash_skip_max());
        }
    }
}

#[test]
fn a_busy_scope_reaches_crash_skip_max_and_a_new_one_holds_its_first_range() {
    let limits = Limits::default();
    let (mut cell, mut cursor) = (cell(limits), 1);
    assert_eq!(take(&mut cell, &mut cursor, 1), limits.lease_min - 1);
    let held: u64 = (0..300_000).map(|_| take(&mut cell, &mut cursor, 1)).max().unwrap();
    assert_eq!((held, limits.crash_skip_max()), (65_536 + 16_384, 65_536 + 16_384));
}

#[test]
fn positions_fetched_for_a_caller_that_has_gone_come_on_top() {
    let limits = Limits { lease_min: 8, lease_max: 8, ..Limits::default() };
    let mut cell = cell(limits);
    let (outcome, refill) = cell.take(TakeRequest::Any(1_000), false).unwrap();
    drop(outcome);
    let range = PositionRange::new(1, 1 + refill.unwrap().count).unwrap();
    let next = cell.finish_refill(Ok(Grant { range, version: 1, adopted: Vec::new() }));
    assert!(next.is_none() && cell.held.count() == 1_000, "the next callers get them");
    assert!(cell.held.count() <= limits.crash_skip_max() + 1_000);
}

mod ahead {
    use std::collections::VecDeque;

    use bates_pattern::{Key, Order, Reject, Scope};

    use super::*;
    use crate::dispenser::ahead::{Popped, Rendering, Rooms};
    use crate::series::ListValue;

    /// A series of six digits, in which about three of four are rejected if `has_rules`.
    fn series(is_shuffled: bool, has_rules: bool) -> Series {
        let key = || Order::Shuffled(Key::new(&[7; 32]).unwrap());
        let order = if is_shuffled { key() } else { Order::Counting };
        let words: &[&str] = if has_rules { &["1", "2"] } else { &[] };
        let reject = Reject::default().with_restricted(words).unwrap();
        let pattern = Pattern::compile("{seq:6}", Options { order, reject, ..Options::default() }).unwrap();
        let (start, limits) = (Position::new(0).unwrap(), Limits { lease_max: 512, ..Limits::default() });
        Series::new("number".parse().unwrap(), pattern, Promise::Unique, start, limits)
    }

    fn scope(series: &Series) -> Scope {
        series.pattern().scope([] as [(&str, &str); 0], None).unwrap()
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// Under the first or another description.
        Pop(bool),
        Take(u64),
        /// A caller that waits goes away before its answer: its positions are held again.
        GiveUp(u64),
        /// The store was restored.
        Discard,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            20 => any::<bool>().prop_map(|is_rare| Step::Pop(!is_rare)),
            20 => Just(Step::Pop(true)),
            3 => (1_u64..90).prop_map(Step::Take),
            2 => (1_u64..90).prop_map(Step::GiveUp),
            1 => Just(Step::Discard),
        ]
    }

    /// The cell, and the positions that it should hold.
    struct Rig {
        cell: Cell,
        held: VecDeque<u64>,
        cursor: u64,
        rooms: Rooms,
    }

    impl Rig {
        fn grant(&mut self, mut refill: Option<RefillRequest>) {
            while let Some(request) = refill {
                // Another node was granted some in between.
                self.cursor += request.count % 3;
                let range = PositionRange::new(self.cursor, self.cursor + request.count).unwrap();
                self.held.extend(range.from()..range.to());
                self.cursor = range.to();
                refill =
                    self.cell.finish_refill(Ok(Grant { range, version: self.cursor, adopted: Vec::new() }));
            }
        }

        fn take(&mut self, count: u64) {
            let (outcome, refill) = self.cell.take(TakeRequest::Any(count), false).unwrap();
            self.grant(refill);
            let answer = match outcome {
                TakeOutcome::Answered(answer) => answer,
                TakeOutcome::Waits(mut receiver) => receiver.try_recv().unwrap(),
            };
            let expected: Vec<u64> = self.held.drain(..usize::try_from(count).unwrap()).collect();
            assert_eq!(answer.unwrap().positions().collect::<Vec<_>>(), expected);
        }

        fn pop(&mut self, series: &Series) {
            let scope = scope(series);
            let rendering =
                || Some(Rendering { series: series.clone(), scope: scope.clone(), value: ListValue::Id });
            let mut answered = None;
            let answer = |value: &[u8]| answered = Some(String::from_utf8(value.to_vec()).unwrap());
            let Some((popped, refill)) = self.cell.try_pop(series, &self.rooms, rendering, answer) else {
                assert_eq!(answered, None);
                return;
            };
            let text = |position| scope.number(Position::new(position).unwrap()).ok();
            match popped {
                Popped::Position(position) => assert_eq!(self.held.pop_front(), Some(position)),
                Popped::Answered(position) => {
                    let next = self.held.iter().copied().find(|at| text(*at).is_some());
                    assert_eq!(next, Some(position), "the first that the rules accept");
                    assert_eq!(answered, text(position));
                    while self.held.pop_front() != Some(position) {}
                }
            }
            self.grant(refill);
        }
    }

    proptest! {
        /// Whatever happens in between, a number that is answered is that of the next position held, which leaves with it.
        #[test]
        fn a_number_leaves_with_its_position(
            is_shuffled: bool, has_rules: bool, steps in prop::collection::vec(step(), 1..300),
        ) {
            let descriptions = [series(is_shuffled, has_rules), series(!is_shuffled, false)];
            let cell = Cell::new(descriptions[0].clone(), "");
            let mut rig = Rig { cell, held: VecDeque::new(), cursor: 0, rooms: Rooms::default() };
            rig.take(100);
            for step in steps {
                match step {
                    Step::Pop(is_first) => rig.pop(&descriptions[usize::from(!is_first)]),
                    Step::Take(count) => rig.take(count),
                    Step::GiveUp(count) => {
                        let (outcome, refill) = rig.cell.take(TakeRequest::Any(count), false).unwrap();
                        let TakeOutcome::Waits(receiver) = outcome else {
                            rig.held.drain(..usize::try_from(count).unwrap());
                            rig.grant(refill);
                            continue;
                        };
                        drop(receiver);
                        rig.grant(refill);
                    }
                    Step::Discard => {
                        let discarded = rig.cell.discard();
                        let expected: Vec<u64> = rig.held.drain(..).collect();
                        let discarded = discarded.iter().flat_map(|range| range.from()..range.to());
                        prop_assert_eq!(discarded.collect::<Vec<_>>(), expected);
                    }
                }
                prop_assert_eq!(rig.cell.held.count(), rig.held.len() as u64);
            }
        }
    }

    #[test]
    fn values_are_appended_with_what_stands_around_each() {
        let (id, seq) = (ListValue::Id, ListValue::Seq);
        let shuffled = Order::Shuffled(Key::new(&[7; 16]).unwrap());
        let patterns = [
            ("{seq}", id, Order::Counting),
            ("A-{seq}", id, Order::Counting),
            ("A-{seq}-é", seq, Order::Counting),
            ("A-{seq:4}-é", id, Order::Counting),
            ("A-{seq:4}-é", seq, Order::Counting),
            ("{seq:base62:6}", id, shuffled.clone()),
            ("A-{seq:base58:3}-é", seq, shuffled.clone()),
            ("A-{seq:[ABC]:20}", seq, shuffled.clone()),
            ("{seq:20}", id, shuffled.clone()),
            ("{seq:9}{check:luhn}", id, shuffled),
        ];
        for (template, value, order) in patterns {
            let options = Options { order, ..Options::default() };
            let pattern = Pattern::compile(template, options).unwrap();
            let start = Position::new(1).unwrap();
            let series =
                Series::new("n".parse().unwrap(), pattern, Promise::Unique, start, Limits::default());
            let scope = scope(&series);
            let rendering = Rendering { series: series.clone(), scope: scope.clone(), value };
            let (mut out, mut expected) = (b"before ".to_vec(), b"before ".to_vec());
            let begin =
                |out: &mut Vec<u8>, length: usize| out.extend_from_slice(format!("{length}:").as_bytes());
            for (first, end) in [(8, 1_002), (1_002, 1_003), (1_003, 1_067)] {
                rendering.append(PositionRange::new(first, end).unwrap(), &mut out, begin, b";");
                for position in first..end {
                    let number = scope.number(Position::new(position).unwrap()).unwrap().into_bytes();
                    let value = match value {
                        ListValue::Id => &number[..],
                        ListValue::Seq => &number[scope.seq_range(number.len())],
                    };
                    expected.extend(format!("{}:", value.len()).into_bytes());
                    expected.extend(value);
                    expected.push(b';');
                }
            }
            assert_eq!(String::from_utf8(out), String::from_utf8(expected), "{template}");
        }
    }

    #[test]
    fn as_many_scopes_have_numbers_ahead_as_there_are_rooms() {
        let (series, rooms) = (series(true, false), Rooms::default());
        let rendering = || Rendering { series: series.clone(), scope: scope(&series), value: ListValue::Id };
        let all: Vec<_> = (0..5_000).map(|_| NumbersAhead::new(rendering(), &rooms)).collect();
        assert_eq!(all.iter().flatten().count(), 4_096);
        drop(all);
        assert!(NumbersAhead::new(rendering(), &rooms).is_some(), "a scope that leaves makes room");
    }
}
