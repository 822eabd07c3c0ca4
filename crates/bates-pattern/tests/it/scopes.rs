//! Scopes: rules of parameters, the order of each scope, and the texts that are read back.

use std::collections::HashSet;

use bates_pattern::{Options, Pattern, Position, ScopeError};

use super::{compile, only_scope, position, shuffled};

#[test]
fn invalid_values_are_refused_with_the_rule() {
    let pattern = compile("{project}-{type:digits:4}-{kind:INV|CRN}-{seq}", Options::default());
    let good = [("project", "PROJ"), ("type", "9012"), ("kind", "INV")];
    let refused = |name: &str, value: &str| {
        let values = good.map(|(known, usual)| (known, if known == name { value } else { usual }));
        pattern.scope(values, None).unwrap_err().to_string()
    };
    assert!(pattern.scope(good, None).is_ok());
    for bad in ["", "a-b", "../", "*", "a b", "a\0", "a\r\n", "é", "\u{202e}x", &"x".repeat(65)] {
        let message = refused("project", bad);
        assert!(message.contains("for {project}: expected 1 to 64 characters of [0-9A-Z_a-z]"), "{message}");
    }
    assert!(refused("type", "901").contains("expected 4 characters of [0-9]"));
    assert!(refused("kind", "inv").contains("expected one of INV, CRN"));
    assert!(refused("project", &"x".repeat(100_000)).len() < 300, "a long value is cut");
}

#[test]
fn missing_unknown_and_duplicate_parameters_are_different_errors() {
    let pattern = compile("{project}-{seq}", Options::default());
    let none: [(&str, &str); 0] = [];
    assert!(
        matches!(pattern.scope(none, None), Err(ScopeError::MissingParameter { name, .. }) if &*name == "project")
    );
    let twice = [("project", "A"), ("project", "B")];
    assert_eq!(pattern.scope(twice, None).unwrap_err(), ScopeError::DuplicateParameter("project".into()));
    let unknown = pattern.scope([("tenant", "A")], None).unwrap_err();
    assert_eq!(unknown.to_string(), "unknown parameter {tenant}: the pattern has {project}");
}

#[test]
fn a_parameter_without_a_rule_excludes_the_separator_after_it() {
    let pattern = compile("{a}_{b}-{seq}", Options::default());
    let scope = pattern.scope([("a", "x-y"), ("b", "p_q")], None).unwrap();
    let number = scope.number(position(7)).unwrap();
    assert_eq!(number, "x-y_p_q-7");
    let parsed = pattern.parse(&number).unwrap();
    assert_eq!((parsed.parameter("a"), parsed.parameter("b")), (Some("x-y"), Some("p_q")));
    assert!(pattern.scope([("a", "x_y"), ("b", "z")], None).is_err());
}

#[test]
fn no_two_scopes_share_an_identifier() {
    let pattern = compile("{a:[ab]:1-2}{b:[xy]:1-2}{seq}", Options::default());
    let mut seen = HashSet::new();
    for a in ["a", "b", "ab", "bb"] {
        for b in ["x", "y", "xy", "yx"] {
            let scope = pattern.scope([("a", a), ("b", b)], None).unwrap();
            for at in 0..200 {
                assert!(seen.insert(scope.number(position(at)).unwrap()), "{a} {b} {at}");
            }
        }
    }
}

#[test]
fn each_scope_has_its_own_shuffled_order() {
    let pattern = compile("{a}.{b}-{seq:6}", shuffled());
    let order = |a: &str, b: &str| {
        let scope = pattern.scope([("a", a), ("b", b)], None).unwrap();
        (0..50)
            .map(|at| scope.number(position(at)).unwrap().split_off(a.len() + b.len() + 2))
            .collect::<Vec<_>>()
    };
    // The last two would be equal if values were simply concatenated.
    let orders = [order("P", "1"), order("Q", "1"), order("P", "2"), order("ab", "c"), order("a", "bc")];
    assert_eq!(orders.iter().collect::<HashSet<_>>().len(), orders.len());
    assert_eq!(order("P", "1"), order("P", "1"));
}

#[test]
fn crockford_is_read_leniently_and_written_in_one_way() {
    let pattern = compile("{seq:crockford32:4}{check:mod37-36}", Options::default());
    let scope = pattern.scope([("", ""); 0], None).unwrap();
    let at = position(32 + 10); // 001A
    let written = scope.number(at).unwrap();
    let (digits, check) = written.split_at(4);
    assert_eq!(digits, "001A");
    for typed in ["001A", "oO1a", "O0Ia", "0oLA", "00lA", "00ia"] {
        for check in [check.to_owned(), check.to_lowercase()] {
            assert_eq!(pattern.parse(&format!("{typed}{check}")).unwrap().position(), at, "{typed}");
        }
    }
    assert!(pattern.parse(&format!("U01A{check}")).is_err(), "U is not a digit");
}

