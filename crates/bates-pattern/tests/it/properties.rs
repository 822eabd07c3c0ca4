//! Round trip, order and bounds, for templates that are grown at random and for texts that are anything.

use bates_pattern::{Check, Date, Options, Position, Reset};
use proptest::prelude::*;

use super::claims::{number_is_read_back, options, template_holds, text_holds};
use super::{bare, compile, position, shuffled};

/// Fragments that make up plausible templates, and some that break them.
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
    fn whatever_compiles_is_read_back(template in template(), choice: u8) {
        template_holds(&template, choice);
    }

    #[test]
    fn any_text_for_a_template_is_refused_or_compiles(template in any::<String>(), choice: u8) {
        template_holds(&template, choice);
    }

    #[test]
    fn any_text_is_refused_or_read_as_what_renders_to_it(template in template(), choice: u8, text in any::<String>()) {
        if let Ok(pattern) = bates_pattern::Pattern::compile(&template, options(choice)) {
            text_holds(&pattern, &text);
        }
    }

    #[test]
    fn texts_of_about_the_right_shape_are_refused_or_read_exactly(
        digits in "[0-9]{4}-[0-9]{2}-[0-9]{2}/[0-9]{1,7}",
        letters in "[0-9A-Za-z]{4,9}",
        dashed in "[A-Z]{1,3}-[0-9X]{1,6}",
    ) {
        text_holds(&compile("{date:%Y-%m-%d}/{seq}", Options { reset: Reset::Daily, ..Options::default() }), &digits);
        text_holds(&compile("{seq:base62:6}", shuffled()), &letters);
        text_holds(&compile("{seq:crockford32}{check:mod37-36}", Options::default()), &letters);
        text_holds(&compile("{p:upper}-{seq:4}{check:mod11-2}", Options::default()), &dashed);
    }
}

proptest! {
    #[test]
    fn every_position_of_a_document_series_is_read_back(
        value in 0..Position::COUNT, project in "[A-Z]{1,12}", kind in "[0-9A-Za-z_]{1,64}",
    ) {
        let pattern = compile("{project}-{type}-{seq}", Options::default());
        let scope = pattern.scope([("type", kind.as_str()), ("project", &project)], None).unwrap();
        number_is_read_back(&scope, position(value));
        prop_assert_eq!(scope.number(position(value)).unwrap(), format!("{project}-{kind}-{value}"));
    }

    #[test]
    fn shuffled_positions_of_the_largest_spaces_are_read_back(value in 0..Position::COUNT) {
        for template in ["{seq:31}{check:verhoeff}", "{seq:base62:17}", "{seq:[01]:64}", "{seq:hex:25}"] {
            number_is_read_back(&bare(template, shuffled()), position(value));
        }
    }

    #[test]
    fn a_padded_count_sorts_as_its_positions_do(one in 0..Position::COUNT, other in 0..Position::COUNT) {
        // Alphabets in ASCII order only: base62 counts lower case before upper case.
        for template in ["{seq:16}", "{seq:hex:14}", "{seq:base36:11}", "{seq:crockford32:11}", "{seq:base58:10}"] {
            let scope = bare(template, Options::default());
            let last = scope.pattern().last().value();
            let (one, other) = (position(one.min(last)), position(other.min(last)));
            prop_assert_eq!(scope.number(one).unwrap().cmp(&scope.number(other).unwrap()), one.cmp(&other));
        }
    }

    #[test]
    fn every_day_is_read_back_in_its_period(days in 0_i64..73_000, choice in 0_u8..5, value in 0_u64..100_000) {
        let date = Date::new(1900, 1, 1).unwrap().checked_add(jiff::Span::new().days(days)).unwrap();
        for template in ["{period}/{seq}", "{date:%Y%m%d}{seq}", "{seq}-{date:%Y.%j}", "{date:%j}/{seq}/{date:%Y}"] {
            if let Ok(pattern) = bates_pattern::Pattern::compile(template, options(choice)) {
                let scope = pattern.scope([("", ""); 0], Some(date)).unwrap();
                number_is_read_back(&scope, position(value));
            }
        }
    }
}
