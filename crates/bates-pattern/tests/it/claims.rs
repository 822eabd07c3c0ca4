//! What must hold for any template and any text, however odd. Property tests and fuzz targets share these.

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

/// A scope in which every parameter holds a value, if short digits or letters satisfy the rules.
pub(crate) fn some_scope(pattern: &Pattern) -> Option<Scope> {
    let date = Date::new(2026, 3, 31).expect("a day");
    let fillers = ["1", "A", "a", "12", "AB", "ab", "1234", "ABCD", "INV", "X"];
    let names: Vec<String> = pattern.parameters().map(str::to_owned).collect();
    fillers.iter().find_map(|filler| pattern.scope(names.iter().map(|name| (name, filler)), Some(date)).ok())
}

/// Compiling never panics; what compiles renders, and what it renders is read back as what it was.
pub(crate) fn template_holds(template: &str, choice: u8) {
    match Pattern::compile(template, options(choice)) {
        Err(error) => {
            let columns = template.chars().count() + 1;
            assert!((1..=columns).contains(&error.column), "{template:?}: {error}");
            assert!(!error.to_string().is_empty());
        }
        Ok(pattern) => {
            if let Some(scope) = some_scope(&pattern) {
                for value in [0, 1, 9, 10, 4_711, 999_999, 1 << 40, pattern.last().value()] {
                    let position = Position::new(value.min(pattern.last().value())).expect("below the last");
                    number_is_read_back(&scope, position);
                }
            }
        }
    }
}

/// A number that renders is read back as its scope and position, and is valid.
pub(crate) fn number_is_read_back(scope: &Scope, position: Position) {
    let mut out = b"kept".to_vec();
    match scope.render(position, &mut out) {
        Err(_) => assert_eq!(out, b"kept", "a failed render leaves the buffer alone"),
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

/// Reading never panics; what is read renders to its canonical text, which is read as the same.
pub(crate) fn text_holds(pattern: &Pattern, text: &str) {
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
            assert!(forgiving || canonical == text, "{text:?} was read but {canonical:?} is written");
            let again = pattern.parse(&canonical).expect("a canonical text is read");
            assert_eq!(again.position(), parsed.position());
            assert!(again.parameters().eq(parsed.parameters()));
        }
        Err(_) => assert!(!verdict.is_valid(), "{text:?} is valid but would not be rendered"),
    }
}
