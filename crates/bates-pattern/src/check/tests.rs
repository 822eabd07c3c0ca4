//! Published examples, independent crates as oracles, and the errors each algorithm promises to find.

use proptest::prelude::*;

use super::{Check, verhoeff};

fn check_of(check: Check, text: &str) -> String {
    String::from_utf8(check.compute(text.as_bytes()).as_bytes().to_vec()).unwrap()
}

#[test]
fn published_examples_have_their_check_characters() {
    let examples = [
        (Check::Verhoeff, "236", "3"),
        (Check::Verhoeff, "12345", "1"),
        (Check::Luhn, "7992739871", "3"),
        (Check::Damm, "572", "4"),
        // ORCID iDs, ISNIs.
        (Check::Mod11_2, "000000021825009", "7"),
        (Check::Mod11_2, "000000021694233", "X"),
        // A Global Release Identifier.
        (Check::Mod37_36, "A12425GABC1234002", "M"),
        // An IBAN read from its country code on, and a Legal Entity Identifier.
        (Check::Mod97, "WEST12345698765432GB", "82"),
        (Check::Mod97, "5493001KJTIIGC8Y1R", "12"),
    ];
    for (check, text, expected) in examples {
        assert_eq!(check_of(check, text), expected, "{} of {text}", check.name());
    }
}

#[test]
fn separators_are_passed_over() {
    for check in Check::ALL {
        assert_eq!(check_of(check, "12-34 5/6"), check_of(check, "123456"), "{}", check.name());
    }
}

#[test]
fn the_dihedral_table_is_a_group() {
    for a in 0..10 {
        for b in 0..10 {
            for c in 0..10 {
                let product = |x: u8, y: u8| verhoeff::PRODUCT[usize::from(x)][usize::from(y)];
                assert_eq!(product(product(a, b), c), product(a, product(b, c)));
            }
        }
    }
}

fn valid_characters(check: Check) -> &'static [u8] {
    if check.covers_letters() { b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" } else { b"0123456789" }
}

/// Whether `text`, which ends in its check characters, passes.
fn passes(check: Check, text: &[u8]) -> bool {
    let (covered, found) = text.split_at(text.len() - check.width());
    check.compute(covered).as_bytes() == found
}

fn with_check(check: Check, text: &[u8]) -> Vec<u8> {
    [text, check.compute(text).as_bytes()].concat()
}

#[test]
fn every_single_error_in_every_short_number_is_found() {
    for check in Check::ALL {
        for number in 0..1000 {
            let good = with_check(check, format!("{number:03}").as_bytes());
            for at in 0..3 {
                for wrong in valid_characters(check).iter().filter(|wrong| **wrong != good[at]) {
                    let mut bad = good.clone();
                    bad[at] = *wrong;
                    // A letter counts as two digits in mod 97, so a digit that became one moves the rest.
                    if check == Check::Mod97 && wrong.is_ascii_alphabetic() {
                        continue;
                    }
                    assert!(!passes(check, &bad), "{}: {good:?} as {bad:?}", check.name());
                }
            }
        }
    }
}

/// How many swaps of two unequal neighbours, over all numbers of four digits, an algorithm does not see.
fn swaps_unseen(check: Check) -> Vec<(u8, u8)> {
    let mut unseen = Vec::new();
    for number in 0..10_000 {
        let good = with_check(check, format!("{number:04}").as_bytes());
        for at in (0..3).filter(|at| good[*at] != good[*at + 1]) {
            let mut bad = good.clone();
            bad.swap(at, at + 1);
            if passes(check, &bad) {
                unseen.push((good[at], good[at + 1]));
            }
        }
    }
    unseen
}

#[test]
fn swaps_of_neighbours_are_found_as_far_as_each_algorithm_promises() {
    for check in [Check::Verhoeff, Check::Damm, Check::Mod97, Check::Mod11_2] {
        assert!(swaps_unseen(check).is_empty(), "{}", check.name());
    }
    let luhn = swaps_unseen(Check::Luhn);
    assert!(!luhn.is_empty() && luhn.iter().all(|swap| matches!(swap, (b'0', b'9') | (b'9', b'0'))));
    // The hybrid system misses 152 of 27,000.
    assert_eq!(swaps_unseen(Check::Mod37_36).len(), 152);
}

proptest! {
    #[test]
    fn other_implementations_agree(digits in "[1-9][0-9]{0,23}", text in "[0-9A-Z]{1,30}") {
        let values: Vec<u8> = digits.bytes().map(|byte| byte - b'0').collect();
        prop_assert_eq!(check_of(Check::Verhoeff, &digits), ::verhoeff::calculate(values.as_slice()).to_string());
        prop_assert_eq!(check_of(Check::Luhn, &digits), char::from(::luhn::checksum(digits.as_bytes())).to_string());
        let damm = [digits.as_str(), &check_of(Check::Damm, &digits)].concat();
        prop_assert_eq!(::damm::id(digits.parse().unwrap()), damm.parse::<u128>().unwrap());
        prop_assert!(::iso7064::is_valid(&[text.as_str(), &check_of(Check::Mod97, &text)].concat()));
    }
}
