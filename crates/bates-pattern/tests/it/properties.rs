//! Property tests: round trip, order and bounds, for random templates and random texts.

use bates_pattern::{Check, Date, Options, Position, Reset, YearStart};
use proptest::prelude::*;

use super::claims::{check_read_back, check_template, check_text, options};
use super::{compile, only_scope, position, shuffled};

/// Fragments of plausible templates, and some that make a template invalid.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "{seq}", "{seq:6}", "{seq:base62:6}", "{seq:crockford32:8}", "{seq:hex}", "{seq:[ACGT]:12}", "{seq:31}",
            "{seq:64}", "{seq:base58:5}", "{seq:base36}",
        ]).prop_map(str::to_owned),
        4 => prop::sample::select(vec!["-", "/", ".", "_", "A", "7", "№", "{{", "}}"]).prop_map(str::to_owned),
        2 => prop::sample::select(vec![
            "{project}", "{type:digits:4}", "{kind:INV|CRN}", "{unit:upper:2-3}", "{node:[a-f0-9]:1-4}", "{x:hex}",
        ]).prop_map(str::to_owned),
        2 => prop::sample::select(vec![
            "{date:%Y}", "{date:%y%m}", "{date:%Y-%m-%d}", "{date:%j}", "{period}", "{date:%d.%m}",
            "{period:yyyy}", "{period:yy-yy}",
        ]).prop_map(str::to_owned),
        2 => prop::sample::select(Check::ALL.to_vec()).prop_map(|check| format!("{{check:{}}}", check.name())),
        1 => "[{}:\\[\\]a-z0-9%-]{1,6}",
    ]
}

fn template() -> impl Strategy<Value = String> {
    prop::collection::vec(fragment(), 1..7).prop_map(|fragments| fragments.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn numbers_of_any_template_that_compiles_are_read_back(template in template(), choice: u8) {
        check_template(&template, choice);
    }

    #[test]
    fn any_template_is_refused_or_read_back(template in any::<String>(), choice: u8) {
        check_template(&template, choice);
    }

    #[test]
    fn any_text_is_refused_or_renders_back_to_itself(template in template(), choice: u8, text in any::<String>()) {
        if let Ok(pattern) = bates_pattern::Pattern::compile(&template, options(choice)) {
            check_text(&pattern, &text);
        }
    }

    #[test]
    fn similar_texts_are_refused_or_render_back_to_themselves(
        digits in "[0-9]{4}-[0-9]{2}-[0-9]{2}/[0-9]{1,7}",
        letters in "[0-9A-Za-z]{4,9}",
        dashed in "[A-Z]{1,3}-[0-9X]{1,6}",
    ) {
        check_text(&compile("{date:%Y-%m-%d}/{seq}", Options { reset: Reset::Daily, ..Options::default() }), &digits);
        check_text(&compile("{seq:base62:6}", shuffled()), &letters);
        check_text(&compile("{seq:crockford32}{check:mod37-36}", Options::default()), &letters);
        check_text(&compile("{p:upper}-{seq:4}{check:mod11-2}", Options::default()), &dashed);
    }
}

proptest! {
    #[test]
    fn every_position_of_a_document_series_is_read_back(
        value in 0..Position::COUNT, project in "[A-Z]{1,12}", kind in "[0-9A-Za-z_]{1,64}",
    ) {
        let pattern = compile("{project}-{type}-{seq}", Options::default());
        let scope = pattern.scope([("type", kind.as_str()), ("project", &project)], None).unwrap();
        check_read_back(&scope, position(value));
        prop_assert_eq!(scope.number(position(value)).unwrap(), format!("{project}-{kind}-{value}"));
    }

    #[test]
    fn shuffled_positions_of_the_largest_spaces_are_read_back(value in 0..Position::COUNT) {
        for template in ["{seq:31}{check:verhoeff}", "{seq:base62:17}", "{seq:[01]:64}", "{seq:hex:25}"] {
            check_read_back(&only_scope(template, shuffled()), position(value));
        }
    }

    #[test]
    fn padded_numbers_sort_like_their_positions(one in 0..Position::COUNT, other in 0..Position::COUNT) {
        // Only alphabets in ASCII order: base62 has lower case before upper case.
        for template in ["{seq:16}", "{seq:hex:14}", "{seq:base36:11}", "{seq:crockford32:11}", "{seq:base58:10}"] {
            let scope = only_scope(template, Options::default());
            let last = scope.pattern().last().value();
            let (one, other) = (position(one.min(last)), position(other.min(last)));
            prop_assert_eq!(scope.number(one).unwrap().cmp(&scope.number(other).unwrap()), one.cmp(&other));
        }
    }

    #[test]
    fn every_day_is_read_back_in_its_period(days in 0_i64..73_000, choice in 0_u8..5, value in 0_u64..100_000) {
        let date = Date::new(1900, 1, 1).unwrap().checked_add(jiff::Span::new().days(days)).unwrap();
        let templates = [
            "{period}/{seq}", "{date:%Y%m%d}{seq}", "{seq}-{date:%Y.%j}", "{date:%j}/{seq}/{date:%Y}",
            "{period:yyyy}/{seq}", "{seq:6}{period:yyyy}",
        ];
        for template in templates {
            if let Ok(pattern) = bates_pattern::Pattern::compile(template, options(choice)) {
                let scope = pattern.scope([("", ""); 0], Some(date)).unwrap();
                check_read_back(&scope, position(value));
            }
        }
    }

    #[test]
    fn every_day_of_a_century_is_read_back_in_its_short_fiscal_year(
        days in 0_i64..36_525, month in 2_i8..=12, day in 1_i8..=28, value in 0_u64..100_000,
    ) {
        let reset = Reset::Fiscal(YearStart::new(month, day).unwrap());
        let first = Date::new(2000, month, day).unwrap();
        let date = first.checked_add(jiff::Span::new().days(days)).unwrap();
        for template in ["{period:yy-yy}/{seq}", "{seq:6}{period:yy-yy}", "{period:yy-yy}{date:%Y%m%d}{seq}"] {
            let pattern = compile(template, Options { reset, ..Options::default() });
            let scope = pattern.scope([("", ""); 0], Some(date)).unwrap();
            check_read_back(&scope, position(value));
        }
    }

    #[test]
    fn texts_like_periods_are_refused_or_render_back_to_themselves(years in "[0-9]{2}-[0-9]{2}", year in "[0-9]{4}") {
        check_text(&compile("{period:yy-yy}/{seq}", options(4)), &format!("{years}/7"));
        check_text(&compile("{period:yyyy}/{seq}", options(4)), &format!("{year}/7"));
        check_text(&compile("{period:yyyy}/{seq}", options(1)), &format!("{year}/7"));
    }
}
