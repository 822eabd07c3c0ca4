//! The rules of OpenG2P and MOSIP, compared with published verdicts and with each other.

use std::collections::BTreeSet;

use bates_pattern::{DigitRules, LimitsError, Options, Reject};

use super::{compile, only_scope, position, rejecting, shuffled};

const VECTORS: &str = include_str!("../golden/openg2p_rules.csv");

fn failed_rules(pattern: &bates_pattern::Pattern, text: &str) -> BTreeSet<String> {
    pattern.validate(text).reasons().iter().map(|reason| reason.code().to_owned()).collect()
}

#[test]
fn published_vectors_have_their_verdict_and_failed_rules() {
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
    let scope =
        only_scope("{seq:4}{check:verhoeff}", Options { order: shuffled().order, ..rejecting("openg2p") });
    let mut walk = scope.accepted(position(0), scope.pattern().last());
    let (mut issued, mut out) = (BTreeSet::new(), Vec::new());
    while walk.next_into(&mut out).is_some() {
        assert!(issued.insert(std::mem::take(&mut out)));
    }
    assert_eq!(issued.len(), 3_723);
}

#[test]
fn an_added_rule_moves_no_identifier() {
    let before = only_scope("{seq:5}{check:verhoeff}", shuffled());
    let after =
        only_scope("{seq:5}{check:verhoeff}", Options { order: shuffled().order, ..rejecting("openg2p") });
    let mut rejected = 0;
    for at in (0..=before.pattern().last().value()).map(position) {
        let text = before.number(at).unwrap();
        match after.number(at) {
            Ok(same) => assert_eq!(same, text),
            Err(_) => rejected += 1,
        }
        assert_eq!(
            after.pattern().parse(&text).unwrap().position(),
            at,
            "a rejected identifier still parses"
        );
    }
    assert_eq!(rejected, 100_000 - 29_593);
}

