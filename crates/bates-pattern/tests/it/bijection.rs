//! The shuffled order is an invertible permutation: exhaustive on small spaces, sampled on large ones.

use std::collections::HashSet;

use bates_pattern::{Key, Position, SHUFFLE_SIZE_MAX, Shuffle};

use super::{only_scope, position, shuffled};

fn keys() -> impl Iterator<Item = Key> {
    (0_u8..20).map(|seed| {
        let bytes: Vec<u8> = (0..32_u8).map(|at| seed.wrapping_mul(37) ^ at.wrapping_mul(seed | 1)).collect();
        Key::new(&bytes[..[16, 24, 32][usize::from(seed % 3)]]).unwrap()
    })
}

fn assert_bijection(shuffle: &Shuffle, tweak: &[u8]) {
    let tweak = shuffle.tweak(tweak);
    let size = usize::try_from(shuffle.size()).unwrap();
    let mut seen = vec![false; size];
    for index in 0..shuffle.size() {
        let value = shuffle.permute(tweak, index);
        let is_seen = &mut seen[usize::try_from(value).unwrap()];
        assert!(!std::mem::replace(is_seen, true), "size {size}: {value} occurs twice");
        assert_eq!(shuffle.invert(tweak, value), index, "size {size}");
    }
}

#[test]
fn every_size_up_to_600_is_permuted_under_many_keys() {
    for key in keys() {
        for size in 2..=600 {
            assert_bijection(&Shuffle::new(&key, size).unwrap(), b"");
        }
    }
}

#[test]
fn sizes_that_are_not_powers_are_permuted() {
    for key in keys().take(4) {
        for size in [997, 1_000, 4_095, 4_097, 10_007, 65_535, 65_537, 99_991] {
            assert_bijection(&Shuffle::new(&key, size).unwrap(), b"scope");
        }
    }
}

#[test]
fn every_small_field_is_permuted() {
    for key in keys().take(3) {
        for radix in 2..=94_u8 {
            let widths = (1..).take_while(|width| u128::from(radix).pow(*width) <= 20_000);
            for width in widths {
                assert_bijection(&Shuffle::of_field(&key, radix, width).unwrap(), b"tweak");
            }
        }
    }
}

#[test]
fn the_ends_of_the_largest_spaces_are_inverted() {
    for key in keys() {
        for size in
            [SHUFFLE_SIZE_MAX, SHUFFLE_SIZE_MAX - 1, 1 << 64, (1 << 64) + 1, (1 << 53) + 1, 3_u128.pow(64)]
        {
            let shuffle = Shuffle::new(&key, size).unwrap();
            let tweak = shuffle.tweak(b"");
            for index in [0, 1, size / 2, size - 2, size - 1] {
                let value = shuffle.permute(tweak, index);
                assert!(value < size);
                assert_eq!(shuffle.invert(tweak, value), index);
            }
        }
    }
}

#[test]
fn a_pattern_issues_each_of_its_texts_once() {
    let scope = only_scope("{seq:crockford32:3}{check:mod37-36}", shuffled());
    let mut texts = HashSet::new();
    for value in 0..=scope.pattern().last().value() {
        assert!(texts.insert(scope.number(position(value)).unwrap()));
    }
    assert_eq!(texts.len(), 32_usize.pow(3));
}

#[test]
fn neighbouring_positions_land_far_apart() {
    let scope = only_scope("{seq:6}", shuffled());
    let value = |at: u64| scope.number(position(at)).unwrap().parse::<i64>().unwrap();
    let close = (0..10_000).filter(|at| (value(*at) - value(at + 1)).abs() < 1_000).count();
    // Two random numbers below a million are closer than 1,000 once in 500.
    assert!((5..60).contains(&close), "{close} of 10,000");
}

#[test]
fn accepted_positions_render_like_single_positions() {
    let scope = only_scope("{seq:3}{check:luhn}", shuffled());
    for (first, last) in [(0, 999), (0, 0), (5, 12), (990, 5_000), (1_000, 2_000), (7, 3)] {
        let mut walk = scope.accepted(position(first), position(last));
        let mut seen = Vec::new();
        let mut out = Vec::new();
        while let Some(at) = walk.next_into(&mut out) {
            seen.push(at.value());
            assert_eq!(out, scope.number(at).unwrap().as_bytes());
            out.clear();
        }
        let expected: Vec<u64> = (first..=last.min(999)).collect();
        assert_eq!(seen, expected, "{first} to {last}");
        assert_eq!(walk.next_into(&mut out), None, "the end is final");
    }
}

#[test]
fn the_position_after_the_last_is_refused() {
    let unending = only_scope("{seq}", super::Options::default());
    assert_eq!(unending.number(Position::MAX).unwrap(), "9007199254740991");
    assert_eq!(Position::new(Position::COUNT), None);
    let six = only_scope("{seq:6}", super::Options::default());
    assert_eq!(six.number(position(999_999)).unwrap(), "999999");
    let refused = six.number(position(1_000_000)).unwrap_err();
    assert_eq!(refused.to_string(), "position 1000000 is beyond the last position, 999999");
}
