//! Claims about the rule: every set of rights, series inside and outside, scopes.

use std::collections::BTreeSet;

use bates_pattern::Reject;

use crate::scope::KeyTemplate;

use super::*;

fn name(text: &str) -> SeriesName {
    text.parse().expect("a name")
}

fn patterns(texts: &[&str]) -> SeriesSet {
    SeriesSet::Patterns(texts.iter().map(|text| text.parse().expect("a pattern")).collect())
}

#[test]
fn a_prefix_covers_whole_parts_of_names_only() {
    let set = patterns(&["acme.*", "document"]);
    for covered in ["acme.invoice", "acme.a.b", "document"] {
        assert!(set.contains(&name(covered)), "{covered}");
    }
    for other in ["acme", "acme2.invoice", "acme-invoice", "documents", "document.a", "other"] {
        assert!(!set.contains(&name(other)), "{other}");
    }
    assert!(SeriesSet::All.contains(&name("anything")));
}

#[test]
fn a_pattern_is_a_name_or_a_prefix_that_ends_at_a_dot() {
    for bad in ["", "*", "acme*", ".*", "acme..*", "acme.*.*", "a*b", "Acme.*", "acme.", "acme.*\n"] {
        assert!(bad.parse::<SeriesPattern>().is_err(), "{bad:?}");
    }
}

/// Every set of rights, every right, a series inside and one outside.
#[test]
fn a_series_that_may_not_be_read_does_not_exist_and_one_that_may_be_read_is_refused() {
    let (own, other) = (name("acme.invoice"), name("other.invoice"));
    for bits in 0..1_u8 << Right::ALL.len() {
        let held: BTreeSet<Right> =
            Right::ALL.into_iter().filter(|right| bits & (1 << *right as u8) != 0).collect();
        let permissions = Permissions::new(held.iter().copied().collect(), patterns(&["acme.*"]));
        for right in Right::ALL {
            let expected = match (held.contains(&right), held.contains(&Right::Read)) {
                (true, _) => None,
                (false, true) => Some(ErrorCode::FORBIDDEN),
                (false, false) => Some(ErrorCode::UNKNOWN_SERIES),
            };
            assert_eq!(permissions.check(right, &own).err().map(|denial| denial.code()), expected);
            let denial = permissions.check(right, &other).expect_err("another tenant's series");
            assert_eq!(denial, Denial::UnseenSeries("other.invoice".into()));
        }
    }
}

#[test]
fn forbidden_prefixes_and_repeated_words_count_as_words() {
    let limits = DefinitionLimits { words_max: 3, ..DefinitionLimits::default() };
    let permissions = Permissions::new(Rights::ALL, patterns(&["acme.*"])).with_limits(limits);
    let check = |rules: &str, words: &[&str]| {
        let reject = Reject::default().with_digits(rules.parse().expect("rules")).with_restricted(words);
        let reject = reject.expect("words");
        permissions.check_definition(&SeriesSpec { reject, ..SeriesSpec::new(name("acme.a"), "{seq:9}") }, 0)
    };
    assert_eq!(check("openg2p", &["1", "2", "3"]), Ok(()));
    assert_eq!(check("openg2p:not_start_with=4|5", &["1"]), Ok(()));
    for refused in [check("openg2p", &["1"; 4]), check("openg2p:not_start_with=4|5|6", &["1"])] {
        let what = "the number of restricted words and not_start_with entries";
        assert_eq!(refused, Err(Denial::BeyondLimit { what, value: 4, limit: 3 }));
    }
}

#[test]
fn keys_belong_to_prefixes_and_two_callers_never_share_one() {
    let sets = [&["foo"][..], &["foo.*"], &["foo.bar"], &["foo.bar.*"], &["foo.bar.*", "foo.bar"]];
    let may_define = |set: &[&str], series: &str, key: &str| {
        let permissions = Permissions::new(Rights::ALL, patterns(set));
        let key = Some(KeyTemplate::parse(key).expect("a key"));
        permissions.check_key(&SeriesSpec { key, ..SeriesSpec::new(name(series), "{seq}") })
    };
    let keys =
        ["foo:x", "foo:{x}", "foo.bar:x", "foo.bar:{x}", "foo", "foo.bar", "foobar:x", "{x}", "foo{x}"];
    let owned = sets.map(|set| keys.map(|key| may_define(set, "foo.bar", key).is_ok()));
    let of = |own: &[&str]| keys.map(|key| own.contains(&key));
    assert_eq!(owned[0], of(&[]));
    assert_eq!(owned[1], of(&["foo:x", "foo:{x}"]));
    assert_eq!(owned[2], of(&[]));
    assert_eq!(owned[3], of(&["foo.bar:x", "foo.bar:{x}"]));
    assert_eq!(owned[4], owned[3]);
    assert_eq!(may_define(&["foo"], "foo", "foo:x"), Err(Denial::NoKeys("foo:x".into())));
    let refused = may_define(&["a.*", "b.*"], "a.x", "c:x").expect_err("a foreign key");
    assert!(refused.to_string().contains("must begin with \"a:\" or \"b:\""), "{refused}");
}

#[test]
fn a_rule_admits_only_scopes_with_one_of_its_values() {
    let rule = |parameter: &str, values: &[&str]| ScopeRule {
        parameter: parameter.into(),
        values: values.iter().map(|value| (*value).into()).collect(),
    };
    let permissions = Permissions::all().with_scope(vec![rule("project", &["PROJ", "X9"])]);
    assert_eq!(permissions.check_scope(&[("type", "1"), ("project", "X9")]), Ok(()));
    for other in [&[("project", "OTHER")][..], &[("type", "PROJ")], &[], &[("project", "PROJ2")]] {
        assert_eq!(permissions.check_scope(other), Err(Denial::OtherScope("project".into())), "{other:?}");
    }
    let key = ScopeKey::named([("project", "PROJ"), ("type", "9")], Some("2026")).expect("a scope");
    assert_eq!(permissions.check_scope_key(&key), Ok(()));
    assert_eq!(permissions.check_all_scopes(), Err(Denial::ManyScopes));
    let both = permissions.with_scope(vec![rule("project", &["PROJ"]), rule("type", &["8"])]);
    assert_eq!(both.check_scope_key(&key), Err(Denial::OtherScope("type".into())));
}
