//! The rules of OpenG2P and MOSIP, against published verdicts and against each other.

use std::collections::BTreeSet;

use bates_pattern::{DigitRules, LimitsError, Options, Reject};

use super::{bare, compile, position, rejecting, shuffled};

const VECTORS: &str = include_str!("../golden/openg2p_rules.csv");

fn failed_rules(pattern: &bates_pattern::Pattern, text: &str) -> BTreeSet<String> {
    pattern.validate(text).reasons().iter().map(|reason| reason.code().to_owned()).collect()
}

#[test]
fn every_vector_has_its_verdict_and_its_failing_rules() {
    let mut rows = 0;
    for row in VECTORS.lines().skip(1) {
        let [length, id, verdict, failed] = row.split(',').collect::<Vec<_>>().try_into().unwrap();
        let reject = Reject::default().with_digits("openg2p".parse().unwrap());
        let reject = reject.with_restricted(&["786", "420"]).unwrap();
        let template = format!("{{seq:{}}}{{check:verhoeff}}", length.parse::<usize>().unwrap() - 1);
        let pattern = compile(&template, Options { reject, ..Options::default() });
        let expected: BTreeSet<String> = failed.split_whitespace().map(str::to_owned).collect();
        assert_eq!(failed_rules(&pattern, id), expected, "{id}");
        assert_eq!(pattern.validate(id).is_valid(), verdict == "valid", "{id}");
        rows += 1;
    }
    assert_eq!(rows, 824);
}

#[test]
fn a_five_digit_type_issues_exactly_its_3723_identifiers() {
    let scope = bare("{seq:4}{check:verhoeff}", Options { order: shuffled().order, ..rejecting("openg2p") });
    let mut walk = scope.accepted(position(0), scope.pattern().last());
    let (mut issued, mut out) = (BTreeSet::new(), Vec::new());
    while walk.next_into(&mut out).is_some() {
        assert!(issued.insert(std::mem::take(&mut out)));
    }
    assert_eq!(issued.len(), 3_723);
}

#[test]
fn a_rule_added_later_moves_no_identifier() {
    let before = bare("{seq:5}{check:verhoeff}", shuffled());
    let after = bare("{seq:5}{check:verhoeff}", Options { order: shuffled().order, ..rejecting("openg2p") });
    let mut kept = 0;
    for at in (0..=before.pattern().last().value()).map(position) {
        let text = before.number(at).unwrap();
        match after.number(at) {
            Ok(same) => assert_eq!(same, text),
            Err(_) => kept += 1,
        }
        assert_eq!(after.pattern().parse(&text).unwrap().position(), at, "still read once it is rejected");
    }
    assert_eq!(kept, 100_000 - 29_593);
}

#[test]
fn mosip_reads_three_rules_its_own_way() {
    let template = "{seq:4}";
    let openg2p = compile(template, rejecting("openg2p:not_start_with="));
    let mosip = compile(template, rejecting("mosip:not_start_with="));
    let failed = |pattern, text| failed_rules(pattern, text).into_iter().collect::<Vec<_>>().join(" ");
    for (text, by_openg2p, by_mosip) in [
        ("5151", "repeating_block", "repeating_block repeating_digit"),
        ("7151", "", "repeating_digit"),
        ("7151", "", "repeating_digit"),
        ("3890", "", "sequence"),
        ("3098", "", "sequence"),
        ("1206", "even_run", ""),
        ("1246", "even_run", "even_run"),
        ("3551", "repeating_digit", "repeating_digit"),
    ] {
        assert_eq!(failed(&openg2p, text), by_openg2p, "openg2p on {text}");
        assert_eq!(failed(&mosip, text), by_mosip, "mosip on {text}");
    }
}

