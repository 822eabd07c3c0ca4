//! Business dates and periods: what is shown, when a numbering starts again, and what is read back.

use bates_pattern::{Date, Options, Pattern, Reset, ScopeError};

use super::{compile, position, shuffled};

fn resetting(template: &str, reset: &str) -> Pattern {
    compile(template, Options { reset: reset.parse().unwrap(), ..Options::default() })
}

fn number(pattern: &Pattern, date: &str, at: u64) -> String {
    pattern.scope([("", ""); 0], Some(date.parse().unwrap())).unwrap().number(position(at)).unwrap()
}

#[test]
fn dates_are_shown_as_the_format_says() {
    let pattern = compile("{date:%Y/%m/%d %y %j}#{seq}", Options::default());
    assert_eq!(number(&pattern, "2026-03-01", 7), "2026/03/01 26 060#7");
    assert_eq!(number(&pattern, "2024-12-31", 7), "2024/12/31 24 366#7");
}

#[test]
fn periods_have_their_names() {
    for (reset, date, name) in [
        ("yearly", "2026-12-31", "2026"),
        ("monthly", "2026-12-31", "2026-12"),
        ("daily", "2026-12-31", "2026-12-31"),
        ("fiscal-04-01", "2026-03-31", "2025-26"),
        ("fiscal-04-01", "2026-04-01", "2026-27"),
        ("fiscal-04-06", "2026-04-05", "2025-26"),
        ("fiscal-10-01", "2099-10-01", "2099-00"),
        ("fiscal-02-28", "2024-02-29", "2024-25"),
        ("fiscal-04-01", "1900-01-01", "1899-00"),
        ("fiscal-04-01", "9999-12-31", "9999-00"),
        ("yearly", "9999-12-31", "9999"),
        ("yearly", "1900-01-01", "1900"),
    ] {
        let pattern = resetting("{period}/{seq}", reset);
        assert_eq!(number(&pattern, date, 7), format!("{name}/7"), "{reset} {date}");
        let text = format!("{name}/7");
        assert_eq!(pattern.parse(&text).unwrap().period().unwrap().to_string(), name);
    }
}

#[test]
fn fiscal_years_turn_exactly_on_their_day_and_share_no_number() {
    let pattern = resetting("{date:%Y-%m-%d}/{seq}", "fiscal-04-06");
    let period = |date: &str| pattern.parse(&format!("{date}/1")).unwrap().period().unwrap().to_string();
    assert_eq!(period("2026-04-05"), "2025-26");
    assert_eq!(period("2026-04-06"), "2026-27");
    assert_eq!(period("2027-01-01"), "2026-27");
}

#[test]
fn dates_that_do_not_exist_or_contradict_each_other_are_not_read() {
    let read = |template: &str, reset: &str, text: &str| {
        resetting(template, reset)
            .parse(text)
            .map(|parsed| parsed.position().value())
            .map_err(|e| e.reason.code())
    };
    assert_eq!(read("{date:%Y-%m-%d}/{seq}", "never", "2026-02-29/1"), Err("date"));
    assert_eq!(read("{date:%Y-%m-%d}/{seq}", "never", "2024-02-29/1"), Ok(1));
    assert_eq!(read("{date:%Y-%m-%d}/{seq}", "never", "2026-13-01/1"), Err("date"));
    assert_eq!(read("{date:%Y-%m-%d}/{seq}", "never", "0026-12-01/1"), Err("date"));
    assert_eq!(read("{date:%Y-%m-%d}/{seq}", "never", "+026-12-01/1"), Err("shape"));
    assert_eq!(read("{date:%Y.%j}/{seq}", "never", "2026.366/1"), Err("date"));
    assert_eq!(read("{date:%Y.%j}/{seq}", "never", "2024.366/1"), Ok(1));
    assert_eq!(read("{date:%j}/{seq}", "never", "366/1"), Ok(1));
    assert_eq!(read("{date:%j}/{seq}", "never", "367/1"), Err("date"));
    assert_eq!(read("{date:%m%d}/{seq}", "never", "0229/1"), Ok(1));
    assert_eq!(read("{date:%m%d}/{seq}", "never", "0230/1"), Err("date"));
    assert_eq!(read("{date:%Y}-{date:%y}/{seq}", "never", "2026-27/1"), Err("shape"));
    assert_eq!(
        read("{date:%m}.{date:%j}/{seq}", "never", "03.060/1"),
        Ok(1),
        "60 is 1 March, or 29 February"
    );
    assert_eq!(read("{date:%m}.{date:%j}/{seq}", "never", "04.060/1"), Err("date"));
    assert_eq!(read("{period}:{date:%m}/{seq}", "yearly", "2026:13/1"), Err("date"));
    assert_eq!(read("{period}:{date:%Y}/{seq}", "fiscal-04-01", "2026-27:2027/1"), Ok(1));
    assert_eq!(read("{period}:{date:%Y}/{seq}", "fiscal-04-01", "2026-27:2028/1"), Err("date"));
    assert_eq!(read("{period}/{seq}", "fiscal-04-01", "2026-28/1"), Err("shape"));
    assert_eq!(read("{period}/{seq}", "monthly", "2026_01/1"), Err("shape"));
    assert_eq!(read("{period}/{seq}", "fiscal-04-01", "1898-99/1"), Err("shape"));
    assert_eq!(read("{period}/{seq}", "yearly", "1899/1"), Err("shape"));
    assert_eq!(read("{period}/{seq}", "daily", "2026-02-30/1"), Err("shape"));
    assert_eq!(read("{period}{period}/{seq}", "yearly", "20262027/1"), Err("shape"));
}

