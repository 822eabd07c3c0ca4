//! Capacity: exact where it can be counted, and within its stated error where it is estimated.

use bates_pattern::{Options, Position, Reject, ScopeNeeded};

use super::{bare, compile, rejecting, shuffled};

fn capacity(template: &str, options: Options) -> bates_pattern::Capacity {
    compile(template, options).capacity().unwrap()
}

#[test]
fn without_rules_it_is_the_space_up_to_the_last_position() {
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
fn the_published_counts_of_openg2p_are_met() {
    for (digits, expected) in [(4, 465), (5, 3_723), (6, 29_593)] {
        let template = format!("{{seq:{}}}{{check:verhoeff}}", digits - 1);
        for options in [rejecting("openg2p"), Options { order: shuffled().order, ..rejecting("openg2p") }] {
            let capacity = capacity(&template, options);
            assert_eq!((capacity.count(), capacity.is_exact()), (expected, true), "{digits} digits");
        }
    }
}

#[test]
fn seven_digits_are_still_counted() {
    let capacity = capacity("{seq:7}", rejecting("openg2p"));
    assert_eq!((capacity.count(), capacity.is_exact()), (2_314_358, true));
}

#[test]
fn estimates_meet_the_published_shares() {
    for (digits, share) in [(10, 0.106), (12, 0.057), (16, 0.015)] {
        let template = format!("{{seq:{}}}{{check:verhoeff}}", digits - 1);
        let capacity = capacity(&template, rejecting("openg2p"));
        assert!(!capacity.is_exact());
        #[allow(clippy::cast_precision_loss)]
        let (count, error) = (capacity.count() as f64, capacity.margin() as f64);
        let published = share * 10_f64.powi(digits - 1);
        // The published shares are themselves estimates, good to a few percent.
        assert!(
            (count - published).abs() <= 0.05 * published,
            "{digits}: {count} ± {error} is not {published}"
        );
        assert!(error < 0.02 * count, "{digits}: an error of {error} in {count} tells little");
    }
}

#[test]
fn an_estimate_of_what_can_be_computed_is_within_its_error() {
    // Of the texts of 9 digits, 10^9 - 9^9 hold a 7.
    let reject = Reject::default().with_restricted(&["7"]).unwrap();
    let capacity = capacity("{seq:9}", Options { reject, ..Options::default() });
    assert!(!capacity.is_exact());
    assert!(capacity.count().abs_diff(9_u64.pow(9)) <= capacity.margin());
}

#[test]
fn counting_in_a_field_longer_than_positions_is_counted_by_what_it_reaches() {
    // Of 20 digits counting fills at most 16, so every text begins with zeros, which the rules refuse.
    assert_eq!(capacity("{seq:20}", rejecting("openg2p")).count(), 0);
    let shuffled = Options { order: shuffled().order, ..rejecting("openg2p") };
    assert!(capacity("{seq:20}", shuffled).count() > 0);
}

#[test]
fn nothing_left_is_counted_or_bounded_as_nothing() {
    let all = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let reject = || Reject::default().with_restricted(&all).unwrap();
    let small = capacity("{seq:4}", Options { reject: reject(), ..Options::default() });
    assert_eq!((small.count(), small.is_exact()), (0, true));
    let large = capacity("{seq:12}", Options { reject: reject(), ..Options::default() });
    assert_eq!(large.count(), 0);
    assert!(!large.is_exact() && large.margin() < 10_u64.pow(12) / 100_000);
}

#[test]
fn a_check_over_the_scope_makes_capacity_a_question_of_the_scope() {
    let pattern = compile("{region:digits:2}{seq:4}{check:luhn}", rejecting("openg2p"));
    assert_eq!(pattern.capacity(), Err(ScopeNeeded));
    for region in ["10", "57"] {
        let scope = pattern.scope([("region", region)], None).unwrap();
        let rendered = (0..10_000).filter(|at| scope.number(super::position(*at)).is_ok()).count() as u64;
        assert_eq!(scope.capacity().count(), rendered);
    }
    // Behind the check, or without rules, the scope changes nothing.
    assert!(compile("{seq:4}{check:luhn}-{region}", rejecting("openg2p")).capacity().is_ok());
    assert!(compile("{region:digits:2}{seq:4}{check:luhn}", Options::default()).capacity().is_ok());
}

#[test]
fn capacity_is_the_number_of_positions_that_render() {
    let scope = bare("{seq:3}{check:damm}", rejecting("mosip:digits_group_limit=2"));
    let positions = 0..=scope.pattern().last().value();
    let rendered = positions.filter(|at| scope.number(super::position(*at)).is_ok()).count() as u64;
    assert_eq!(scope.capacity().count(), rendered);
}
