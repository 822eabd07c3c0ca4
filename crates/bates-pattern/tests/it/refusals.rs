//! Templates that are refused. Each row is a template and parts of its error message.

use bates_pattern::{Options, Order, Pattern, Problem, Reject, Reset};

use super::{compile, rejecting, shuffled};

fn refusal(template: &str, options: Options) -> String {
    match Pattern::compile(template, options) {
        Ok(_) => format!("{template} compiles"),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn assert_refused(template: &str, options: Options, parts: &[&str]) {
    let message = refusal(template, options);
    for part in parts {
        assert!(message.contains(part), "{template}: {message:?} does not say {part:?}");
    }
}

#[test]
fn a_bad_template_is_refused_with_column_and_expectation() {
    for (template, parts) in [
        ("{seq:99999}", ["column 6", "invalid width 99999: expected 1 to 64"]),
        ("{seq:0}", ["column 6", "invalid width 0: expected 1 to 64"]),
        ("{seq:06}", ["column 6", "invalid width 06"]),
        ("{seq:base64:6}", ["column 6", "expected a width, an alphabet (decimal, base62"]),
        ("{seq:base62:}", ["column 13", "expected a width from 1 to 64, found '}'"]),
        ("{seq:base62:x}", ["column 13", "expected a width from 1 to 64, found 'x'"]),
        ("{seq:[a]}", ["column 6", "expected an alphabet of two characters or more"]),
        ("{seq:[abca]}", ["column 10", "lists 'a' twice"]),
        ("{seq:[aab]}", ["column 8", "lists 'a' twice"]),
        ("{seq:[a-cb]}", ["column 10", "lists 'b' twice"]),
        ("{seq:[z-a]}", ["column 7", "expected an ascending range, found \"z-a\""]),
        ("{seq:[ab", ["column 9", "found the end of the template"]),
        ("{seq:[aé]}", ["column 8", "expected a visible ASCII character"]),
        ("{seq", ["column 5", "`}` to close the `{` at column 1"]),
        ("{seq:6:6}", ["column 7", "`}` to close the `{` at column 1, found ':'"]),
        ("{seq}}", ["column 6", "expected `}}` for a brace"]),
        ("{seq}{", ["column 7", "expected seq, date, period, check or the name of a parameter"]),
        ("{}", ["column 2", "expected seq, date, period, check"]),
        ("{ seq}", ["column 2", "found ' '"]),
        ("{1st}-{seq}", ["column 2", "found \"1st\""]),
        ("é{seq:x}", ["column 7", "found \"x\""]),
        ("{unknown:x}-{seq}", ["column 10", "expected a rule: digits, upper, lower"]),
        ("{p:digits:65}-{seq}", ["column 11", "invalid length 65: expected 1 to 64"]),
        ("{p:digits:8-2}-{seq}", ["column 11", "expected an ascending range of lengths"]),
        ("{p:INV|CRN|INV}-{seq}", ["column 4", "expected each choice once"]),
        ("{p:A||B}-{seq}", ["column 4", "choices of 1 to 64 characters"]),
        ("{p:[]}-{seq}", ["column 4", "a class of one character or more"]),
        ("{date}-{seq}", ["column 6", "expected `:` and a format such as %Y-%m"]),
        ("{date:}-{seq}", ["column 7", "a format such as %Y-%m"]),
        ("{date:%H}-{seq}", ["column 8", "expected one of Y, y, m, d, j after `%`, found 'H'"]),
        ("{date:year}-{seq}", ["column 11", "expected a conversion"]),
        ("{period:}-{seq}", ["column 9", "expected yyyy (the first year) or yy-yy"]),
        ("{period:yy}-{seq}", ["column 9", "yy-yy (both years of a fiscal year), found \"yy\""]),
        ("{period:yyyy:4}-{seq}", ["column 13", "`}` to close the `{` at column 1, found ':'"]),
        ("{period x}-{seq}", ["column 8", "expected `:` or `}` to close the `{` at column 1"]),
        ("{seq}{check}", ["column 12", "expected `:` and an algorithm (verhoeff, luhn"]),
        ("{seq}{check:md5}", ["column 13", "expected a check algorithm"]),
        ("a\u{202e}{seq}", ["column 2", "U+202E is invisible or changes the direction of text"]),
        ("a\0{seq}", ["column 2", "U+0000"]),
        ("a\u{200b}{seq}", ["column 2", "U+200B"]),
        ("a\u{200d}{seq}", ["column 2", "U+200D"]),
        ("\u{3164}{seq}", ["column 1", "U+3164"]),
        ("a\u{a0}{seq}", ["column 2", "U+00A0"]),
        ("{date:%Y\u{3000}}{seq}", ["column 9", "U+3000"]),
        ("{seq}\r", ["column 6", "U+000D"]),
        ("{seq}-{seq}", ["column 7", "duplicate {seq}"]),
        ("{seq}{check:luhn}{check:damm}", ["column 18", "duplicate {check}"]),
        ("{p}-{p}-{seq}", ["column 5", "duplicate {p}"]),
        ("{check:luhn}{seq}", ["column 1", "move it after {seq}"]),
    ] {
        assert_refused(template, Options::default(), &parts);
    }
    assert_refused("", Options::default(), &["column 1", "the template has no {seq}"]);
    assert_refused("{project}", Options::default(), &["column 10", "the template has no {seq}"]);
    assert_refused(
        &format!("{}{{seq}}", "x".repeat(508)),
        Options::default(),
        &["513 bytes; the limit is 512"],
    );
    let many: Vec<String> = (0..17).map(|n| format!("{{p{n}}}-")).collect();
    assert_refused(
        &format!("{}{{seq}}", many.concat()),
        Options::default(),
        &["too many parameters: the limit is 16"],
    );
}

#[test]
fn a_template_that_cannot_be_read_back_is_refused() {
    for (template, parts) in [
        ("{a}{b}-{seq}", ["column 4", "parameters {a} and {b} are adjacent"]),
        ("{seq}-{a:digits}{b:digits:2-3}", ["column 17", "are adjacent"]),
        ("{a:[A-Z-]}-{seq}", ["column 1", "the rule of {a} admits '-', the separator that follows it"]),
        ("{a:[A-Z-]}-{seq:6}", ["column 1", "admits '-'"]),
        ("{a:X-1|Y}-{seq}", ["column 1", "admits '-'"]),
        ("{a}{seq}", ["column 1", "{a} has no fixed length"]),
        ("{a:digits}{seq}", ["column 1", "with which {seq} may begin"]),
        ("{seq}{a:digits}", ["column 1", "{seq} has no fixed length"]),
        ("{seq:hex}{a:lower}", ["column 1", "{seq} has no fixed length"]),
        ("{seq}1{a}", ["column 1", "may hold '1', with which \"1\" may begin"]),
        ("{seq:crockford32}l{a}", ["column 1", "may hold 'l'"]),
    ] {
        assert_refused(template, Options::default(), &parts);
    }
}

#[test]
fn fields_separated_by_length_or_characters_compile() {
    for template in [
        "{a:digits:4}{b:upper:2}{seq}",
        "{a:upper}{b:digits:2}-{seq}",
        "{a}{seq:6}",
        "{seq}{a:upper}",
        "{seq}{check:luhn}",
        "{seq}{date:%Y}",
        "{date:%Y}{seq}",
        "{a:INV|CRN}{seq}",
        "{a}_{b}-{c}/{seq}",
        "{{{a}}}{seq}",
        "№{seq}",
        "{seq:[-_]:8}",
        "{seq:base58}-{a:[A-Za-z0-9.]:1-20}",
    ] {
        compile(template, Options::default());
    }
}

#[test]
fn a_reset_needs_a_template_that_shows_the_period() {
    let refused = [
        ("{seq}", "yearly"),
        ("{date:%m}-{seq}", "yearly"),
        ("{date:%Y}-{seq}", "monthly"),
        ("{date:%m}-{seq}", "monthly"),
        ("{date:%Y-%m}-{seq}", "daily"),
        ("{date:%Y-%d}-{seq}", "daily"),
        ("{date:%Y}-{seq}", "fiscal-04-01"),
        ("{date:%Y-%m}-{seq}", "fiscal-04-06"),
        ("{date:%m-%d}-{seq}", "fiscal-04-06"),
    ];
    for (template, reset) in refused {
        let options = Options { reset: reset.parse().unwrap(), ..Options::default() };
        assert_refused(
            template,
            options,
            &["column", "does not show the period of reset", "add {period}", reset],
        );
    }
    let accepted = [
        ("{date:%y}-{seq}", "yearly"),
        ("{date:%Y}{date:%j}-{seq}", "monthly"),
        ("{date:%y%m}-{seq}", "monthly"),
        ("{date:%Y-%j}-{seq}", "daily"),
        ("{date:%Y-%m}-{seq}", "fiscal-04-01"),
        ("{date:%Y-%m-%d}-{seq}", "fiscal-04-06"),
        ("{period}-{seq}", "fiscal-04-06"),
        ("{period}-{seq}", "daily"),
        ("{date:%d}-{seq}", "never"),
    ];
    for (template, reset) in accepted {
        compile(template, Options { reset: reset.parse().unwrap(), ..Options::default() });
    }
    assert_refused("{period}-{seq}", Options::default(), &["column 1", "{period} needs a reset"]);
}

#[test]
fn a_period_format_that_does_not_suit_the_reset_is_refused() {
    for (template, reset, part) in [
        ("{period:yy-yy}", "yearly", "needs reset fiscal-MM-DD, not yearly: write {period}, or {date:%y}"),
        (
            "{period:yy-yy}",
            "monthly",
            "needs reset fiscal-MM-DD, not monthly: write {period}, or {date:%Y%m}",
        ),
        ("{period:yy-yy}", "daily", "needs reset fiscal-MM-DD, not daily: write {period}, or {date:%Y%m%d}"),
        ("{period:yyyy}", "monthly", "needs reset yearly or fiscal-MM-DD, not monthly: write {period}"),
        ("{period:yyyy}", "daily", "needs reset yearly or fiscal-MM-DD, not daily: write {period}"),
        ("{period:yyyy}", "never", "{period} needs a reset"),
    ] {
        let options = Options { reset: reset.parse().unwrap(), ..Options::default() };
        assert_refused(&format!("INV/{template}/{{seq}}"), options.clone(), &["column 5", part]);
        // Showing the date too does not help.
        assert_refused(&format!("{{date:%Y%m%d}}/{template}/{{seq}}"), options, &["column 15", part]);
    }
}

#[test]
fn a_check_that_does_not_cover_the_alphabet_is_refused() {
    for (template, part) in [
        ("{seq:base62:6}{check:luhn}", "{check:luhn} covers digits only, but {seq} counts in base62"),
        ("{seq:hex:6}{check:mod11-2}", "covers digits only"),
        ("{seq:[AB_]:6}{check:mod97}", "covers digits and letters only, but {seq} counts in [AB_]"),
        ("{seq:base62:6}{check:mod37-36}", "ignores the case of letters"),
        ("{seq:base58:6}{check:mod97}", "ignores the case of letters"),
    ] {
        assert_refused(template, Options::default(), &["column", part]);
    }
}

#[test]
fn an_order_or_rule_set_that_does_not_suit_seq_is_refused() {
    assert_refused("A-{seq}", shuffled(), &["column 3", "a shuffled order needs a {seq} of fixed width"]);
    assert_refused("{seq:32}", shuffled(), &["{seq} has more than 10^31 values"]);
    assert_refused("{seq:base62:18}", shuffled(), &["{seq} has more than 10^31 values"]);
    compile("{seq:31}", shuffled());
    compile("{seq:base62:17}", shuffled());
    assert_refused(
        "{seq}{check:verhoeff}",
        rejecting("openg2p"),
        &["rule set openg2p needs a decimal {seq}"],
    );
    assert_refused("{seq:hex:6}", rejecting("mosip"), &["rule set mosip needs a decimal {seq}"]);
    let words = Options { reject: Reject::default().with_restricted(&["13"]).unwrap(), ..Options::default() };
    compile("{seq}", words);
}

#[test]
fn errors_carry_data() {
    let error = Pattern::compile("{a}{b}-{seq}", Options::default()).unwrap_err();
    assert_eq!(error.column, 4);
    assert_eq!(
        error.problem,
        Problem::AdjacentParameters { first: "a".into(), second: "b".into(), shared: '0' }
    );
    let debug = format!("{:?}", Order::Shuffled(super::KEY.parse().unwrap()));
    assert!(!debug.contains("2b7e"), "{debug} shows the key");
}

#[test]
fn resets_parse_what_they_print() {
    for text in ["never", "yearly", "monthly", "daily", "fiscal-04-01", "fiscal-10-31"] {
        assert_eq!(text.parse::<Reset>().unwrap().to_string(), text);
    }
    for text in
        ["", "weekly", "fiscal-4-1", "fiscal-02-29", "fiscal-01-01", "fiscal-13-01", "fiscal-+4-01", "Yearly"]
    {
        assert!(text.parse::<Reset>().unwrap_err().to_string().contains("expected never, yearly"), "{text}");
    }
}