#[test]
fn a_two_digit_year_keeps_to_one_century() {
    let pattern = resetting("{date:%y}-{seq}", "yearly");
    assert_eq!(pattern.parse("99-1").unwrap().period().unwrap().to_string(), "2099");
    for year in [1999, 2100] {
        let refused = pattern.scope([("", ""); 0], Some(Date::new(year, 1, 1).unwrap())).unwrap_err();
        assert_eq!(refused, ScopeError::Year { year, first: 2000, last: 2099 });
    }
}

#[test]
fn a_date_is_asked_for_only_where_one_is_shown() {
    let dated = compile("{date:%Y}-{seq}", Options::default());
    assert_eq!(dated.scope([("", ""); 0], None).unwrap_err(), ScopeError::NoDate);
    assert!(dated.needs_date() && dated.reset() == Reset::Never);
    let plain = compile("{seq}", Options::default());
    assert!(
        plain.scope([("", ""); 0], Some("0001-01-01".parse().unwrap())).is_ok(),
        "a date unused is not judged"
    );
}

#[test]
fn each_period_is_shuffled_in_an_order_of_its_own() {
    let pattern = compile("{date:%Y}-{seq:6}", Options { reset: Reset::Yearly, ..shuffled() });
    let order = |date: &str| (0..20).map(|at| number(&pattern, date, at).split_off(5)).collect::<Vec<_>>();
    assert_ne!(order("2026-01-01"), order("2027-01-01"));
    assert_eq!(order("2026-01-01"), order("2026-12-31"), "the period counts, not the day");
    // Without a reset there is one numbering, whatever date is shown.
    let pattern = compile("{date:%Y}-{seq:6}", shuffled());
    let order = |date: &str| (0..20).map(|at| number(&pattern, date, at).split_off(5)).collect::<Vec<_>>();
    assert_eq!(order("2026-01-01"), order("2027-01-01"));
}

#[test]
fn a_period_is_a_scope_where_no_number_shows_a_day_of_it() {
    let rendered = |template: &str, reset: &str, period: Option<&str>| {
        let scope = resetting(template, reset).scope_in([("", ""); 0], period)?;
        Some(scope.number(position(7)).unwrap())
    };
    let same = [
        ("{seq}", "never", None, "7"),
        ("{date:%Y}-{seq}", "yearly", Some("2026"), "2026-7"),
        ("{date:%Y%m}-{seq}", "monthly", Some("2026-02"), "202602-7"),
        ("{date:%Y%j}-{seq}", "daily", Some("2026-02-01"), "2026032-7"),
        ("{period}-{seq}", "fiscal-04-01", Some("2026-27"), "2026-27-7"),
    ];
    for (template, reset, period, number) in same {
        assert_eq!(rendered(template, reset, period).as_deref(), Some(number), "{template} {reset}");
    }
    let others = [
        ("{date:%Y}-{seq}", "never", None),
        ("{date:%Y%m}-{seq}", "yearly", Some("2026")),
        ("{date:%Y%m%d}-{seq}", "monthly", Some("2026-02")),
        ("{period}-{date:%Y}-{seq}", "fiscal-04-01", Some("2026-27")),
        // The first day and the last are both of April.
        ("{period}-{date:%m}-{seq}", "fiscal-04-06", Some("2026-27")),
        ("{date:%Y}-{seq}", "yearly", None),
        ("{date:%Y}-{seq}", "yearly", Some("2026-02")),
    ];
    for (template, reset, period) in others {
        assert_eq!(rendered(template, reset, period), None, "{template} {reset}");
    }
}