#[test]
fn other_alphabets_are_read_exactly() {
    assert!(compile("{seq:hex:4}", Options::default()).parse("00FF").is_err());
    assert!(compile("{seq:base36:4}", Options::default()).parse("00ZZ").is_err());
    let base62 = compile("{seq:base62:2}", Options::default());
    assert_eq!(base62.parse("0z").unwrap().position().value(), 35);
    assert_eq!(base62.parse("0Z").unwrap().position().value(), 61);
}

#[test]
fn a_number_without_a_width_has_one_text() {
    let pattern = compile("N{seq}", Options::default());
    assert_eq!(pattern.parse("N0").unwrap().position().value(), 0);
    for text in ["N00", "N007", "N", "N+7", "N 7", "N7 ", "n7", "N٧"] {
        assert!(pattern.parse(text).is_err(), "{text}");
    }
    assert!(pattern.parse("N9007199254740991").is_ok());
    let beyond = pattern.parse("N9007199254740992").unwrap_err();
    assert_eq!(beyond.reason.code(), "unreachable");
    assert_eq!(pattern.validate("N9007199254740992").reasons()[0].code(), "unreachable");
    assert!(pattern.parse(&format!("N{}", "9".repeat(64))).is_err());
    assert!(pattern.parse(&format!("N{}", "9".repeat(100_000))).is_err());
}

#[test]
fn the_case_of_a_check_letter_follows_the_number() {
    let upper = only_scope("{seq:[0-9A-Z]:6}{check:mod37-36}", Options::default());
    let lower = only_scope("{seq:base36:6}{check:mod37-36}", Options::default());
    for at in 0..500 {
        let (upper, lower) = (upper.number(position(at)).unwrap(), lower.number(position(at)).unwrap());
        assert_eq!(upper, lower.to_uppercase());
        assert_eq!(lower, lower.to_lowercase());
    }
}

#[test]
fn reasons_name_the_column_of_the_mismatch() {
    let pattern = compile("№{project}-{kind:INV|CRN}/{seq}", Options::default());
    for (text, expected) in [
        ("№PROJ-INV/x", "column 11: expected {seq}, a number in decimal without leading zeros"),
        ("№PROJ-ABC/1", "column 7: expected {kind}, one of INV, CRN"),
        ("№PROJ+INV/1", "column 6: expected \"-\""),
        ("PROJ-INV/1", "column 1: expected \"№\""),
        ("", "column 1: expected \"№\""),
        ("№é", "column 2: expected {project}, 1 to 64 characters of [0-9A-Z_a-z]"),
    ] {
        assert_eq!(pattern.parse(text).unwrap_err().to_string(), expected, "{text}");
        assert_eq!(pattern.validate(text).reasons()[0].code(), "shape");
    }
    let tailed = compile("{project}-{type:digits}-{seq:4}", Options::default());
    for (text, expected) in [
        ("P-1-0001X", "column 9: expected the end of the identifier"),
        ("P-1-00O1", "column 7: expected {seq}, 4 characters in decimal"),
        ("P-1x-0001", "column 4: expected \"-\""),
        ("P-1-001", "column 5: expected {seq}, 4 characters in decimal"),
    ] {
        assert_eq!(tailed.parse(text).unwrap_err().to_string(), expected, "{text}");
    }
    let fixed = compile("№{seq:4}", Options::default());
    assert_eq!(fixed.parse("№123").unwrap_err().to_string(), "has 4 characters instead of 5");
}

#[test]
fn the_range_of_seq_is_found_in_every_number() {
    for (template, seq) in [
        ("{seq}", "1001"),
        ("{seq:6}", "001001"),
        ("A-{seq}-B", "1001"),
        ("A-{seq:5}{check:luhn}", "01001"),
        ("{seq:5}/{check:mod97}-x", "01001"),
    ] {
        let pattern = Pattern::compile(template, Options::default()).unwrap();
        let scope = pattern.scope([("", ""); 0], None).unwrap();
        let number = scope.number(Position::new(1001).unwrap()).unwrap();
        assert_eq!(&number[scope.seq_range(number.len())], seq, "{template}: {number}");
    }
}