#[test]
fn mosip_interprets_three_rules_differently() {
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
fn a_limit_of_zero_turns_a_rule_off() {
    let reject = |rules: &str, text: &str| failed_rules(&compile("{seq:10}", rejecting(rules)), text);
    assert!(reject("openg2p", "2345678901").contains("sequence"));
    assert!(!reject("openg2p:sequence_limit=0", "2345678901").contains("sequence"));
    assert!(reject("openg2p:sequence_limit=5", "2345678901").contains("sequence"));
    assert!(!reject("openg2p:sequence_limit=5", "2345901876").contains("sequence"));
    assert!(reject("openg2p:repeating_limit=3", "5157392746").contains("repeating_digit"));
    assert!(reject("mosip:repeating_limit=3", "5175928463").contains("repeating_digit"));
    assert!(!reject("openg2p:repeating_limit=3", "5175928463").contains("repeating_digit"));
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
fn every_cyclic_number_that_fits_is_found() {
    let pattern = compile("{seq:64}", rejecting("openg2p"));
    for number in [
        "142857",
        "0588235294117647",
        "052631578947368421",
        "0434782608695652173913",
        "0344827586206896551724137931",
        "0212765957446808510638297872340425531914893617",
        "0169491525423728813559322033898305084745762711864406779661",
        "016393442622950819672131147540983606557377049180327868852459",
    ] {
        let with = |number: &str| failed_rules(&pattern, &format!("{number:9<64}")).contains("cyclic");
        assert!(with(number), "{number}");
        let last = number.len() - 1;
        assert!(
            !with(&format!("{}{}", &number[..last], if number.ends_with('1') { '2' } else { '1' })),
            "{number}"
        );
    }
}

#[test]
fn a_prefix_is_rejected_only_if_no_ending_is_accepted() {
    // 717 ends with its first digit, but not after its check digit is added.
    let rules =
        "openg2p:repeating_block_limit=0,repeating_limit=0,digits_group_limit=1,reverse_digits_group_limit=1";
    let scope = only_scope("{seq:3}{check:verhoeff}", rejecting(rules));
    let by_verdict = (0..1_000).filter(|value| {
        let text =
            only_scope("{seq:3}{check:verhoeff}", Options::default()).number(position(*value)).unwrap();
        scope.pattern().validate(&text).is_valid()
    });
    let rendered = (0..1_000).filter(|value| scope.number(position(*value)).is_ok());
    assert!(by_verdict.eq(rendered));
}

#[test]
fn a_check_letter_is_not_an_even_digit() {
    let pattern = compile("{seq:5}{check:mod11-2}", rejecting("openg2p"));
    assert!(!failed_rules(&pattern, "57924X").contains("even_run"));
    assert!(failed_rules(&pattern, "572464").contains("even_run"));
}

#[test]
fn counting_skips_only_rejected_positions() {
    let walked = |template: &str, options: Options, first: u64, count: usize| {
        let scope = only_scope(template, options);
        let mut walk = scope.accepted(position(first), bates_pattern::Position::MAX);
        let mut numbers = Vec::new();
        let mut out = Vec::new();
        while numbers.len() < count && walk.next_into(&mut out).is_some() {
            numbers.push(String::from_utf8(std::mem::take(&mut out)).unwrap());
        }
        numbers
    };
    // Trying each position would take 20 billion steps to the first of these, and never reach the end of the second.
    assert_eq!(walked("{seq:11}{check:verhoeff}", rejecting("openg2p"), 0, 1), ["201021241306"]);
    assert!(walked("{seq:17}", rejecting("openg2p"), 0, 1).is_empty());
    // Skipping finds the same positions as trying each.
    for (template, rules) in [("{seq:5}", "openg2p"), ("{seq:4}{check:luhn}", "mosip:not_start_with=3|77|5")]
    {
        let scope = only_scope(template, rejecting(rules));
        let one_by_one =
            (0..=scope.pattern().last().value()).filter_map(|at| scope.number(position(at)).ok());
        assert!(
            walked(template, rejecting(rules), 0, usize::MAX).into_iter().eq(one_by_one),
            "{template} {rules}"
        );
    }
    let reject = Reject::default().with_restricted(&["13", "7"]).unwrap();
    let unpadded = walked("{seq}", Options { reject, ..Options::default() }, 0, 5_000);
    let expected = (0..).map(|n: u32| n.to_string()).filter(|n| !n.contains('7') && !n.contains("13"));
    assert!(unpadded.into_iter().eq(expected.take(5_000)));
}

#[test]
fn invalid_rule_settings_are_refused() {
    let refused = |text: &str| text.parse::<DigitRules>().unwrap_err();
    assert_eq!(refused("aadhaar"), LimitsError::UnknownSet("aadhaar".into()));
    assert_eq!(refused("openg2p:limit=3"), LimitsError::UnknownSetting("limit=3".into()));
    assert!(refused("openg2p:sequence_limit=1").to_string().contains("expected 0 (off) or 2 to 32"));
    assert!(matches!(refused("openg2p:sequence_limit=x"), LimitsError::NotANumber(_)));
    assert!(matches!(refused("mosip:digits_group_limit=33"), LimitsError::OutOfRange { .. }));
    assert!("mosip:digits_group_limit=32".parse::<DigitRules>().is_ok());
    assert_eq!(refused("mosip:not_start_with=0|x"), LimitsError::NotDigits("x".into()));
}

#[test]
fn rules_of_digits_have_a_bounded_size() {
    let parse =
        |starts: &[String]| format!("openg2p:not_start_with={}", starts.join("|")).parse::<DigitRules>();
    let starts: Vec<String> = (100..201).map(|start| format!("{start}{:029}", 0)).collect();
    let reject = Reject::default().with_digits(parse(&starts[..100]).unwrap());
    assert_eq!(reject.with_restricted(&["7", "7"]).unwrap().given_count(), 102);
    assert_eq!(parse(&starts), Err(LimitsError::TooManyStarts(101)));
    assert_eq!(parse(&["1".repeat(33)]), Err(LimitsError::LongStart(33)));
    assert_eq!(parse(&["1".into(), "2".into(), "1".into()]), Err(LimitsError::DuplicateStart("1".into())));
    // Settings may be repeated, but the text of all has a limit.
    let repeated = format!("openg2p:{}", "sequence_limit=3,".repeat(300));
    assert_eq!(repeated.parse::<DigitRules>(), Err(LimitsError::TooLong(repeated.len())));
    let long = format!("openg2p:{}", "x".repeat(1_000_000)).parse::<DigitRules>().unwrap_err();
    assert!(long.to_string().len() < 500, "{long}");
    let default = Reject::default().with_digits("openg2p".parse().unwrap());
    assert_eq!(default.given_count(), 0, "the default prefixes are not the caller's");
}

#[test]
fn digits_of_the_wrong_length_get_all_other_reasons_too() {
    let pattern = compile("{seq:9}{check:verhoeff}", rejecting("openg2p"));
    let expected = ["checksum", "even_run", "length", "not_start_with", "repeating_digit"].map(str::to_owned);
    assert_eq!(failed_rules(&pattern, "00057"), BTreeSet::from(expected));
    assert_eq!(failed_rules(&pattern, ""), BTreeSet::from(["length".to_owned()]));
    assert_eq!(failed_rules(&pattern, "57382x1964"), BTreeSet::from(["shape".to_owned()]));
    assert_eq!(failed_rules(&pattern, "573820196é"), BTreeSet::from(["shape".to_owned()]));
    assert_eq!(failed_rules(&pattern, "57382019é"), BTreeSet::from(["length".to_owned()]));
    let endless = "1".repeat(1_000_000);
    assert_eq!(
        failed_rules(&pattern, &endless),
        BTreeSet::from(["length".to_owned()]),
        "the rules do not look at such a long text"
    );
}

#[test]
fn all_restricted_words_are_found_in_any_case() {
    let reject = Reject::default().with_restricted(&["ass", "x9", "ssx"]).unwrap();
    let pattern = compile("KEY-{seq:base62:6}", Options { reject, ..Options::default() });
    let words =
        |text: &str| pattern.validate(text).reasons().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(words("KEY-aSsX9z").len(), 3);
    assert_eq!(words("KEY-00X90z"), ["contains the restricted \"x9\""]);
    assert!(words("KEY-a0s0s0").is_empty());
    // Rules look at {seq} and {check} only, not at literals.
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
fn restricted_words_are_found_in_the_canonical_text() {
    let reject = Reject::default().with_restricted(&["1OU", "10Z"]).unwrap();
    let pattern = compile("{seq:crockford32:4}", Options { reject, ..Options::default() });
    assert_eq!(failed_rules(&pattern, "0loz"), BTreeSet::from(["restricted".to_owned()]));
    assert_eq!(failed_rules(&pattern, "0l1z"), BTreeSet::new());
}

#[test]
fn rules_ignore_the_text_between_seq_and_check() {
    let pattern = compile("{seq:4}-{check:verhoeff}", rejecting("openg2p"));
    let scope = pattern.scope([("", ""); 0], None).unwrap();
    let dashed = scope.capacity().count();
    assert_eq!(dashed, 3_723, "the rules ignore the dash");
    assert_eq!(failed_rules(&pattern, "2016-8"), BTreeSet::new());
}
