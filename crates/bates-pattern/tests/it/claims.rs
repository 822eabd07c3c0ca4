//! Checks that must hold for any template and any text. Property tests and fuzz targets share them.

use bates_pattern::{
    Date, DigitRules, Key, Options, Order, Pattern, Position, Reject, Reset, Scope, YearStart,
};

/// Options that do not depend on the template, picked by a number.
pub(crate) fn options(choice: u8) -> Options {
    let reset = match choice % 5 {
        0 => Reset::Never,
        1 => Reset::Yearly,
        2 => Reset::Monthly,
        3 => Reset::Daily,
        _ => Reset::Fiscal(YearStart::new(4, 6).expect("a day")),
    };
    let mut options = Options { reset, ..Options::default() };
    if choice & 32 != 0 {
        options.order = Order::Shuffled(Key::new(&[choice; 16]).expect("16 bytes are a key"));
    }
    if choice & 64 != 0 {
        let rules: DigitRules = "openg2p".parse().expect("a known rule set");
        options.reject = Reject::default().with_digits(rules);
    }
    options
}

/// A scope of the pattern, if the same short digits or letters are valid for every parameter.
pub(crate) fn sample_scope(pattern: &Pattern) -> Option<Scope> {
    let date = Date::new(2026, 3, 31).expect("a day");
    let fillers = ["1", "A", "a", "12", "AB", "ab", "1234", "ABCD", "INV", "X"];
    let names: Vec<String> = pattern.parameters().map(str::to_owned).collect();
    fillers.iter().find_map(|filler| pattern.scope(names.iter().map(|name| (name, filler)), Some(date)).ok())
}

/// Compiling never panics. A template that compiles renders numbers, and they are read back.
pub(crate) fn check_template(template: &str, choice: u8) {
    match Pattern::compile(template, options(choice)) {
        Err(error) => {
            let columns = template.chars().count() + 1;
            assert!((1..=columns).contains(&error.column), "{template:?}: {error}");
            assert!(!error.to_string().is_empty());
        }
        Ok(pattern) => {
            if let Some(scope) = sample_scope(&pattern) {
                for value in [0, 1, 9, 10, 4_711, 999_999, 1 << 40, pattern.last().value()] {
                    let position = Position::new(value.min(pattern.last().value())).expect("below the last");
                    check_read_back(&scope, position);
                }
            }
        }
    }
}

/// A number that renders is read back to its scope and position, and is valid.
pub(crate) fn check_read_back(scope: &Scope, position: Position) {
    let mut out = b"text".to_vec();
    match scope.render(position, &mut out) {
        Err(_) => assert_eq!(out, b"text", "a failed render leaves the buffer unchanged"),
        Ok(()) => {
            let number = std::str::from_utf8(&out[4..]).expect("numbers are UTF-8");
            let parsed = scope.pattern().parse(number).unwrap_or_else(|error| panic!("{number:?}: {error}"));
            assert_eq!(parsed.position(), position, "{number:?}");
            assert!(parsed.parameters().eq(scope.parameters()), "{number:?}");
            assert_eq!(parsed.period(), scope.period(), "{number:?}");
            assert!(scope.pattern().validate(number).is_valid(), "{number:?}");
        }
    }
}

/// Parsing never panics. A text that parses renders to its canonical form, which parses to the same position.
pub(crate) fn check_text(pattern: &Pattern, text: &str) {
    let verdict = pattern.validate(text);
    assert!(
        verdict.reasons().iter().all(|reason| !reason.to_string().is_empty() && !reason.code().is_empty())
    );
    let Ok(parsed) = pattern.parse(text) else { return };
    let scope = parsed.scope();
    assert_eq!(scope.period(), parsed.period());
    match scope.number(parsed.position()) {
        Ok(canonical) => {
            let forgiving = pattern.template().contains("crockford32");
            assert!(forgiving || canonical == text, "{text:?} parses but renders as {canonical:?}");
            let again = pattern.parse(&canonical).expect("a canonical text parses");
            assert_eq!(again.position(), parsed.position());
            assert!(again.parameters().eq(parsed.parameters()));
        }
        Err(_) => assert!(!verdict.is_valid(), "{text:?} is valid but is not rendered"),
    }
}
