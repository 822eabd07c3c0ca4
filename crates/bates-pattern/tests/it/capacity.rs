//! Capacity: exact for small spaces, and within its margin for estimates.

use bates_pattern::{CapacityError, Options, Position, Reject};

use super::{compile, only_scope, rejecting, shuffled};

fn capacity(template: &str, options: Options) -> bates_pattern::Capacity {
    compile(template, options).capacity().unwrap()
}

#[test]
fn capacity_without_rules_is_the_number_of_positions() {
    for (template, expected) in [
        ("{seq:base62:6}", 56_800_235_584),
        ("{seq:6}", 1_000_000),
        ("{project}-{type}-{seq}", Position::COUNT),
        ("{seq:15}", 10_u64.pow(15)),
        ("{seq:16}", Position::COUNT),
        ("{seq:31}{check:verhoeff}", Position::COUNT),
        ("{seq:[01]:1}", 2),
        ("{seq:base62}", Position::COUNT),
    ] {
        let capacity = capacity(template, Options::default());
        assert_eq!((capacity.count(), capacity.margin()), (expected, 0), "{template}");
    }
}

#[test]
fn counts_match_those_published_by_openg2p() {
    for (digits, expected) in [(4, 465), (5, 3_723), (6, 29_593)] {
        let template = format!("{{seq:{}}}{{check:verhoeff}}", digits - 1);
        for options in [rejecting("openg2p"), Options { order: shuffled().order, ..rejecting("openg2p") }] {
            let capacity = capacity(&template, options);
            assert_eq!((capacity.count(), capacity.is_exact()), (expected, true), "{digits} digits");
        }
    }
}

#[test]
fn seven_digits_are_counted_exactly() {
    let capacity = capacity("{seq:7}", rejecting("openg2p"));
    assert_eq!((capacity.count(), capacity.is_exact()), (2_314_358, true));
}

#[test]
fn estimates_match_the_published_shares() {
    for (digits, share) in [(10, 0.106), (12, 0.057), (16, 0.015)] {
        let template = format!("{{seq:{}}}{{check:verhoeff}}", digits - 1);
        let capacity = capacity(&template, rejecting("openg2p"));
        assert!(!capacity.is_exact());
        #[allow(clippy::cast_precision_loss)]
        let (count, error) = (capacity.count() as f64, capacity.margin() as f64);
        let published = share * 10_f64.powi(digits - 1);
        // The published shares are estimates too, accurate to a few percent.
        assert!(
            (count - published).abs() <= 0.05 * published,
            "{digits}: {count} ± {error} is not {published}"
        );
        assert!(error < 0.02 * count, "{digits}: a margin of {error} in {count} is too wide");
    }
}

#[test]
fn an_estimate_is_within_its_margin() {
    // 9^9 texts of 9 digits do not contain a 7.
    let reject = Reject::default().with_restricted(&["7"]).unwrap();
    let capacity = capacity("{seq:9}", Options { reject, ..Options::default() });
    assert!(!capacity.is_exact());
    assert!(capacity.count().abs_diff(9_u64.pow(9)) <= capacity.margin());
}

#[test]
fn capacity_of_a_wide_counting_field_covers_only_reachable_values() {
    // Positions have at most 16 digits, so every text of 20 begins with zeros, which the rules reject.
    assert_eq!(capacity("{seq:20}", rejecting("openg2p")).count(), 0);
    let shuffled = Options { order: shuffled().order, ..rejecting("openg2p") };
    assert!(capacity("{seq:20}", shuffled).count() > 0);
}

#[test]
fn capacity_is_zero_if_the_rules_reject_everything() {
    let all = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let reject = || Reject::default().with_restricted(&all).unwrap();
    let small = capacity("{seq:4}", Options { reject: reject(), ..Options::default() });
    assert_eq!((small.count(), small.is_exact()), (0, true));
    let large = capacity("{seq:12}", Options { reject: reject(), ..Options::default() });
    assert_eq!(large.count(), 0);
    assert!(!large.is_exact() && large.margin() < 10_u64.pow(12) / 100_000);
}

#[test]
fn capacity_needs_a_scope_if_the_check_covers_parameters() {
    let pattern = compile("{region:digits:2}{seq:4}{check:luhn}", rejecting("openg2p"));
    assert_eq!(pattern.capacity(), Err(CapacityError));
    for region in ["10", "57"] {
        let scope = pattern.scope([("region", region)], None).unwrap();
        let rendered = (0..10_000).filter(|at| scope.number(super::position(*at)).is_ok()).count() as u64;
        assert_eq!(scope.capacity().count(), rendered);
    }
    // The scope does not matter without rules, or if the parameter comes after the check.
    assert!(compile("{seq:4}{check:luhn}-{region}", rejecting("openg2p")).capacity().is_ok());
    assert!(compile("{region:digits:2}{seq:4}{check:luhn}", Options::default()).capacity().is_ok());
}

#[test]
fn capacity_is_the_number_of_positions_that_render() {
    let scope = only_scope("{seq:3}{check:damm}", rejecting("mosip:digits_group_limit=2"));
    let positions = 0..=scope.pattern().last().value();
    let rendered = positions.filter(|at| scope.number(super::position(*at)).is_ok()).count() as u64;
    assert_eq!(scope.capacity().count(), rendered);
}

#[test]
fn a_quick_estimate_is_close_to_the_thorough_one() {
    for (template, options) in [
        ("{seq:7}", rejecting("openg2p")),
        ("{seq:11}{check:verhoeff}", rejecting("openg2p")),
        ("{seq:15}{check:verhoeff}", rejecting("openg2p")),
    ] {
        let pattern = compile(template, options);
        let (quick, thorough) = (pattern.estimate_capacity().unwrap(), pattern.capacity().unwrap());
        let difference = quick.count().abs_diff(thorough.count());
        assert!(difference <= quick.margin() + thorough.margin(), "{template}: {quick:?}, {thorough:?}");
        assert!(quick.margin() <= thorough.count() / 40, "{template}: {quick:?}");
    }
    let small = compile("{seq:5}", rejecting("openg2p"));
    assert_eq!(small.estimate_capacity(), small.capacity(), "small spaces are counted");
}
