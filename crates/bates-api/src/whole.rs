//! Whole numbers in requests. Owns that `3.0` is the whole number 3, as JSON Schema has it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// Up to here, a number with a point that the parser reads one step too high or too low has a fraction, and is refused.
const EXACT_MAX: f64 = 4_503_599_627_370_495.0;

struct WholeVisitor<T>(PhantomData<T>);

impl<T: TryFrom<u64>> Visitor<'_> for WholeVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number of type {}", std::any::type_name::<T>())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let invalid = || E::invalid_value(Unexpected::Signed(number), &self);
        u64::try_from(number).ok().and_then(|number| T::try_from(number).ok()).ok_or_else(invalid)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked: whole and in range"
    )]
    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        if number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number) {
            self.visit_u64(number as u64)
        } else {
            Err(E::invalid_type(Unexpected::Float(number), &self))
        }
    }
}

pub(crate) fn whole<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_u64(WholeVisitor(PhantomData))
}

/// As [`whole`], or `null`.
pub(crate) fn whole_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    struct OptionVisitor;
    impl<'de> Visitor<'de> for OptionVisitor {
        type Value = Option<u64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number or null")
        }

        fn visit_none<E>(self) -> Result<Option<u64>, E> {
            Ok(None)
        }

        fn visit_unit<E>(self) -> Result<Option<u64>, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<u64>, D::Error> {
            whole(deserializer).map(Some)
        }
    }
    deserializer.deserialize_option(OptionVisitor)
}

#[cfg(test)]
mod tests {
    use crate::NumberRequest;

    #[test]
    fn a_whole_number_may_be_written_with_a_point_but_not_rounded() {
        let count = |text: &str| {
            let body = format!(r#"{{"count":{text}}}"#);
            serde_json::from_str::<NumberRequest>(&body).map(|request| request.count).ok()
        };
        for (text, expected) in [
            ("3", Some(3)),
            ("3.0", Some(3)),
            ("3e2", Some(300)),
            ("0.0", Some(0)),
            ("4503599627370495.0", Some(4_503_599_627_370_495)),
            ("18446744073709551615", Some(u64::MAX)),
            ("3.5", None),
            ("-3.0", None),
            ("-3", None),
            ("1e300", None),
            ("4503599627370496.0", None),
            ("\"3\"", None),
            ("null", None),
            ("true", None),
        ] {
            assert_eq!(count(text), expected, "{text}");
        }
    }
}
