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
