//! Business dates and periods: how they are shown and read back, and when a numbering restarts.

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
fn fiscal_years_begin_on_their_day() {
    let pattern = resetting("{date:%Y-%m-%d}/{seq}", "fiscal-04-06");
    let period = |date: &str| pattern.parse(&format!("{date}/1")).unwrap().period().unwrap().to_string();
    assert_eq!(period("2026-04-05"), "2025-26");
    assert_eq!(period("2026-04-06"), "2026-27");
    assert_eq!(period("2027-01-01"), "2026-27");
}

#[test]
fn impossible_and_contradictory_dates_are_refused() {
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
        "day 60 is 1 March or 29 February"
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
fn two_digit_years_are_limited_to_one_century() {
    let pattern = resetting("{date:%y}-{seq}", "yearly");
    assert_eq!(pattern.parse("99-1").unwrap().period().unwrap().to_string(), "2099");
    for year in [1999, 2100] {
        let refused = pattern.scope([("", ""); 0], Some(Date::new(year, 1, 1).unwrap())).unwrap_err();
        assert_eq!(refused, ScopeError::Year { year, first: 2000, last: 2099 });
    }
}

#[test]
fn fiscal_years_are_shown_as_the_period_format_says() {
    for (reset, date, first_year, short_years) in [
        ("fiscal-04-01", "2026-03-31", "2025", "25-26"),
        ("fiscal-04-01", "2026-04-01", "2026", "26-27"),
        ("fiscal-04-06", "2026-04-05", "2025", "25-26"),
        ("fiscal-04-01", "2000-04-01", "2000", "00-01"),
        ("fiscal-04-01", "2009-12-31", "2009", "09-10"),
        ("fiscal-04-01", "2100-03-31", "2099", "99-00"),
    ] {
        for (template, shown) in [("{period:yyyy}/{seq}", first_year), ("{period:yy-yy}/{seq}", short_years)]
        {
            let pattern = resetting(template, reset);
            let text = number(&pattern, date, 7);
            assert_eq!(text, format!("{shown}/7"), "{reset} {date}");
            let period = reset.parse::<Reset>().unwrap().period(date.parse().unwrap());
            assert_eq!(pattern.parse(&text).unwrap().period(), period, "{reset} {date}");
        }
    }
    assert_eq!(number(&resetting("{period:yyyy}/{seq}", "yearly"), "2026-12-31", 7), "2026/7");
    assert_eq!(number(&resetting("{period:yyyy}/{seq}", "fiscal-04-01"), "1900-01-01", 7), "1899/7");
    let invoice = resetting("INV/{period:yy-yy}/{seq:6}", "fiscal-04-01");
    let text = number(&invoice, "2026-04-01", 1);
    assert_eq!((text.as_str(), text.len()), ("INV/26-27/000001", 16), "GST allows 16 characters");
}

#[test]
fn only_texts_of_one_fiscal_year_are_read() {
    let read = |template: &str, text: &str| {
        let pattern = resetting(template, "fiscal-04-01");
        pattern.parse(text).map(|parsed| parsed.period().unwrap().to_string()).map_err(|e| e.reason.code())
    };
    assert_eq!(read("{period:yy-yy}/{seq}", "26-27/1").as_deref(), Ok("2026-27"));
    for text in
        ["26-28/1", "26-26/1", "26_27/1", "2627-/1", "-2627/1", "+6-07/1", "2-627/1", "é6-2/1", "2é-2/1"]
    {
        assert_eq!(read("{period:yy-yy}/{seq}", text), Err("shape"), "{text}");
    }
    assert_eq!(read("{period:yyyy}/{seq}", "2026/1").as_deref(), Ok("2026-27"));
    for text in ["1898/1", "0026/1", "+026/1", "26-7/1"] {
        assert_eq!(read("{period:yyyy}/{seq}", text), Err("shape"), "{text}");
    }
    assert_eq!(read("{period:yyyy}.{period:yy-yy}/{seq}", "2026.26-27/1").as_deref(), Ok("2026-27"));
    assert_eq!(read("{period:yyyy}.{period:yy-yy}/{seq}", "1926.26-27/1"), Err("shape"));
    assert_eq!(read("{period:yy-yy}.{date:%Y}/{seq}", "99-00.2100/1").as_deref(), Ok("2099-00"));
    assert_eq!(read("{period:yy-yy}.{date:%Y}/{seq}", "99-00.2000/1"), Err("date"));
    let refused = resetting("{period:yy-yy}/{seq}", "fiscal-04-01").parse("26-28/1").unwrap_err();
    assert!(
        refused.to_string().ends_with("the two years of a fiscal-04-01 period, such as 26-27"),
        "{refused}"
    );
}

#[test]
fn two_digit_fiscal_years_are_limited_to_one_century() {
    let pattern = resetting("{period:yy-yy}/{seq}", "fiscal-04-01");
    // 1926-27 would read like 2026-27, and 1999-00, which ends in 2000, like 2099-00.
    for (date, year) in [("1926-04-01", "1926-27"), ("2000-03-31", "1999-00"), ("2100-04-01", "2100-01")] {
        let refused = pattern.scope([("", ""); 0], Some(date.parse().unwrap())).unwrap_err();
        assert!(matches!(refused, ScopeError::FiscalYear { year: found, .. } if found.to_string() == year));
        let expected = "is outside 2000-01 to 2099-00, the years that two digits can show";
        assert_eq!(refused.to_string(), format!("fiscal year {year} {expected}"));
    }
}

#[test]
fn the_format_of_a_period_does_not_change_its_shuffled_order() {
    let order = |template: &str| {
        let reset = "fiscal-04-01".parse().unwrap();
        let pattern = compile(template, Options { reset, ..shuffled() });
        (0..20).map(|at| number(&pattern, "2026-04-01", at).split_off(6)).collect::<Vec<_>>()
    };
    assert_eq!(order("{period:yy-yy}-{seq:6}"), order("--{period:yyyy}{seq:6}"));
}

#[test]
fn a_date_is_required_only_if_the_pattern_shows_one() {
    let dated = compile("{date:%Y}-{seq}", Options::default());
    assert_eq!(dated.scope([("", ""); 0], None).unwrap_err(), ScopeError::NoDate);
    assert!(dated.needs_date() && dated.reset() == Reset::Never);
    let plain = compile("{seq}", Options::default());
    assert!(
        plain.scope([("", ""); 0], Some("0001-01-01".parse().unwrap())).is_ok(),
        "an unused date is not checked"
    );
}

#[test]
fn each_period_has_its_own_shuffled_order() {
    let pattern = compile("{date:%Y}-{seq:6}", Options { reset: Reset::Yearly, ..shuffled() });
    let order = |date: &str| (0..20).map(|at| number(&pattern, date, at).split_off(5)).collect::<Vec<_>>();
    assert_ne!(order("2026-01-01"), order("2027-01-01"));
    assert_eq!(order("2026-01-01"), order("2026-12-31"), "the order depends on the period, not on the day");
    // Without a reset there is one numbering for all dates.
    let pattern = compile("{date:%Y}-{seq:6}", shuffled());
    let order = |date: &str| (0..20).map(|at| number(&pattern, date, at).split_off(5)).collect::<Vec<_>>();
    assert_eq!(order("2026-01-01"), order("2027-01-01"));
}

#[test]
fn a_period_names_a_scope_unless_numbers_show_the_day() {
    let rendered = |template: &str, reset: &str, period: Option<&str>| {
        let scope = resetting(template, reset).scope_in_period([("", ""); 0], period)?;
        Some(scope.number(position(7)).unwrap())
    };
    let same = [
        ("{seq}", "never", None, "7"),
        ("{date:%Y}-{seq}", "yearly", Some("2026"), "2026-7"),
        ("{date:%Y%m}-{seq}", "monthly", Some("2026-02"), "202602-7"),
        ("{date:%Y%j}-{seq}", "daily", Some("2026-02-01"), "2026032-7"),
        ("{period}-{seq}", "fiscal-04-01", Some("2026-27"), "2026-27-7"),
        ("{period:yy-yy}-{seq}", "fiscal-04-01", Some("2026-27"), "26-27-7"),
        ("{period:yyyy}-{seq}", "fiscal-04-01", Some("2026-27"), "2026-7"),
    ];
    for (template, reset, period, number) in same {
        assert_eq!(rendered(template, reset, period).as_deref(), Some(number), "{template} {reset}");
    }
    let others = [
        ("{date:%Y}-{seq}", "never", None),
        ("{date:%Y%m}-{seq}", "yearly", Some("2026")),
        ("{date:%Y%m%d}-{seq}", "monthly", Some("2026-02")),
        ("{period}-{date:%Y}-{seq}", "fiscal-04-01", Some("2026-27")),
        // The first and the last day are both in April.
        ("{period}-{date:%m}-{seq}", "fiscal-04-06", Some("2026-27")),
        ("{date:%Y}-{seq}", "yearly", None),
        ("{date:%Y}-{seq}", "yearly", Some("2026-02")),
        ("{period:yy-yy}-{seq}", "fiscal-04-01", Some("26-27")),
        ("{period:yy-yy}-{seq}", "fiscal-04-01", Some("1926-27")),
    ];
    for (template, reset, period) in others {
        assert_eq!(rendered(template, reset, period), None, "{template} {reset}");
    }
}
