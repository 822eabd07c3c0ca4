//! Published examples, independent crates as oracles, and the errors that each algorithm promises to detect.

use proptest::prelude::*;

use super::{Check, algorithms};

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
fn separators_are_skipped() {
    for check in Check::ALL {
        assert_eq!(check_of(check, "12-34 5/6"), check_of(check, "123456"), "{}", check.name());
    }
}

#[test]
fn the_dihedral_table_is_a_group() {
    for a in 0..10 {
        for b in 0..10 {
            for c in 0..10 {
                let product = |x: u8, y: u8| algorithms::PRODUCT[usize::from(x)][usize::from(y)];
                assert_eq!(product(product(a, b), c), product(a, product(b, c)));
            }
        }
    }
}

fn valid_characters(check: Check) -> &'static [u8] {
    if check.covers_letters() { b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" } else { b"0123456789" }
}

fn passes(check: Check, text: &[u8]) -> bool {
    let (covered, found) = text.split_at(text.len() - check.width());
    check.compute(covered).as_bytes() == found
}

fn with_check(check: Check, text: &[u8]) -> Vec<u8> {
    [text, check.compute(text).as_bytes()].concat()
}

/// The number of undetected wrong characters, over all texts of two characters.
fn count_undetected_errors(check: Check) -> usize {
    let characters = valid_characters(check);
    let texts = characters.iter().flat_map(|first| characters.iter().map(|second| [*first, *second]));
    let undetected = |text: [u8; 2]| {
        let good = with_check(check, &text);
        let wrong = (0..2).flat_map(|at| characters.iter().map(move |wrong| (at, *wrong)));
        let passed = wrong.filter(|(at, wrong)| {
            let mut bad = good.clone();
            bad[*at] = *wrong;
            bad != good && passes(check, &bad)
        });
        passed.count()
    };
    texts.map(undetected).sum()
}

#[test]
fn each_algorithm_detects_the_wrong_characters_it_promises() {
    for check in [Check::Verhoeff, Check::Luhn, Check::Damm, Check::Mod11_2, Check::Mod37_36] {
        assert_eq!(count_undetected_errors(check), 0, "{}", check.name());
    }
    // In mod 97 a letter is two digits, so 218 of 90,720 errors with letters are undetected, but none among digits.
    assert_eq!(count_undetected_errors(Check::Mod97), 218);
    let digits = (0..1_000).map(|number| with_check(Check::Mod97, format!("{number:03}").as_bytes()));
    for good in digits {
        for (at, wrong) in (0..3).flat_map(|at| (b'0'..=b'9').map(move |wrong| (at, wrong))) {
            let mut bad = good.clone();
            bad[at] = wrong;
            assert_eq!(passes(Check::Mod97, &bad), bad == good);
        }
    }
}

/// The undetected swaps of two adjacent digits, over all numbers of four digits.
fn undetected_swaps(check: Check) -> Vec<(u8, u8)> {
    let mut undetected = Vec::new();
    for number in 0..10_000 {
        let good = with_check(check, format!("{number:04}").as_bytes());
        for at in (0..3).filter(|at| good[*at] != good[*at + 1]) {
            let mut bad = good.clone();
            bad.swap(at, at + 1);
            if passes(check, &bad) {
                undetected.push((good[at], good[at + 1]));
            }
        }
    }
    undetected
}

#[test]
fn each_algorithm_detects_the_swaps_it_promises() {
    for check in [Check::Verhoeff, Check::Damm, Check::Mod97, Check::Mod11_2] {
        assert!(undetected_swaps(check).is_empty(), "{}", check.name());
    }
    let luhn = undetected_swaps(Check::Luhn);
    assert!(!luhn.is_empty() && luhn.iter().all(|swap| matches!(swap, (b'0', b'9') | (b'9', b'0'))));
    // The hybrid system misses 152 of 27,000.
    assert_eq!(undetected_swaps(Check::Mod37_36).len(), 152);
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