#[test]
fn limits_are_settings_and_zero_turns_a_rule_off() {
    let reject = |rules: &str, text: &str| failed_rules(&compile("{seq:10}", rejecting(rules)), text);
    assert!(reject("openg2p", "2345678901").contains("sequence"));
    assert!(!reject("openg2p:sequence_limit=0", "2345678901").contains("sequence"));
    assert!(reject("openg2p:sequence_limit=5", "2345678901").contains("sequence"));
    assert!(!reject("openg2p:sequence_limit=5", "2345901876").contains("sequence"));
    assert!(reject("openg2p:repeating_limit=3", "5157392746").contains("repeating_digit"));
    assert!(reject("openg2p:not_start_with=51|9", "5157392746").contains("not_start_with"));
    assert!(!reject("openg2p:not_start_with=52|9", "5157392746").contains("not_start_with"));
    assert!(reject("openg2p:digits_group_limit=2", "5173928551").contains("first_equals_last"));
    assert!(
        reject("openg2p:reverse_digits_group_limit=2", "5173928515").contains("first_equals_reverse_last")
    );
    assert!(reject("openg2p:conjugative_even_digits_limit=2", "5173928515").contains("even_run"));
    assert!(!reject("openg2p:repeating_block_limit=3", "5137928514").contains("repeating_block"));
}

#[test]
fn settings_that_mean_nothing_are_refused() {
    let refused = |text: &str| text.parse::<DigitRules>().unwrap_err();
    assert_eq!(refused("aadhaar"), LimitsError::UnknownSet("aadhaar".into()));
    assert_eq!(refused("openg2p:limit=3"), LimitsError::UnknownSetting("limit=3".into()));
    assert!(refused("openg2p:sequence_limit=1").to_string().contains("0 (the rule is off) or 2 to 32"));
    assert!(matches!(refused("openg2p:sequence_limit=x"), LimitsError::NotANumber(_)));
    assert!(matches!(refused("mosip:digits_group_limit=33"), LimitsError::OutOfRange { .. }));
    assert_eq!(refused("mosip:not_start_with=0|x"), LimitsError::NotDigits("x".into()));
}

#[test]
fn digits_of_the_wrong_length_are_told_every_other_rule_they_break() {
    let pattern = compile("{seq:9}{check:verhoeff}", rejecting("openg2p"));
    let expected = ["checksum", "even_run", "length", "not_start_with", "repeating_digit"].map(str::to_owned);
    assert_eq!(failed_rules(&pattern, "00057"), BTreeSet::from(expected));
    assert_eq!(failed_rules(&pattern, ""), BTreeSet::from(["length".to_owned()]));
    assert_eq!(failed_rules(&pattern, "57382x1964"), BTreeSet::from(["shape".to_owned()]));
}

#[test]
fn restricted_words_are_found_in_any_case_and_all_are_named() {
    let reject = Reject::default().with_restricted(&["ass", "x9", "ssx"]).unwrap();
    let pattern = compile("KEY-{seq:base62:6}", Options { reject, ..Options::default() });
    let words =
        |text: &str| pattern.validate(text).reasons().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(words("KEY-aSsX9z").len(), 3);
    assert_eq!(words("KEY-00X90z"), ["contains the restricted \"x9\""]);
    assert!(words("KEY-a0s0s0").is_empty());
    // The literal is the user's own word: only the number part is looked at.
    let reject = Reject::default().with_restricted(&["key", "y-0"]).unwrap();
    assert!(
        compile("KEY-{seq:base62:6}", Options { reject, ..Options::default() })
            .validate("KEY-000000")
            .is_valid()
    );
    assert!(Reject::default().with_restricted(&[""]).is_err());
    assert!(Reject::default().with_restricted(&["é"]).is_err());
    assert!(Reject::default().with_restricted(&vec!["a"; 10_001]).is_err());
}

#[test]
fn words_are_looked_for_in_what_was_meant_not_in_what_was_typed() {
    let reject = Reject::default().with_restricted(&["1OU", "10Z"]).unwrap();
    let pattern = compile("{seq:crockford32:4}", Options { reject, ..Options::default() });
    assert_eq!(failed_rules(&pattern, "0loz"), BTreeSet::from(["restricted".to_owned()]));
    assert_eq!(failed_rules(&pattern, "0l1z"), BTreeSet::new());
}

#[test]
fn rules_see_the_number_part_whole_though_something_stands_between() {
    let pattern = compile("{seq:4}-{check:verhoeff}", rejecting("openg2p"));
    let scope = pattern.scope([("", ""); 0], None).unwrap();
    let dashed = scope.capacity().count();
    assert_eq!(dashed, 3_723, "the dash is no part of the number");
    assert_eq!(failed_rules(&pattern, "2016-8"), BTreeSet::new());
}
